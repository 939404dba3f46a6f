"""``status``: how far a campaign is, as another process sees it."""

import json
import shlex
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from edgeflare import campaign_status
from edgeflare.campaign import CampaignStatus
from edgeflare.cli.display.device_status import MOST_LINES, device_sentence, device_table
from edgeflare.cli.display.tables import print_json
from edgeflare.cli.terminal import echo_err

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
    console = Console(highlight=False)
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
    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            status = campaign_status(folder)
            most = max(1, min(MOST_LINES, console.height - _LINES_ABOVE_DEVICES))
            text = status_text(status, console.width, _now(), most)
            live.update(Group(text), refresh=True)
            if status.state != "running":
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
        if status.state != "running":
            return
        time.sleep(_EVERY_S)


def _print_lines(status: CampaignStatus) -> None:
    stage = f"{status.stage}: " if status.stage else ""
    found = f", found {status.found} of {status.searched} searched" if status.searched else ""
    message = f" ({status.message})" if status.message else ""
    print(f"{status.state}{message}: {stage}{_progress(status)}{found}", flush=True)  # noqa: T201
    if status.state == "running":
        for device in status.devices:
            print(device_sentence(device), flush=True)  # noqa: T201


def _watch_as_json(folder: Path) -> None:
    while True:
        status = campaign_status(folder)
        print(json.dumps(status.to_json()), flush=True)  # noqa: T201
        if status.state != "running":
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
