"""``analyse``: the analyses that installed distributions declare, each with its own flags."""

from functools import partial
from typing import Any

import typer

from edgeflare.cli.groups import PluginGroup
from edgeflare.cli.options import CampaignFolder, Json, command_with_flags
from edgeflare.cli.terminal import with_exit_codes


class AnalysisCommands(PluginGroup):
    """One command for each analysis."""

    def declared(self) -> list[str]:
        """Return the names of the analyses that have no command of their own."""
        from edgeflare.analysis import analysis_names

        return [*analysis_names()]

    def command(self, name: str) -> Any:
        """Return the command of an analysis, with the flags of its settings."""
        from pydantic import TypeAdapter

        from edgeflare.analysis import analysis
        from edgeflare.campaign import flags_of

        plugin = analysis(name)
        settings = flags_of(plugin.settings)
        values = partial(TypeAdapter(plugin.result).dump_python, mode="json")

        def command(ctx: typer.Context, campaign: CampaignFolder, json: Json = False) -> None:
            from edgeflare.analysis import RunContext, run_analysis
            from edgeflare.cli.display.tables import print_result

            typed = {setting.places[0][0]: ctx.obj[setting.flag.parameter] for setting in settings}
            stated = {field: value for field, value in typed.items() if value not in (None, [])}
            result = run_analysis(name, campaign, stated, RunContext())
            print_result(json, lambda: values(result), lambda: plugin.sections(result))

        app = typer.Typer(add_completion=False)
        kind = command_with_flags(lambda: settings)
        app.command(name, cls=kind, help=plugin.about)(with_exit_codes(command))
        return typer.main.get_command(app)


app = typer.Typer(
    cls=AnalysisCommands,
    no_args_is_help=True,
    help="Analyse a campaign by an analysis that an installed distribution declares.",
)


@app.callback()
def analyse() -> None:
    """Take no options."""
