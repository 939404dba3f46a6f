"""Results for people (tables on stdout) and for machines (one JSON object on stdout)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare import CheckLine, Device, ExportReport, Summary

_PAIRS_SHOWN = 10


def print_json(value: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(value, indent=2))  # noqa: T201


def print_summary(summary: Summary, as_json: bool) -> None:
    """Print what a campaign found."""
    if as_json:
        print_json(summary.to_json())
        return
    console = Console()
    console.print(_key_figures(summary))
    if summary.label_pairs:
        console.print(_label_pairs(summary))


def _key_figures(summary: Summary) -> Table:
    table = _table("", "", header=False)
    for name in ("original", "deployed"):
        model = summary.models.get(name)
        if model:
            table.add_row(
                f"{name} model", f"{escape(model['name'])} ({_runtime(model['runtime'])})"
            )
    for device in summary.devices:
        print_of = device["fingerprint"]
        board = print_of.get("board") or print_of.get("cpu") or ""
        table.add_row("device", escape(f"{device['name']} {board}".strip()))
    rate = "-" if summary.success_rate is None else f"{100 * summary.success_rate:.1f} %"
    table.add_row(
        "success rate", f"[bold]{rate}[/] ({summary.found} of {summary.searched} searched)"
    )
    for status, words in _STATUS_WORDS.items():
        if summary.by_status.get(status):
            table.add_row(words, str(summary.by_status[status]))
    if summary.ties:
        table.add_row("seeds with a top-1 tie", str(summary.ties))
    if summary.skipped:
        table.add_row("files skipped", str(summary.skipped))
    if summary.unfinished:
        table.add_row("seeds unfinished", str(summary.unfinished))
    if summary.queries_found and summary.seconds_found:
        queries, seconds = summary.queries_found, summary.seconds_found
        table.add_row(
            "search queries for a trigger",
            f"mean {queries.mean:.1f}, median {queries.median:.0f}, 90 % {queries.p90:.0f}",
        )
        table.add_row(
            "seconds for a trigger", f"mean {seconds.mean:.3f}, median {seconds.median:.3f}"
        )
    if summary.original_margin is not None and summary.deployed_margin is not None:
        table.add_row(
            "median margin",
            f"original {summary.original_margin:.4f}, deployed {summary.deployed_margin:.4f}",
        )
    if summary.l2 is not None and summary.linf is not None:
        table.add_row(
            "median distance to the seed", f"L2 {summary.l2:.2f}, Linf {summary.linf:.0f} levels"
        )
    total = summary.total_queries
    table.add_row(
        "queries in all",
        f"seed {total['seed']}, search {total['search']}, confirmation {total['confirmation']}, "
        f"host only {total['host_only']}",
    )
    return table


_STATUS_WORDS = {
    "seed-deviates": "seeds that deviate already",
    "unstable": "unstable (did not repeat)",
    "nonfinite": "NaN or infinity in an output",
    "exhausted": "nothing within the query budget",
    "timeout": "nothing within the time budget",
    "gave-up": "given up by the strategy",
}


def _label_pairs(summary: Summary) -> Table:
    table = _table("original says", "deployed says", "triggers")
    for pair in summary.label_pairs[:_PAIRS_SHOWN]:
        table.add_row(str(pair.original), str(pair.deployed), str(pair.count))
    rest = summary.label_pairs[_PAIRS_SHOWN:]
    if rest:
        table.add_row(f"{len(rest)} more pairs", "", str(sum(pair.count for pair in rest)))
    return table


def _runtime(runtime: Mapping[str, Any]) -> str:
    return escape(f"{runtime.get('name', '?')} {runtime.get('version', '')}".strip())


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
    table = _table("name", "address", "python", "runtime", "options")
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


def _table(*columns: str, header: bool = True) -> Table:
    table = Table(box=box.SIMPLE, show_header=header, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
