"""Results for people (tables on stdout) and for machines (one JSON object on stdout)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare import CheckLine, Device, ExportReport


def print_json(value: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(value, indent=2))  # noqa: T201


def print_export(report: ExportReport, as_json: bool) -> None:
    """Print what an export wrote."""
    if as_json:
        print_json(report.to_json())
        return
    statuses = ", ".join(f"{count} {status}" for status, count in report.by_status.items())
    Console().print(
        f"{report.findings} findings ({escape(statuses)}), {report.files} files in "
        f"{escape(report.folder)}"
    )


def print_devices(devices: Mapping[str, Device], as_json: bool) -> None:
    """Print an inventory."""
    if as_json:
        print_json({name: device.model_dump(mode="json") for name, device in devices.items()})
        return
    table = plain_table("name", "address", "python", "runtime", "options")
    table.add_row("local", "this machine", "", "by the model's file", "")
    for device in devices.values():
        address = "this machine" if device.transport == "local" else _address(device)
        options = ", ".join(f"{key}={value}" for key, value in device.options.items())
        table.add_row(
            escape(device.name),
            escape(address),
            escape(device.python or ""),
            device.runtime or "by the model's file",
            escape(options),
        )
    Console().print(table)


def _address(device: Device) -> str:
    user = f"{device.user}@" if device.user else ""
    return f"ssh://{user}{device.host}" + (f":{device.port}" if device.port else "")


def print_check(lines: Iterable[CheckLine], as_json: bool) -> None:
    """Print a device's check, a line each."""
    listed = list(lines)
    if as_json:
        print_json(
            [
                {"name": one.name, "ok": one.ok, "detail": one.detail, "fix": one.fix}
                for one in listed
            ]
        )
        return
    console = Console(soft_wrap=True, highlight=False)
    for line in listed:
        mark = "[green]ok [/]" if line.ok else "[red]FIX[/]"
        console.print(f"{mark} {escape(f'{line.name}: {line.detail}')}")
        if line.fix:
            console.print(f"    {escape(line.fix)}")


def plain_table(*columns: str, header: bool = True) -> Table:
    """Return a table with lines only below its heading; what is too long for a column is folded."""
    table = Table(box=box.SIMPLE, show_header=header, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
