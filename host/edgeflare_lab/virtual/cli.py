"""``devices virtual up``, ``status`` and ``down``."""

import shlex
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel, Field

from edgeflare._internal.flags import Flag
from edgeflare.cli.options import Json, command
from edgeflare.cli.terminal import echo, echo_err

if TYPE_CHECKING:
    from edgeflare_lab.virtual import BoardSettings, BoardStatus, StopReport, UpReport

app = typer.Typer(
    no_args_is_help=True,
    help="An emulated arm64 board on this machine: Debian, its own kernel, a real SSH server. "
    "It is reached through 127.0.0.1 only and reaches nothing itself; what is written to its disk "
    "is forgotten when it stops.",
)


class BoardName(BaseModel):
    """``devices virtual status``."""

    name: Annotated[str, Flag("--name")] = Field(
        "virtual", description="The board's name in the inventory."
    )


class DownSettings(BoardName):
    """``devices virtual down``."""

    delete: Annotated[bool, Flag("--delete")] = Field(
        False, description="Remove its keys, its state and its image, too."
    )


def _up_settings() -> type[BaseModel]:
    from edgeflare_lab.virtual import BoardSettings

    return BoardSettings


@command(app, _up_settings)
def up(settings: "BoardSettings") -> None:
    """Build (once) and boot a virtual board; it is in the inventory then. No root is needed."""
    from edgeflare_lab.virtual import board_up

    with closing(Steps()) as steps:
        report = board_up(settings, steps)
    echo(up_text(report))


@command(app, lambda: BoardName)
def status(settings: BoardName, json: Json = False) -> None:
    """Show whether a virtual board runs, where it is reached, and what is on it."""
    from edgeflare.cli.display.tables import print_json
    from edgeflare_lab.virtual import board_status

    report = board_status(settings.name)
    if json:
        print_json(report.to_json())
    else:
        echo(_status_text(report))


@command(app, lambda: DownSettings)
def down(settings: DownSettings) -> None:
    """Stop a virtual board; what was written to its disk is lost."""
    from edgeflare_lab.virtual import board_down

    with closing(Steps()) as steps:
        report = board_down(settings.name, settings.delete, steps)
    echo_err(_down_text(report))


class Steps:
    """Prints each step when it begins, and its duration when it is done."""

    def __init__(self) -> None:
        self._open = False

    def __call__(self, what: str, seconds: float | None) -> None:
        """Print a step's beginning (None) or its end."""
        echo_err(f"{what} ..." if seconds is None else f" {seconds:.1f} s\n", end="")
        self._open = seconds is None

    def close(self) -> None:
        """End the line of an unfinished step."""
        if self._open:
            echo_err("")
            self._open = False


def up_text(report: "UpReport") -> str:
    """Return the paragraph that ends `up`."""
    status = report.status
    state, name = status.state, shlex.quote(status.name)
    if state is None:
        return ""
    if report.was_up:
        head = f"The board {status.name!r} is up already, on port {state.port}."
    else:
        size = "" if status.build is None else f"{status.build.image_mb} MB on disk"
        built = f"built in {report.built_s:.0f} s, " if report.built_s is not None else ""
        head = f"The board {status.name!r} is up: booted in {state.boot_s:.0f} s ({built}{size})."
    return "\n".join(
        [
            head,
            *(f"Note: {note}." for note in report.notes),
            f"Try it:   edgeflare demo --device {name}",
            f"Check it: edgeflare devices check {name}",
            f"Enter it: {status.ssh}",
            f"Stop it:  edgeflare devices virtual down{_option(status.name)}",
            "It is reached from this machine only and reaches nothing itself.",
            "What is written to its disk is forgotten when it stops.",
            "Its processor is emulated: its speed says nothing of a real board's.",
        ]
    )


def _status_text(status: "BoardStatus") -> str:
    """Return a board's status, one line for each item."""
    state, build = status.state, status.build
    up = f"edgeflare devices virtual up{_option(status.name)}"
    if state is None and status.running:
        return (
            f"{status.name}: is booting (process {status.pid}); "
            f"if no other command is at it, {up} boots it anew"
        )
    if state is None:
        return f"no virtual board {status.name!r}; {up} makes one"
    data = status.to_json()
    running = (
        f"runs since {data['since']} (process {status.pid}, {status.memory_used_mb} MB of memory)"
    )
    lines = [
        f"{status.name}: {running if status.running else f'does not run; {up} starts it'}",
        (
            f"address   127.0.0.1, port {state.port}, from this machine only; "
            "it reaches nothing itself"
        ),
        f"machine   {state.cores} {state.cpu} cores, {state.memory_mb} MB, emulated",
        f"boot      {state.boot_s:.0f} s",
        "disk      begins fresh at each boot; what is written to it is forgotten when it stops",
    ]
    if build is None:
        lines.append(f"build     gone from the cache; {up} makes it again")
    else:
        libraries = ", ".join(f"{name} {version}" for name, version in build.libraries.items())
        lines += [
            f"system    Debian {build.debian}, Linux {build.kernel}, Python {state.python}",
            f"libraries {libraries}",
            f"build     {build.image_mb} MB in {build.folder}",
            f"          made in {build.built_s:.0f} s from {build.mirror}",
        ]
    return "\n".join([*lines, f"shell     {status.ssh}"])


def _down_text(report: "StopReport") -> str:
    """Return what `down` did."""
    if not report.made:
        return f"there is no virtual board {report.name!r}"
    done = "stopped" if report.ran else "did not run"
    kept = "" if report.deleted else "; up starts it again within seconds, down --delete removes it"
    return f"{report.name} {done}{' and is removed' if report.deleted else kept}"


def _option(name: str) -> str:
    return "" if name == "virtual" else f" --name {shlex.quote(name)}"
