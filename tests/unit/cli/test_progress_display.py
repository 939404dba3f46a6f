"""What a user sees while a campaign runs, in a terminal and in a log."""

import io
from pathlib import Path

import pytest
from fake_sessions import AWAY, HOT, PI, drawn
from rich.console import Console
from shown_numbers import numbers

from edgeflare import Notice
from edgeflare.campaign import FleetStatus, Stage, Step
from edgeflare.cli.display import progress
from edgeflare.cli.display.progress import TerminalProgress
from edgeflare.cli.terminal import StopSignal

FOLDER = Path("campaigns/a-name-that-is-long-enough-to-be-wrapped-in-a-terminal")
COMMAND = f"go on with: edgeflare resume {FOLDER}"
STOPPED = Notice("4 of 10 searches are finished and kept", resume=FOLDER)


@pytest.fixture(params=[60, 80, 120])
def terminal(request: pytest.FixtureRequest) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=request.param, height=40)


def frame(bars: TerminalProgress, console: Console) -> list[str]:
    """The lines that stand in the terminal right now."""
    return [
        "".join(segment.text for segment in line).rstrip()
        for line in console.render_lines(bars._frame(), pad=False)
    ]


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_bar_for_each_stage_and_a_line_for_each_device(terminal: Console) -> None:
    with TerminalProgress(StopSignal(), terminal) as bars:
        bars(Stage("device", "pi-4, jetson", 2))
        bars(Stage("search", "dflare on [pi-4], jetson", 1000))
        bars(Step(400, found=380, searched=400, queries=123456))
        bars(FleetStatus((PI, HOT, AWAY)))
        shown = frame(bars, terminal)
        assert max(map(len, shown)) <= terminal.width
        starts = [line.split()[0] for line in shown[-4:]]
        assert starts == ["device", "pi-4", "…168.1.77:2222", "jetson"]
        assert "400/1000" in "".join(shown)
        bars(Stage("replay", "", 5))
        assert not any("jetson" in line for line in frame(bars, terminal)[2:])
    shown = frame(bars, terminal)
    assert any("5/5" in line for line in shown)


def test_a_stage_that_goes_on_has_one_bar(terminal: Console) -> None:
    with TerminalProgress(StopSignal(), terminal) as bars:
        for done in (3, 7):
            bars(Stage("seed queries", "", 10))
            bars(Step(done))
        assert len(frame(bars, terminal)) == 1
        assert "7/10" in frame(bars, terminal)[0].replace(" ", "")


def test_a_great_fleet_leaves_room_for_the_bars() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=14)
    with TerminalProgress(StopSignal(), console) as bars:
        bars(Stage("search", "dflare", 10))
        bars(FleetStatus(drawn(50, 1)))
        shown = frame(bars, console)
    assert len(shown) <= 10
    assert "and 44" in shown[-1]


def test_a_notice_is_whole_however_narrow_the_terminal(terminal: Console) -> None:
    with TerminalProgress(StopSignal(), terminal) as bars:
        bars(Stage("search", "", 10))
        bars(STOPPED)
    assert f" {STOPPED.text}; {COMMAND}\n" in text(terminal)


def test_after_an_interrupt_the_advice_comes_last_and_once(terminal: Console) -> None:
    stop = StopSignal()

    def campaign(bars: TerminalProgress) -> None:
        bars(Stage("search", "", 10))
        bars(FleetStatus((PI,)))
        try:
            stop.take(2, None)
        except KeyboardInterrupt:
            bars(Step(4))
            bars(STOPPED)
            raise

    with pytest.raises(KeyboardInterrupt), TerminalProgress(stop, terminal) as bars:
        campaign(bars)
    shown = text(terminal)
    assert shown.count(COMMAND) == 1
    assert shown.rstrip().endswith(COMMAND)
    assert shown.rindex("4/10") < shown.index(COMMAND)


def test_a_log_has_a_line_at_a_change_of_a_devices_state_and_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    lines = progress.PlainProgress()

    def told(seconds: float, *devices: object) -> list[str]:
        nonlocal now
        now += seconds
        lines(FleetStatus(devices))  # type: ignore[arg-type]
        return [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]

    back = AWAY.__class__("jetson", PI.state)
    assert told(1, PI, back) == []
    assert numbers("\n".join(told(1, PI, AWAY))) == "12"
    assert told(1, PI, AWAY) == []
    assert told(1, PI, back) == ["device jetson: up"]
    assert told(27, PI, back) == ["device pi-4: up"]
    assert told(29, PI, back) == ["device jetson: up"]
    assert told(1, PI, back) == ["device pi-4: up"]


def test_a_log_has_stages_steps_and_notices(capsys: pytest.CaptureFixture[str]) -> None:
    lines = progress.PlainProgress()
    for event in (
        Stage("search", "dflare on pi-4", 3),
        Step(1),
        Stage("search", "dflare on pi-4", 3),
        STOPPED,
        Step(3, found=2, searched=3, queries=70),
    ):
        lines(event)
    first, notice, last = capsys.readouterr().err.splitlines()
    assert (first, notice) == ("search: dflare on pi-4", f"note: {STOPPED.text}; {COMMAND}")
    assert "3 searched, 70" in last


def test_work_inside_searches_shows_before_the_first_one_ends(
    terminal: Console, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    inside = Step(0, host_only_queries=15000, under_way=12, with_trigger=3)
    lines = progress.PlainProgress()
    lines(Stage("search", "boundary", 30))
    now += 6
    lines(inside)
    said = capsys.readouterr().err
    assert "30; 12 under" in said
    with TerminalProgress(StopSignal(), terminal) as bars:
        bars(Stage("search", "boundary", 30))
        bars(inside)
        shown = "".join(frame(bars, terminal))
    assert "found 0/0 (+3)" in shown
    assert ("15.0k on host" in shown) == (terminal.width >= 80)


def test_a_log_does_not_repeat_a_step(capsys, monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    lines = progress.PlainProgress()
    lines(Stage("search", "dflare", 6))
    for done in (0, 0, 0, 1, 1):
        now += 6
        lines(Step(done))
    told = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert numbers("\n".join(told)) == "0 6 1 6"
