"""Groups of commands: those that are stated here, and those that installed distributions declare.

A distribution declares a command by an entry point of the group ``edgeflare.commands``: a function, whose parameters
are the command's, or a `typer.Typer` with commands of its own. The name ``devices.NAME`` stands for a command of the
group ``devices``. Nothing is imported before a command is used or listed in ``--help``.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from edgeflare._internal import plugins
from edgeflare._internal.text import visible_text
from edgeflare.cli.terminal import with_exit_codes

_EMPTY_FLAG = re.compile("--[a-z][a-z0-9-]*=")
_WrongUsage: type[Exception] = typer.BadParameter.__bases__[0]
"""Click's, which typer has within it of late."""


class AnalysisPlace(TyperCommand):
    """Stands for the command of an analysis in a group until that is used, see `add_analysis`."""

    analysis: ClassVar[str]


def add_analysis(app: typer.Typer, command: str, analysis: str | None = None) -> None:
    """Make an analysis a command of a `PluginGroup`, after those that it has; by default of its name."""

    def stand_for() -> None: ...

    kind = type("Place", (AnalysisPlace,), {"analysis": analysis or command})
    app.command(command, cls=kind)(stand_for)


class PluginGroup(TyperGroup):
    """Commands, analyses among them, of which plug-ins may declare more; one that is broken fails alone."""

    def declared(self) -> list[str]:
        """Return the names of the plug-ins' commands; nothing is imported."""
        return []

    def command(self, name: str) -> Any:
        """Return the command of a plug-in. Raises UsageError where it can't be used."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the stated commands, in their order, then those of plug-ins."""
        stated = super().list_commands(ctx)
        return [*stated, *(name for name in self.declared() if name not in stated)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; of a plug-in that can't be used one that says so in a sentence."""
        from edgeflare.errors import UsageError

        command: Any = super().get_command(ctx, cmd_name)
        if isinstance(command, AnalysisPlace):
            from edgeflare.cli.analyse import analysis_command as made

            name = command.analysis
        elif command is None and (cmd_name in self.declared() or self._may_lack()):
            made, name = self.command, cmd_name
        else:
            return command
        try:
            command = made(name)
        except UsageError as error:
            command = _failing(str(error), cmd_name)
        self.commands[cmd_name] = command
        return command

    def _may_lack(self) -> bool:
        """Whether an unknown command may be a plug-in's of which nothing is known, as the installation is older."""
        return type(self).declared is not PluginGroup.declared and not plugins.built_in("command")


class CommandGroup(PluginGroup):
    """Commands, and those of the entry points ``edgeflare.commands``."""

    below: ClassVar[str] = ""
    """What the names of its plug-ins' commands begin with."""

    def declared(self) -> list[str]:
        """Return the names of the commands, without what they begin with."""
        start = len(self.below)
        names = [name[start:] for name in plugins.names("command") if name.startswith(self.below)]
        return [name for name in names if "." not in name]

    def command(self, name: str) -> Any:
        """Return the command that a function or a `typer.Typer` is."""
        loaded = plugins.load("command", self.below + name)
        if not (isinstance(loaded, typer.Typer) or callable(loaded)):
            why = "is no function and no typer.Typer"
            raise plugins.unusable("command", self.below + name, why)
        try:
            if isinstance(loaded, typer.Typer):
                command: Any = typer.main.get_group(
                    loaded
                )  # get_command would add flags of completion
                command.name = name
            else:
                command = command_of(loaded, name, cls=getattr(loaded, "command_class", None))
        except Exception as error:  # of parameters that typer can't take: any
            why = f"has parameters that no command has ({type(error).__name__}: {error})"
            raise plugins.unusable("command", self.below + name, why) from error
        _map_errors(command)
        return command


class DeviceCommands(CommandGroup):
    """The commands of devices."""

    below = "devices."


def command_of(function: Callable[..., None], name: str, **settings: Any) -> Any:
    """Return the command that a function with typer's annotations is."""
    app = typer.Typer(add_completion=False)
    app.command(name, **settings)(function)
    return typer.main.get_command(app)


def _failing(sentence: str, name: str) -> Any:
    """Return a command that ends with this sentence, whatever it is called with."""

    def fail() -> None:
        from edgeflare.errors import UsageError

        raise UsageError(sentence)

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    text = visible_text(sentence)
    settings = {"help": text, "add_help_option": False, "context_settings": anything}
    return command_of(with_exit_codes(fail), name, **settings)


def _map_errors(command: Any) -> None:
    """Let errors of a plug-in's commands end as those of all commands do."""
    for inner in getattr(command, "commands", {}).values():
        _map_errors(inner)
    if command.callback is not None:
        command.callback = with_exit_codes(command.callback)


class AllCommands(CommandGroup):
    """All commands; the parser's own errors, which repeat what was typed, are shown as all text is."""

    def make_context(self, info_name: Any, args: Any, *more: Any, **kwargs: Any) -> Any:
        """Parse the arguments; raises for one without text."""
        with _shown_errors():
            _check_not_empty(args)
            return super().make_context(info_name, args, *more, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
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
            error.__dict__["message"] = visible_text(_misread(error.__cause__) or message)
        raise


def _misread(cause: Any) -> str:
    """Return what a number or the like must be, where what was typed is none; of another cause "".

    Late versions of typer leave the reading to pydantic, whose words don't repeat what was typed.
    """
    from pydantic import ValidationError

    from edgeflare._internal.flags import problem_words

    problem: Any = cause.errors()[0] if isinstance(cause, ValidationError) else {"type": ""}
    return problem_words(problem, "the value") if "_parsing" in problem["type"] else ""
