"""``devices virtual up``, ``status`` and ``down``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import Json
from edgeflare.cli.terminal import echo_err, with_exit_codes

app = typer.Typer(
    no_args_is_help=True,
    help="An emulated arm64 board on this machine: Debian, its own kernel, a real SSH server. "
    "It is reached through 127.0.0.1 only and reaches nothing itself; what is written to its disk "
    "is forgotten when it stops.",
)

Name = Annotated[str, typer.Option(help="The board's name in the inventory.")]


@app.command()
@with_exit_codes
def up(
    name: Name = "virtual",
    port: Annotated[
        int | None, typer.Option(help="Port of its SSH server on 127.0.0.1; default a free one.")
    ] = None,
    cores: Annotated[int, typer.Option(help="Its cores, 1 to 8.")] = 2,
    memory: Annotated[int, typer.Option(help="Its memory in MB.")] = 1024,
    cpu: Annotated[
        str,
        typer.Option(help="cortex-a53, cortex-a72 or cortex-a76, as in a Raspberry Pi 3, 4, 5."),
    ] = "cortex-a72",
    mirror: Annotated[
        str | None, typer.Option(help="A Debian mirror; default that of this machine's apt.")
    ] = None,
    keyring: Annotated[
        Path | None, typer.Option(help="The keys that Debian signs with; default this machine's.")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build it anew, and boot it afresh.")
    ] = False,
) -> None:
    """Build (once) and boot a virtual board; it is in the inventory then. No root is needed."""
    from edgeflare.cli.display.virtual import Steps, up_text
    from edgeflare.virtual import BoardSettings, board_up

    settings = BoardSettings(name, port, cores, memory, cpu, mirror, keyring, rebuild)
    steps = Steps(sys.stderr)
    try:
        report = board_up(settings, steps)
    finally:
        steps.close()
    print(up_text(report))  # noqa: T201


@app.command()
@with_exit_codes
def status(name: Name = "virtual", json: Json = False) -> None:
    """Show whether a virtual board runs, where it is reached, and what is on it."""
    from edgeflare.cli.display.tables import print_json
    from edgeflare.cli.display.virtual import status_text
    from edgeflare.virtual import board_status

    report = board_status(name)
    if json:
        print_json(report.to_json())
    else:
        print(status_text(report))  # noqa: T201


@app.command()
@with_exit_codes
def down(
    name: Name = "virtual",
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove its keys, its state and its image, too.")
    ] = False,
) -> None:
    """Stop a virtual board; what was written to its disk is gone."""
    from edgeflare.cli.display.virtual import Steps, down_text
    from edgeflare.virtual import board_down

    steps = Steps(sys.stderr)
    try:
        report = board_down(name, delete, steps)
    finally:
        steps.close()
    echo_err(down_text(report))
