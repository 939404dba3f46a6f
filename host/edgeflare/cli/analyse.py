"""``analyse``: the analyses by name, each with its own flags."""

import shlex
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from edgeflare._internal.text import ADDRESS
from edgeflare.cli.groups import PluginGroup, command_of
from edgeflare.cli.options import (
    Json,
    command_with_flags,
    flags_of_settings,
    folder,
    settings_from,
)
from edgeflare.cli.terminal import ask, echo_err, end_by, handling_signals, with_exit_codes

if TYPE_CHECKING:
    from edgeflare._internal.flags import SettingFlag


def analysis_command(name: str) -> Any:
    """Return the command of an analysis, with the flags of its settings.

    Raises UsageError where it can't be used.
    """
    from edgeflare.analysis import analysis

    plugin = analysis(name)
    place, scope = _place(plugin), getattr(plugin, "scope", "campaign")

    def run(ctx: typer.Context, json: Json = False) -> None:
        campaign = ctx.obj.pop(place.flag.parameter)
        _run(name, [campaign] if scope == "folder" else campaign, ctx.obj, json)

    kind = command_with_flags(lambda: [place, *flags_of_settings(plugin.settings)])
    return command_of(with_exit_codes(run), name, cls=kind, help=plugin.about)


def _place(plugin: Any) -> "SettingFlag":
    """Return the argument that is the campaign, or the campaigns, of an analysis."""
    from pydantic.fields import FieldInfo

    from edgeflare._internal.flags import Flag, SettingFlag

    several = getattr(plugin, "scope", "campaign") == "campaigns"
    flag = Flag("campaign", help=f"A campaign's folder, or {ADDRESS}.")
    if several:
        flag = Flag("campaigns", help="Campaigns' folders or addresses.")
    flag = replace(getattr(plugin, "argument", flag), parser=folder)
    field = FieldInfo(annotation=tuple[Path, ...] if several else Path)
    return SettingFlag(flag, field, ((flag.name,),))


def _run(name: str, campaign: Path | list[Path], given: Any, json: bool) -> None:
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
    settings = settings_from(plugin.settings, given, f"analysis {name}")
    several = isinstance(campaign, list)
    first = campaign[0] if isinstance(campaign, list) else campaign
    file = getattr(settings, "class_names", None)
    names = None if file is None else load_class_names(file, first)
    namer = str if several else class_namer(first, names)
    each, go_on = getattr(plugin, "each", "campaign"), getattr(plugin, "go_on", None)
    with handling_signals() as stop, batch_display(stop, what=f"{each} ", advice=go_on) as batch:

        def show(event: Event) -> None:
            if isinstance(event, Stage) and not event.detail:  # of `RunContext.tell`
                event = Stage(name, event.name, event.total)
            batch.view(event)

        context = RunContext(progress=show, ask=ask, batch=batch)
        result = run_analysis(name, campaign, settings, context)

    def values() -> Any:
        from edgeflare._internal.records import as_json

        if hasattr(plugin, "to_json"):
            return plugin.to_json(result)
        return result.to_json() if hasattr(result, "to_json") else as_json(result, plugin.result)

    def document() -> list[Block]:
        with nullcontext() if several else Store.open(first) as store:
            return [*section_blocks(sections_of(plugin, name, result, namer, store))]

    print_result(json, values, document)
    advice = ""
    if hasattr(plugin, "advice"):
        advice = plugin.advice(result)
    elif getattr(plugin, "stored", True) and not several:
        advice = f"A page with it: {shlex.join(['edgeflare', 'report', campaign_text(first)])}"
    if advice and not json:
        echo_err(f"\n{advice}")
    if hasattr(plugin, "write"):
        plugin.write(result, settings)
    if hasattr(plugin, "limits"):
        checks = plugin.limits(result)
        undecided = [check.name for check in checks if check.undecided]
        end_by([check.name for check in checks if check.crossed], undecided)
    if hasattr(plugin, "exit_code"):
        raise typer.Exit(plugin.exit_code(result))


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
