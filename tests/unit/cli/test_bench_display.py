"""What a user sees in a terminal while a bench runs."""

import io
from pathlib import Path

import pytest
from benches import demo_suite
from rich.console import Console
from shown_numbers import numbers

from edgeflare import Notice
from edgeflare.campaign import BatchProgress, Stage, Step
from edgeflare.cli.display.progress import (
    BatchDisplay,
    PlainProgress,
    TerminalProgress,
    batch_display,
    found,
)
from edgeflare.cli.terminal import StopSignal
from edgeflare_bench import run_bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[BatchProgress]]:
    """A bench of two cells with what it reported."""
    suite = demo_suite({"name": "dflare"}, seeds=3, max_queries=200, timeout_s=0)
    told: list[BatchProgress] = []
    return run_bench(suite, tmp_path_factory.mktemp("bench") / "b", progress=told.append), told


def terminal(width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=40)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def frame(bars: TerminalProgress, console: Console) -> list[str]:
    """The lines that stand in the terminal right now."""
    return [
        "".join(segment.text for segment in line).rstrip()
        for line in console.render_lines(bars._frame(), pad=False)
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_running_cell_and_its_bars(bench: tuple[Path, list[BatchProgress]], width: int) -> None:
    _, told = bench
    console = terminal(width)
    with TerminalProgress(StopSignal(), console) as view:
        display = BatchDisplay(view, "cell ", found)
        for report in told:
            display(report)
            heading, *bars = frame(view, console)
            assert f"2: {report.name}" in heading
            if report.event is None and not report.ended:
                assert bars in ([], [""])
        assert any("search" in line for line in bars)
        view.restart("")
        assert frame(view, console) in ([], [""])


def test_a_cell_that_has_ended_leaves_a_line(bench: tuple[Path, list[BatchProgress]]) -> None:
    _, told = bench
    console = terminal()
    ended = 0
    with TerminalProgress(StopSignal(), console) as view:
        display = BatchDisplay(view, "cell ", found)
        for report in told:
            display(report)
            ended += bool(report.ended)
            assert text(console).count("searched, mean") == ended
    assert "1: found 3" in text(console)


def test_a_log_has_no_figures_of_a_cell_that_cannot_be_run(tmp_path, capsys) -> None:
    display = BatchDisplay(PlainProgress(), "cell ", found)
    failing = BatchProgress("demo, dflare, repeat 7", tmp_path, 1, 2)
    for event in (None, Stage("device", "local"), Notice("it can't be run")):
        display(failing._replace(event=event))
    display(failing._replace(ended="failed"))
    display(BatchProgress("demo, dflare, repeat 1", tmp_path, 2, 2))
    display(BatchProgress("demo, dflare, repeat 1", tmp_path, 2, 2, Step(1)))
    assert numbers("\n".join(capsys.readouterr().err.splitlines()[:4])) == "1 2 7 2 2 1"


def test_how_to_go_on_with_the_whole_bench_is_said_once_and_last(tmp_path, capsys) -> None:
    cell = BatchProgress("demo, dflare, repeat 0", tmp_path, 1, 2)

    def interrupted() -> None:
        with batch_display(StopSignal(), advice=lambda _: "go on with it") as display:
            display(cell)
            display(cell._replace(event=Notice("1 of 3 is kept", resume=tmp_path)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert numbers("\n".join(capsys.readouterr().err.splitlines()[1:])) == "1 3"
