"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

DEVICES = "Devices"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder to make for the campaign; by default under campaigns/."),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="local, an inventory name, ssh://user@host:port or adb://SERIAL. Repeat it for a fleet.",
        rich_help_panel=DEVICES,
    ),
]
OtherDevices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="Other devices than the campaign's; may be repeated.",
        rich_help_panel=DEVICES,
    ),
]
Inventory = Annotated[
    Path | None, typer.Option(help="The device inventory (TOML).", rich_help_panel=DEVICES)
]
Python = Annotated[
    str | None,
    typer.Option(
        help="The devices' Python command, over what the inventory says; else python3 there.",
        rich_help_panel=DEVICES,
    ),
]
FleetMode = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        metavar="MODE",
        help="split: devices of one kind share the seeds (the default). replicate: each device "
        "searches from every seed, then every trigger is tried on every device and their answers are "
        "compared.",
        rich_help_panel=DEVICES,
    ),
]
DeviceQueries = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Once a device was asked N times, no new search begins on it.",
        rich_help_panel=DEVICES,
    ),
]
TotalQueries = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="The same for all devices together.",
        rich_help_panel=DEVICES,
    ),
]
Handover = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="A device away for so long hands its seeds to the others; default 30.",
        rich_help_panel=DEVICES,
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="With no device left for so long the campaign pauses; default 600.",
        rich_help_panel=DEVICES,
    ),
]
