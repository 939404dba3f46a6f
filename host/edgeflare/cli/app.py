"""The commands and their help."""

from collections.abc import Callable
from typing import Annotated

import typer
from typer.core import TyperCommand

from edgeflare.cli import (
    bench_commands,
    campaign_commands,
    compare_command,
    corpus_commands,
    device_commands,
    guard,
    nightly_command,
    replay_command,
    report_command,
    run_command,
    selftest_command,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find the inputs on which a compressed model, on the real device, decides differently from "
    "the model it was made from.",
)
_COMMANDS: dict[Callable[..., None], type[TyperCommand] | None] = {
    campaign_commands.demo: campaign_commands.DemoCommand,
    run_command.run: run_command.RunCommand,
    campaign_commands.init: None,
    campaign_commands.resume: campaign_commands.ResumeCommand,
    campaign_commands.status: None,
    campaign_commands.show: None,
    campaign_commands.export: None,
    report_command.report: None,
    replay_command.replay: replay_command.ReplayCommand,
    compare_command.compare: compare_command.CompareCommand,
    nightly_command.nightly: None,
    selftest_command.selftest: None,
}
for _command, _class in _COMMANDS.items():
    app.command(cls=_class)(guard.guarded(_command))
app.add_typer(device_commands.app, name="devices")
app.add_typer(bench_commands.app, name="bench")
app.add_typer(corpus_commands.app, name="corpus")


def _version(wanted: bool) -> None:
    if wanted:
        from edgeflare import __version__

        print(f"edgeflare {__version__}")  # noqa: T201
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
    guard.set_debug(debug)
