"""``devices list``, ``status``, ``check``, ``trust`` and ``prune``."""

from typing import TYPE_CHECKING

import typer

from edgeflare._internal.text import names_text
from edgeflare.cli.groups import DeviceCommands
from edgeflare.cli.options import Json, command
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare import Device
    from edgeflare.cli.settings import (
        DeviceCheckSettings,
        DevicePruneSettings,
        DeviceSettings,
        DeviceStatusSettings,
        DeviceTrustSettings,
        InventorySettings,
    )

app = typer.Typer(
    cls=DeviceCommands, no_args_is_help=True, help="The devices that run deployed models."
)


@command(app, "InventorySettings", "list")
def list_devices(settings: "InventorySettings", json: Json = False) -> None:
    """List the devices of the inventory."""
    from edgeflare import load_inventory
    from edgeflare.cli.display.devices import print_devices

    print_devices(load_inventory(settings.inventory), json)


@command(app, "DeviceStatusSettings")
def status(settings: "DeviceStatusSettings", json: Json = False) -> None:
    """Show who uses each device, and how it is: temperature, memory, disk, load, Python, runtimes.

    Without names, virtual boards that don't run are left out.
    """
    from edgeflare import DeviceError, UsageError, load_inventory, resolve_device
    from edgeflare.cli.display.devices import print_reports, reports_of
    from edgeflare.devices import board_stopped

    known = load_inventory(settings.inventory)
    names = list(dict.fromkeys(settings.devices or known))
    if not settings.devices:
        stopped = [name for name in names if board_stopped(known[name])]
        names = [name for name in names if name not in stopped]
        if stopped:
            echo_err(
                f"left out, for they don't run: {names_text(stopped)} (`edgeflare devices virtual "
                "up`)"
            )
        if stopped and not names:
            return
    if not names:
        raise UsageError(
            "the inventory has no devices; name some, as in `edgeflare devices status local`"
        )
    reports = reports_of([resolve_device(name, known) for name in names])
    print_reports(reports, json)
    away = [name for name, report in reports.items() if isinstance(report, DeviceError)]
    if away:
        raise DeviceError(
            f"{len(away)} of {len(reports)} devices can't be asked: {names_text(away)}"
        )


@command(app, "DeviceCheckSettings")
def check(settings: "DeviceCheckSettings", json: Json = False) -> None:
    """Try a device step by step, from the connection to one inference, and say what to mend."""
    from edgeflare import DeviceError
    from edgeflare.cli.display.devices import print_line, print_lines_as_json
    from edgeflare.cli.terminal import ask
    from edgeflare.devices import check_device

    entry = _resolve(settings)
    if settings.python is not None:
        entry = entry.model_copy(update={"python": settings.python})
    lines = check_device(entry, model=settings.model, ask=ask, on_line=None if json else print_line)
    if json:
        print_lines_as_json(lines)
    failed = [line.name for line in lines if not line.ok]
    if failed:
        raise DeviceError(f"{settings.device} is not ready: {', '.join(failed)}")


@command(app, "DeviceTrustSettings")
def trust(settings: "DeviceTrustSettings") -> None:
    """Show a device's SSH host key and, if you say so, add it to known_hosts."""
    from edgeflare.cli.terminal import ask, confirm
    from edgeflare.devices import fetch_host_key, held_place, trust_host_key
    from edgeflare.errors import HostKeyError

    device, fingerprint = settings.device, settings.fingerprint
    with held_place(_resolve(settings)) as entry:
        if fingerprint is None:
            key = fetch_host_key(entry, ask=ask)
            if key.trusted:
                echo_err(f"{device} shows {key.fingerprint}, which is trusted already")
                return
            echo_err(f"{device} shows a {key.type} host key with fingerprint {key.fingerprint}")
            if not confirm("Is this the device's own fingerprint? Trust it?"):
                raise HostKeyError(
                    "nothing was trusted; compare the fingerprint with the one on the device "
                    f"(ssh-keygen -lf {key.file}), then: "
                    f"edgeflare devices trust {device} --fingerprint {key.fingerprint}"
                )
            fingerprint = key.fingerprint
        where = trust_host_key(entry, fingerprint, ask=ask)
    echo_err(f"trusted; the key is in {where}")


@command(app, "DevicePruneSettings")
def prune(settings: "DevicePruneSettings") -> None:
    """Remove EdgeFlare's cached agents and models from a device."""
    from edgeflare.cli.terminal import ask
    from edgeflare.devices import prune_device

    everything = settings.everything
    report = prune_device(_resolve(settings), everything=everything, ask=ask)
    kept = "" if everything else "; files used within the last hour stay, --all removes them, too"
    files = "1 file" if report.files == 1 else f"{report.files} files"
    echo_err(f"removed {files}, {report.bytes / 1e6:.1f} MB{kept}")


def _resolve(settings: "DeviceSettings") -> "Device":
    from edgeflare import load_inventory, resolve_device

    return resolve_device(settings.device, load_inventory(settings.inventory))
