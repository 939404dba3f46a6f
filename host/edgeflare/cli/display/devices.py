"""The output of ``devices list``, ``status`` and ``check``."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable

from edgeflare import Device, DeviceError
from edgeflare._internal.text import duration
from edgeflare.cli import terminal
from edgeflare.cli.display.tables import TerminalConsole, print_json, print_result
from edgeflare.devices import CheckLine, DeviceReport, LeaseHeld, device_status
from edgeflare.reports import Column, Table

_AT_ONCE = 16

Reports: TypeAlias = Mapping[str, DeviceReport | DeviceError]


def reports_of(devices: Sequence[Device]) -> Reports:
    """Query all devices; return the report of each, or its error, by name."""
    one_question_at_a_time = threading.Lock()

    def ask(question: str) -> str | None:
        with one_question_at_a_time:
            return terminal.ask(question)

    def report(device: Device) -> DeviceReport | DeviceError:
        try:
            return device_status(device, ask=ask)
        except DeviceError as error:
            return error

    with ThreadPoolExecutor(min(_AT_ONCE, len(devices)), "edgeflare-ask") as pool:
        return dict(zip([one.name for one in devices], pool.map(report, devices), strict=True))


def print_reports(reports: Reports, as_json: bool) -> None:
    """Print the reports as a table, or as JSON by name, with "error" for devices that failed."""
    if as_json:
        print_json(
            {
                name: {"error": str(report)}
                if isinstance(report, DeviceError)
                else report.to_json()
                for name, report in reports.items()
            }
        )
        return
    console = TerminalConsole()
    for name, report in reports.items():
        console.print(f"[bold]{escape(name)}[/]", highlight=False)
        if isinstance(report, DeviceError):
            console.print(f"  [red]{escape(str(report))}[/]", soft_wrap=True, highlight=False)
        else:
            console.print(_facts(report))


def _facts(report: DeviceReport) -> RichTable:
    table = RichTable(box=box.SIMPLE, show_header=False, show_edge=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    rows = {
        "in use by": "\n".join(map(_lease, report.leases)) or "nobody",
        "board": report.board or "",
        "Python": f"{report.python}, numpy {report.numpy or 'missing'}",
        "runtimes": ", ".join(f"{name} {text}" for name, text in report.runtimes.items()) or "none",
        "temperature": _heat(report),
        "GPU": _gpu(report),
        "battery": _battery(report),
        "throttled since boot": ", ".join(report.throttled_since_boot),
        "free": ", ".join(_free(report)),
        "load": "" if report.load is None else f"{report.load:.2f}",
        "agent": f"{report.agent}, round trip {1000 * report.round_trip_s:.1f} ms",
    }
    for name, text in rows.items():
        if text:
            table.add_row(f"  {name}", escape(text))
    return table


def _lease(lease: LeaseHeld) -> str:
    share = ", shares it" if lease.share else ""
    return f"{lease.about}, since {duration(lease.since_s)}{share}"


def _heat(report: DeviceReport) -> str:
    parts = [
        "" if report.temperature_c is None else f"{report.temperature_c:.0f} °C",
        "" if report.frequency_mhz is None else f"{report.frequency_mhz:.0f} MHz",
        _throttled(report),
    ]
    return ", ".join(filter(None, parts))


def _throttled(report: DeviceReport) -> str:
    why = f": {', '.join(report.throttle_reasons)}" if report.throttle_reasons else ""
    return f"throttled{why}" if report.throttled else ""


def _gpu(report: DeviceReport) -> str:
    parts = [
        "" if report.gpu_load is None else f"{100 * report.gpu_load:.0f} % busy",
        "" if report.gpu_mhz is None else f"{report.gpu_mhz:.0f} MHz",
    ]
    return ", ".join(filter(None, parts))


def _battery(report: DeviceReport) -> str:
    if report.battery_percent is None:
        return ""
    words = {True: ", charging", False: ", not charging", None: ""}
    return f"{report.battery_percent:.0f} %{words[report.battery_charging]}"


def _free(report: DeviceReport) -> list[str]:
    sizes = {"memory": report.memory_available_bytes, "disk": report.disk_free_bytes}
    return [f"{size / 1e9:.1f} GB {name}" for name, size in sizes.items() if size is not None]


def _options(device: Device) -> str:
    return ", ".join(f"{name}={value}" for name, value in device.options.items())


_INVENTORY = (
    Column("name", 0, lambda device: device.name, text=True),
    Column("address", 0, lambda device: device.address, text=True),
    Column("python", 3, lambda device: device.python, text=True),
    Column("runtime", 1, lambda device: device.runtime or "by the model's file", text=True),
    Column("options", 2, _options, text=True),
)


def print_devices(devices: Mapping[str, Device], as_json: bool) -> None:
    """Print this machine and an inventory; addresses stay whole, however narrow the terminal is."""
    here = Device(name="local", transport="local").model_copy(update={"python": ""})
    print_result(
        as_json,
        lambda: {name: device.model_dump(mode="json") for name, device in devices.items()},
        lambda: [Table(_INVENTORY, [here, *devices.values()], unbroken=True)],
    )


_MARKS = {"ok": "[green]ok  [/]", "note": "[yellow]note[/]", "fix": "[red]fix [/]"}


def print_line(line: CheckLine) -> None:
    """Print a line of a check, and what to do below it."""
    console = TerminalConsole(soft_wrap=True, highlight=False)
    console.print(f"{_MARKS[line.state]} {escape(f'{line.name}: {line.detail}')}")
    if line.fix:
        console.print(f"     -> {escape(line.fix)}")


def print_lines_as_json(lines: Iterable[CheckLine]) -> None:
    """Print a check as one JSON object."""
    listed = list(lines)
    print_json(
        {
            "ready": all(line.ok for line in listed),
            "lines": [
                {
                    "name": line.name,
                    "ok": line.ok,
                    "state": line.state,
                    "detail": line.detail,
                    "fix": line.fix,
                }
                for line in listed
            ],
        }
    )
