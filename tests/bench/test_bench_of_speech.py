"""What a bench's report says of audio, and of models that transcribe."""

import csv
from pathlib import Path

import numpy as np
import pytest
from benches import bench_of, suite_of

from edgeflare.metrics import l2, linf, snr_db
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, Status, Transcript
from edgeflare_bench.cells import Bench, Cell, cells
from edgeflare_bench.report import bench_report
from edgeflare_bench.reports.writing import write_report
from edgeflare_bench.searches import Similarities, read_cell

RATE = 16_000
SEED = np.sin(np.arange(400) / 5, dtype=np.float32) / 2
SAID = ("ten of clubs", "the air | is pure", "seven of hearts", "sunday is best", "five")


def transcript(text: str) -> Transcript:
    pieces = tuple(f" {word}" for word in text.split())
    return Transcript(pieces, np.full((len(pieces), 2), [0.9, 0.05]))


def trigger(number: int) -> np.ndarray:
    """The seed with an error of a hundredth for the first, ten times the power for each next one."""
    return (SEED * (1 + 10 ** (number / 2) / 10)).astype(np.float32).clip(-1, 1)


def fill(bench: Bench, cell: Cell) -> None:
    """Make a campaign whose deployed model hears a word less in every triggering input."""
    folder = bench.campaign(cell)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Store.create(folder, {}, environment={}) as store:
        store.set_sample_rate(RATE)
        store.add_seeds(
            SeedInput(f"{number}.wav", SEED + np.float32(number / 1000))
            for number in range(len(SAID))
        )
        store.set_models({"name": "o.onnx"}, {"name": "d.onnx"})
        store.add_seed_answers(
            SeedAnswer(f"{number}.wav", transcript(text), transcript(text), Decision.AGREE)
            for number, text in enumerate(SAID)
        )
        for number, text in enumerate(SAID):
            sample = trigger(number)
            store.add_outcome(
                OutcomeRecord(
                    f"{number}.wav",
                    Status.FOUND,
                    0,
                    search_queries=4,
                    seconds=1.0,
                    trigger=store.put_sample(sample),
                    original=transcript(text if number else "eight of clubs"),
                    deployed=transcript(text.rsplit(" ", 1)[0] if " " in text else "nine"),
                    original_margin=0.85,
                    deployed_margin=0.85,
                    l2=l2(SEED, sample),
                    linf=linf(SEED, sample),
                    snr_db=snr_db(SEED, sample),
                    mutations=[{"operator": "gain", "params": {"db": 1.0}}],
                )
            )
        store.state.finished = True


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = bench_of(tmp_path / "bench", suite_of(repeats=1))
    for cell in cells(made.suite):
        fill(made, cell)
    return made


def test_searches_tell_what_was_recognised_instead_of_labels(bench: Bench) -> None:
    first, second, *_ = read_cell(bench, bench.cells[0], Similarities()).rows
    assert (first.original_text, first.deployed_text) == ("eight of clubs", "ten of")
    assert (first.original_label, first.deployed_label, first.ssim) == (None, None, None)
    assert (first.seed_label_kept, second.seed_label_kept) == (False, True)
    assert first.snr_db == pytest.approx(20, abs=0.01)


def test_the_report_gives_signal_to_noise_and_examples_of_each_strategy(bench: Bench) -> None:
    report = bench_report(bench)
    assert report.cells[0].snr_db == pytest.approx(0, abs=0.2)
    write_report(report, bench.folder)
    text = (bench.folder / "report.md").read_text("utf-8")
    assert "SNR (dB)" in text
    assert "16 bits, 0" in text
    assert "pixels" not in text
    assert "SSIM" not in text
    part = text.split("## Examples\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith(("| a ", "| b "))]
    assert [line.split(" | ")[0] for line in lines] == ["| a"] * 3 + ["| b"] * 3
    assert "of | 20.0" in lines[0]
    assert "is | 10.0" in lines[1]
    with (bench.folder / "summary.csv").open(encoding="utf-8") as file:
        assert float(next(csv.DictReader(file))["snr_db_median"]) == report.cells[0].snr_db
