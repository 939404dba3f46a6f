"""``analyse``: the analyses by name, each with its own flags."""

import shlex
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from edgeflare.cli.groups import PluginGroup, command_of
from edgeflare.cli.options import (
    CampaignFolder,
    Json,
    command_with_flags,
    flags_of_settings,
    folder,
    settings_from,
)
from edgeflare.cli.terminal import ask, echo_err, end_by, handling_signals, with_exit_codes

_Campaigns = Annotated[
    list[Path], typer.Argument(parser=folder, help="Campaigns' folders or addresses.")
]


def analysis_command(name: str) -> Any:
    """Return the command of an analysis, with the flags of its settings.

    Raises UsageError where it can't be used.
    """
    from edgeflare.analysis import analysis

    plugin = analysis(name)

    def on_one(ctx: typer.Context, campaign: CampaignFolder, json: Json = False) -> None:
        _run(name, campaign, [campaign], ctx.obj, json)

    def on_several(ctx: typer.Context, campaigns: _Campaigns, json: Json = False) -> None:
        _run(name, campaigns, campaigns, ctx.obj, json)

    def on_none(ctx: typer.Context, json: Json = False) -> None:
        _run(name, [], [], ctx.obj, json)

    commands: dict[str, Any] = {"campaign": on_one, "campaigns": on_several, "none": on_none}
    command: Any = with_exit_codes(commands[getattr(plugin, "scope", "campaign")])
    kind = command_with_flags(lambda: flags_of_settings(plugin.settings))
    return command_of(command, name, cls=kind, help=plugin.about)


def _run(
    name: str, campaign: Path | list[Path], folders: Iterable[Path], given: Any, json: bool
) -> None:
    """Run an analysis with the parsed parameters `given`, and print its result."""
    from edgeflare.analysis import (
        RunContext,
        analysis,
        class_namer,
        load_class_names,
        run_analysis,
        sections_of,
    )
    from edgeflare.campaign import Event, Stage
    from edgeflare.cli.display.progress import batch_display
    from edgeflare.cli.display.tables import print_result
    from edgeflare.document import section_blocks
    from edgeflare.reports import Block
    from edgeflare.store import Store, campaign_text

    plugin = analysis(name)
    stored = getattr(plugin, "stored", True)
    settings = settings_from(plugin.settings, given, f"analysis {name}")
    first = next(iter(folders), Path())
    file = getattr(settings, "class_names", None)
    names = None if file is None else load_class_names(file, first)
    namer = str if isinstance(campaign, list) else class_namer(first, names)
    with handling_signals() as stop, batch_display(stop, what="candidate ") as watch:

        def show(event: Event) -> None:
            if isinstance(event, Stage) and not event.detail:  # of `RunContext.tell`
                event = Stage(name, event.name, event.total)
            watch.view(event)

        context = RunContext(progress=show, ask=ask, watch=watch)
        result = run_analysis(name, campaign, settings, context)

    def values() -> Any:
        from edgeflare._internal.records import as_json

        if hasattr(plugin, "to_json"):
            return plugin.to_json(result)
        return result.to_json() if hasattr(result, "to_json") else as_json(result, plugin.result)

    def document() -> list[Block]:
        with ExitStack() as stack:
            # what isn't stored here has parts in folders of the campaign's
            alone = stored or isinstance(campaign, list)
            store = None if alone else stack.enter_context(Store.open(first))
            return [*section_blocks(sections_of(plugin, name, result, namer, store))]

    print_result(json, values, document)
    if not json and hasattr(plugin, "advice"):
        if advice := plugin.advice(result):
            echo_err(f"\n{advice}")
    elif not json and stored and not isinstance(campaign, list):
        command = shlex.join(["edgeflare", "report", campaign_text(first)])
        echo_err(f"\nA page with it: {command}")
    if hasattr(plugin, "write"):
        plugin.write(result, settings)
    if hasattr(plugin, "limits"):
        checks = plugin.limits(result)
        end_by(
            [check.name for check in checks if check.crossed],
            [check.name for check in checks if check.undecided],
        )


class AnalysisCommands(PluginGroup):
    """One command for each analysis."""

    def declared(self) -> list[str]:
        """Return the names of the analyses; nothing is imported."""
        from edgeflare.analysis import analysis_names

        return [*analysis_names()]

    def command(self, name: str) -> Any:
        """Return the command of an analysis."""
        return analysis_command(name)


app = typer.Typer(
    cls=AnalysisCommands,
    no_args_is_help=True,
    help="Analyse a campaign: EdgeFlare's own analyses, and those of installed distributions.",
)


@app.callback()
def analyse() -> None:
    """Take no options."""
