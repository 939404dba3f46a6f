"""What a user sees in a terminal while a bench runs."""

import io
from pathlib import Path

import pytest
from command import DEMO
from rich.console import Console

from edgeflare import Notice
from edgeflare.bench import BenchProgress, Cell, Suite, run_bench
from edgeflare.campaign import Stage, Step
from edgeflare.cli.bench_bars import BenchDisplay, Log, Terminal
from edgeflare.cli.stopping import Stop

FIRST, SECOND = Cell("demo", "dflare", 0), Cell("demo", "dflare", 1)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[BenchProgress]]:
    """A bench of two cells with what it reported."""
    pair = {
        "name": "demo",
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz"},
    }
    suite = Suite.model_validate(
        {
            "name": "tiny",
            "seeds": 3,
            "repeats": 2,
            "max_queries": 200,
            "timeout_s": 0,
            "pairs": [pair],
            "strategies": [{"name": "dflare"}],
        }
    )
    told: list[BenchProgress] = []
    return run_bench(suite, tmp_path_factory.mktemp("bench") / "b", progress=told.append), told


def terminal(width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=40)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def frame(view: Terminal, console: Console) -> list[str]:
    """The lines that stand in the terminal right now."""
    return [
        "".join(segment.text for segment in line).rstrip()
        for line in console.render_lines(view.bars._frame(), pad=False)
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_running_cell_and_its_bars(bench: tuple[Path, list[BenchProgress]], width: int) -> None:
    folder, told = bench
    console = terminal(width)
    view = Terminal(Stop(), console)
    with view:
        display = BenchDisplay(folder, view)
        for report in told:
            display(report)
            heading, *bars = frame(view, console)
            assert (
                heading == f"cell {report.number} of 2: demo, dflare, repeat {report.cell.repeat}"
            )
            if report.event is None:
                assert bars in ([], [""])
        assert any("search" in line for line in bars)
        display.end()
    assert frame(view, console) in ([], [""])


def test_a_cell_that_has_ended_leaves_a_line(bench: tuple[Path, list[BenchProgress]]) -> None:
    folder, told = bench
    console = terminal()
    view = Terminal(Stop(), console)
    with view:
        display = BenchDisplay(folder, view)
        for report in told:
            display(report)
            ended = text(console).count("searched, mean")
            assert ended == report.number - 1
        display.end()
    assert "cell 2 of 2: demo, dflare, repeat 1: found 3 of 3 searched, mean" in text(console)


def test_a_log_has_no_figures_of_a_cell_that_cannot_be_run(
    bench: tuple[Path, list[BenchProgress]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = bench
    display = BenchDisplay(folder, Log())
    never_begun = Cell("demo", "dflare", 7)
    for event in (None, Stage("device", "local"), Notice("it can't be run")):
        display(BenchProgress(never_begun, 1, 2, event))
    display(BenchProgress(SECOND, 2, 2, None))
    display(BenchProgress(SECOND, 2, 2, Step(1)))
    assert capsys.readouterr().err.splitlines()[:4] == [
        "cell 1 of 2: demo, dflare, repeat 7",
        "device: local",
        "note: it can't be run",
        "cell 2 of 2: demo, dflare, repeat 1",
    ]


def test_how_to_go_on_is_said_once(
    bench: tuple[Path, list[BenchProgress]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = bench
    for said in ([], [Notice(f"kept; go on with `edgeflare bench resume {folder}`")]):
        display = BenchDisplay(folder, Log())
        for event in (None, *said):
            display(BenchProgress(FIRST, 1, 2, event))
        display.advise()
        assert capsys.readouterr().err.count(f"edgeflare bench resume {folder}") == 1
