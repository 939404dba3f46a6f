"""The commands and their help."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from edgeflare._internal.text import visible_text
from edgeflare.cli import (
    bench,
    campaigns,
    compare,
    corpus,
    devices,
    distributed,
    explain,
    inputs,
    inspect,
    nightly,
    repair,
    replay,
    terminal,
)

_EMPTY_FLAG = re.compile("--[a-z][a-z0-9-]*=")
_WrongUsage: type[Exception] = typer.BadParameter.__bases__[
    0
]  # click's, which typer has within it of late


class _Commands(TyperGroup):
    """All commands; the parser's own errors, which repeat what was typed, are shown as all text is."""

    def make_context(self, info_name: Any, args: Any, *more: Any, **kwargs: Any) -> Any:
        with _shown_errors():
            _check_not_empty(args)
            return super().make_context(info_name, args, *more, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _shown_errors():
            return super().invoke(ctx)


def _check_not_empty(args: Sequence[str]) -> None:
    """Raise for an argument without text, such as that of a shell's variable that is not set.

    As a path it would be the working folder.
    """
    for before, text in zip(("", *args), args, strict=False):
        flag = text[:-1] if _EMPTY_FLAG.fullmatch(text) else before
        if not text or flag != before:
            of = f" of {flag}" if flag.startswith("-") else ""
            raise typer.BadParameter(
                f"the value{of} is an empty text; state one, or leave it out (a variable of the "
                "shell may not be set)"
            )


@contextmanager
def _shown_errors() -> Iterator[None]:
    try:
        yield
    except _WrongUsage as error:
        if isinstance(message := getattr(error, "message", None), str):
            error.__dict__["message"] = visible_text(message)
        raise


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find the inputs on which a compressed model, on the real device, decides differently "
    "from the model it was made from.",
)
_COMMANDS: dict[Callable[..., None], type[TyperCommand] | None] = {
    campaigns.demo: campaigns.DemoCommand,
    campaigns.run: campaigns.RunCommand,
    campaigns.survey: campaigns.SurveyCommand,
    campaigns.init: None,
    inputs.inputs: inputs.InputsCommand,
    campaigns.resume: campaigns.ResumeCommand,
    campaigns.status: None,
    campaigns.show: None,
    campaigns.export: None,
    campaigns.report: None,
    replay.replay: replay.ReplayCommand,
    explain.explain: explain.ExplainCommand,
    explain.shrink: explain.ShrinkCommand,
    compare.compare: compare.CompareCommand,
    nightly.nightly: None,
    campaigns.selftest: None,
    distributed.worker: None,
}
for _command, _class in _COMMANDS.items():
    app.command(cls=_class)(terminal.with_exit_codes(_command))
app.add_typer(devices.app, name="devices")
app.add_typer(bench.app, name="bench")
app.add_typer(corpus.app, name="corpus")
app.add_typer(repair.app, name="repair")
app.add_typer(inspect.app, name="inspect")


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
