"""``status``: the progress of a campaign in any process, and its devices, one a line."""

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from rich.console import Group
from rich.live import Live
from rich.text import Text

from edgeflare import campaign_status
from edgeflare.campaign import CampaignStatus
from edgeflare.cli.display.streams import has_no_output
from edgeflare.cli.display.tables import TerminalConsole, json_text, print_json
from edgeflare.cli.terminal import echo, echo_err
from edgeflare.devices import DeviceStatus

MOST_LINES = 12
_NAME_WIDTH = 14
_GAP = "  "


class _Column(NamedTuple):
    """A figure of a device; of two columns the one with the greater `need` is dropped later."""

    heading: str
    need: int
    figure: Callable[[DeviceStatus], str]
    nothing: str = "-"


def device_table(devices: Sequence[DeviceStatus], width: int, most: int = MOST_LINES) -> Text:
    """Return a heading and a line for each device, each at most `width` characters.

    What does not fit is left out, the least needed columns first, and so are columns of which no
    device tells anything. Of more than `most` devices those that need a look are shown and the
    others counted.
    """
    shown = noteworthy(devices, most)
    name_width = min(_NAME_WIDTH, max([len("device"), *(len(one.name) for one in shown)]))
    columns = [column for column in _COLUMNS if any(column.figure(one) for one in shown)]
    while columns and _width(columns, shown, name_width) > width:
        columns.remove(min(columns, key=lambda column: column.need))
    widths = [_column_width(column, shown) for column in columns]
    lines = [
        _line("device", name_width, [column.heading for column in columns], widths, width, "dim")
    ]
    for one in shown:
        figures = [column.figure(one) or column.nothing for column in columns]
        line = _line(one.name, name_width, figures, widths, width, _STATE_STYLES[one.state.value])
        if one.state.value != "up":
            line = _line(
                one.name, name_width, [_why(one)], [0], width, _STATE_STYLES[one.state.value]
            )
        elif one.throttled:
            line.stylize("yellow")
        lines.append(line)
    if len(shown) < len(devices):
        lines.append(_clipped(Text(_rest(devices, len(shown)), style="dim"), width))
    return Text("\n").join(lines)


def device_sentence(device: DeviceStatus) -> str:
    """Return what a device does, for a log."""
    if device.state.value != "up":
        return f"device {device.name}: {_why(device)}"
    parts = [
        f"{_rate(device)} queries/s",
        f"{device.in_flight}/{device.depth} in flight",
        *([f"busy {100 * device.busy:.0f} %"] if device.busy is not None else []),
        *([f"latency {_latency(device)} ms"] if _latency(device) else []),
        *([_temperature(device)] if device.temperature_c is not None else []),
        *([f"throttled ({_slowed(device)})"] if device.throttle_reasons else []),
        *(["throttled"] if device.throttled and not device.throttle_reasons else []),
        *([f"{device.reconnects} reconnects"] if device.reconnects > 1 else []),
        *(["1 reconnect"] if device.reconnects == 1 else []),
    ]
    return f"device {device.name}: up, {', '.join(parts)}"


def rate_text(rate: float) -> str:
    """Return queries a second; a small rate with a decimal."""
    return f"{rate:.1f}" if 0 < rate < 10 else f"{rate:.0f}"


def noteworthy(devices: Sequence[DeviceStatus], most: int) -> list[DeviceStatus]:
    """Return at most `most` devices, the least healthy ones, in the order given."""
    if len(devices) <= most:
        return list(devices)
    worst = sorted(range(len(devices)), key=lambda number: _health(devices[number]))[:most]
    return [devices[number] for number in sorted(worst)]


def _health(device: DeviceStatus) -> tuple[int, int, float]:
    order = {"away": 0, "retired": 1, "up": 2}
    busy = 1.0 if device.busy is None else device.busy
    return order[device.state.value], 0 if device.throttled else 1, busy


def _rest(devices: Sequence[DeviceStatus], shown: int) -> str:
    up = [device for device in devices if device.state.value == "up"]
    rate = sum(one.queries_per_s for one in up)
    return (
        f"and {len(devices) - shown} more; {len(up)} of {len(devices)} devices are up, "
        f"{rate_text(rate)} queries/s together"
    )


def _why(device: DeviceStatus) -> str:
    return f"{device.state.value}: {device.detail}" if device.detail else device.state.value


def _latency(device: DeviceStatus) -> str:
    times = (device.latency_median_s, device.latency_p99_s)
    if times == (None, None):
        return ""
    return "/".join("-" if time is None else _milliseconds(time) for time in times)


def _milliseconds(seconds: float) -> str:
    value = 1000 * seconds
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _rate(device: DeviceStatus) -> str:
    return rate_text(device.queries_per_s)


def _temperature(device: DeviceStatus) -> str:
    return "" if device.temperature_c is None else f"{device.temperature_c:.0f} °C"


def _slowed(device: DeviceStatus, most: int = 10) -> str:
    """Return the first reasons why the device is throttled now, or "throttled"."""
    if not device.throttled:
        return ""
    reasons = device.throttle_reasons
    more = f" +{len(reasons) - most}" if len(reasons) > most else ""
    return f"{', '.join(reasons[:most])}{more}" or "throttled"


_COLUMNS = (
    _Column("", 9, lambda device: device.state.value),
    _Column("queries/s", 8, _rate),
    _Column("queue", 5, lambda device: f"{device.in_flight}/{device.depth}"),
    _Column("busy", 7, lambda one: "" if one.busy is None else f"{100 * one.busy:.0f} %"),
    _Column("p50/p99 ms", 3, _latency),
    _Column("temp", 4, _temperature),
    _Column("", 6, lambda device: _slowed(device, 1), ""),
    _Column("lost", 2, lambda device: f"{device.reconnects}x" if device.reconnects else "", ""),
)
_STATE_STYLES = {"up": "", "away": "yellow", "retired": "red"}


def _column_width(column: _Column, devices: Sequence[DeviceStatus]) -> int:
    figures = (len(column.figure(device)) for device in devices if device.state.value == "up")
    return max([len(column.heading), *figures])


def _width(columns: Sequence[_Column], devices: Sequence[DeviceStatus], name_width: int) -> int:
    return name_width + sum(len(_GAP) + _column_width(column, devices) for column in columns)


def _line(
    name: str, name_width: int, texts: Sequence[str], widths: Sequence[int], width: int, style: str
) -> Text:
    cells = [_fit(name, name_width)]
    cells += [text.rjust(room) for text, room in zip(texts, widths, strict=True)]
    return _clipped(Text(_GAP.join(cells).rstrip(), style=style), width)


def _fit(name: str, width: int) -> str:
    """Return a name of exactly this width; of a long one the end, which distinguishes devices."""
    return name.ljust(width) if len(name) <= width else "…" + name[1 - width :]


def _clipped(line: Text, width: int) -> Text:
    line.truncate(max(width, 1), overflow="ellipsis")
    return line


_EVERY_S = 1.0
_SECONDS_BETWEEN_LINES = 30.0
_LONG_SILENT_S = 30.0
_LINES_ABOVE_DEVICES = 6
_STYLES = {"running": "green", "finished": "green", "failed": "red"}


def print_status(status: CampaignStatus, as_json: bool) -> None:
    """Print how far a campaign is."""
    if as_json:
        print_json(status.to_json())
        return
    console = TerminalConsole(highlight=False)
    console.print(status_text(status, console.width, _now()), soft_wrap=True)


def watch_status(folder: Path, as_json: bool) -> None:
    """Show the status each second until the campaign ends or the user stops it.

    In a terminal the view is refreshed in place; elsewhere a line is printed at most every half
    minute and when something changes; with `as_json` one object a line each second.
    """
    try:
        if as_json:
            _watch_as_json(folder)
        elif sys.stdout.isatty():
            _watch_in_place(folder)
        else:
            _watch_as_lines(folder)
    except KeyboardInterrupt:
        echo_err("no longer watching; a campaign that runs goes on")


def status_text(status: CampaignStatus, width: int, now: datetime, most: int = MOST_LINES) -> Text:
    """Return the status as text, each line of figures at most `width` characters."""
    lines = [Text(f"{status.folder}: ").append(status.state, _STYLES.get(status.state, "yellow"))]
    if status.message:
        lines.append(Text(status.message))
    stage = f"{status.stage}: " if status.stage else ""
    lines.append(Text(f"{stage}{_progress(status)}"))
    if status.searched or status.queries:
        rate = f" ({100 * status.found / status.searched:.1f} %)" if status.searched else ""
        lines.append(
            Text(
                f"found {status.found} of {status.searched} searched{rate}, "
                f"{status.queries} search queries"
            )
        )
    if status.state == "running":
        lines.append(Text(_process(status, now), style="dim"))
        if status.devices:
            lines.append(device_table(status.devices, width, most))
    elif status.state in ("interrupted", "paused", "failed"):
        command = ["edgeflare", "resume", status.folder]
        lines.append(Text(f"go on with: {shlex.join(command)}"))
    return Text("\n").join(lines)


def _watch_in_place(folder: Path) -> None:
    console = TerminalConsole(highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            status = campaign_status(folder)
            most = max(1, min(MOST_LINES, console.height - _LINES_ABOVE_DEVICES))
            text = status_text(status, console.width, _now(), most)
            live.update(Group(text), refresh=True)
            if status.state != "running" or has_no_output():
                return
            time.sleep(_EVERY_S)


def _watch_as_lines(folder: Path) -> None:
    shown: tuple[object, ...] = ()
    next_line = 0.0
    while True:
        status = campaign_status(folder)
        state = (status.state, status.stage, tuple(device.state for device in status.devices))
        if state != shown or time.monotonic() >= next_line:
            shown, next_line = state, time.monotonic() + _SECONDS_BETWEEN_LINES
            _print_lines(status)
        if status.state != "running" or has_no_output():
            return
        time.sleep(_EVERY_S)


def _print_lines(status: CampaignStatus) -> None:
    stage = f"{status.stage}: " if status.stage else ""
    found = f", found {status.found} of {status.searched} searched" if status.searched else ""
    message = f" ({status.message})" if status.message else ""
    echo(f"{status.state}{message}: {stage}{_progress(status)}{found}")
    if status.state == "running":
        for device in status.devices:
            echo(device_sentence(device))


def _watch_as_json(folder: Path) -> None:
    while True:
        status = campaign_status(folder)
        echo(json_text(status.to_json()))
        if status.state != "running" or has_no_output():
            return
        time.sleep(_EVERY_S)


def _progress(status: CampaignStatus) -> str:
    if not status.total:
        return f"{status.done} done" if status.done else status.detail or "nothing done yet"
    return f"{status.done} of {status.total} done ({100 * status.done / status.total:.1f} %)"


def _process(status: CampaignStatus, now: datetime) -> str:
    where = f"process {status.pid} on {status.host}" if status.pid is not None else "its process"
    silent = _silent_s(status, now)
    if silent > _LONG_SILENT_S:
        return f"{where} runs but has said nothing for {silent:.0f} s"
    return f"{where}, since {status.started_at}"


def _silent_s(status: CampaignStatus, now: datetime) -> float:
    """Return the seconds since the process's last update; 0 where the clocks disagree."""
    updated = datetime.fromisoformat(status.updated_at)
    return max(0.0, (now - updated).total_seconds())


def _now() -> datetime:
    return datetime.now(timezone.utc)
