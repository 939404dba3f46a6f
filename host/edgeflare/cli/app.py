"""The commands and their help."""

from collections.abc import Callable
from typing import Annotated

import typer

from edgeflare.cli import (
    analyse,
    campaigns,
    corpus,
    devices,
    nightly,
    terminal,
)
from edgeflare.cli.groups import AllCommands, PluginGroup, add_analysis
from edgeflare.cli.options import command

app = typer.Typer(
    cls=AllCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find the inputs on which a compressed model, on the real device, decides differently "
    "from the model it was made from.",
)
_COMMANDS: dict[Callable[..., None] | str, str] = {
    campaigns.demo: "DemoSettings",
    campaigns.check: "CheckSettings",
    campaigns.run: "RunSettings",
    campaigns.survey: "SurveySettings",
    campaigns.init: "InitSettings",
    campaigns.inputs: "InputsSettings",
    campaigns.resume: "ResumeSettings",
    campaigns.status: "StatusSettings",
    campaigns.show: "ShowSettings",
    campaigns.export: "ExportSettings",
    campaigns.report: "ReportSettings",
    "replay": "",
    "explain": "",
    "shrink": "",
    "compare": "",
    nightly.nightly: "NightlySettings",
    campaigns.selftest: "SelftestSettings",
}
for _function, _settings in _COMMANDS.items():
    if isinstance(_function, str):  # the name of an analysis
        add_analysis(app, _function)
    else:
        command(app, _settings)(_function)
app.add_typer(analyse.app, name="analyse")
app.add_typer(devices.app, name="devices")
app.add_typer(corpus.app, name="corpus")
repair = typer.Typer(
    cls=PluginGroup,
    no_args_is_help=True,
    help="Find what to deploy in place of a model that deviates, judged by searching again.",
)
for _name in ("recipes", "train", "abstain", "examples"):
    add_analysis(repair, _name)
app.add_typer(repair, name="repair")


def _version(wanted: bool) -> None:
    if wanted:
        from edgeflare import __version__

        terminal.echo(f"edgeflare {__version__}")
        raise typer.Exit


@app.callback()
def settings(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that every command shares."""
    del version
    terminal.set_debug(debug)
