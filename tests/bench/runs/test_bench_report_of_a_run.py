"""The report of a bench that really ran, beside what each campaign says of itself."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benches import demo_suite
from skimage import metrics

from edgeflare.analysis import summarize
from edgeflare.campaign import BatchProgress, Step
from edgeflare.store import Store
from edgeflare_bench.cells import Cell, cells, open_bench
from edgeflare_bench.report import bench_report
from edgeflare_bench.reports.writing import write_report
from edgeflare_bench.run import resume_bench, run_bench

SUITE = demo_suite(
    {"name": "dflare"},
    {"name": "short", "max_queries": 20, "margin_floor": 0.02},
    seeds=6,
    max_queries=60,
    baseline="dflare",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_bench(SUITE, tmp_path_factory.mktemp("benches") / "one")


@pytest.mark.extended
def test_its_figures_are_those_of_the_campaigns(folder: Path) -> None:
    bench, report = open_bench(folder), bench_report(folder)
    assert len(report.finished) == 4
    for figures in report.cells:
        own = [
            summarize(bench.campaign(cell))
            for cell in cells(bench.suite)
            if cell.strategy == figures.strategy
        ]
        assert figures.found == sum(one.found for one in own)
        assert figures.searched == sum(one.searched for one in own)
        assert figures.exhausted == sum(one.by_status["exhausted"] for one in own)
        for repeat, one in zip(figures.repeats, own, strict=True):
            mean = one.queries_found and one.queries_found.mean
            assert repeat.queries == pytest.approx(mean)
    assert report.cells[0].found
    (comparison,) = report.comparisons
    assert comparison.queries.ratio is not None
    assert comparison.queries.ratio < 1  # it may spend but 20
    assert report.devices[0].fingerprint["runtime"]["name"] == "tflite"


@pytest.mark.extended
def test_each_triggering_input_is_measured_against_its_seed(folder: Path) -> None:
    bench, report = open_bench(folder), bench_report(folder)
    row = next(row for row in report.searches if row.found and row.repeat == 1)
    with Store.open(bench.campaign(Cell(row.pair, row.strategy, row.repeat))) as store:
        seed = next(one for one in store.seeds() if one.id == row.seed_id)
        before, after = store.get_sample(seed.sample), store.get_sample(row.trigger or "")
    change = (after.astype(float) - before) / 255
    assert row.l2 == pytest.approx(float(np.linalg.norm(change)))
    assert row.linf == pytest.approx(255 * np.abs(change).max())
    assert row.ssim == pytest.approx(
        metrics.structural_similarity(before[..., 0], after[..., 0], data_range=255)
    )


@pytest.mark.extended
def test_what_it_cost_is_what_the_campaigns_counted(folder: Path) -> None:
    bench, report = open_bench(folder), bench_report(folder)
    assert report.cells[0].costs.round_trips == report.cells[0].queries  # it asks one by one
    for row in report.searches:
        with Store.open(bench.campaign(Cell(row.pair, row.strategy, row.repeat))) as store:
            (kept,) = [one for one in store.outcomes() if one.seed_id == row.seed_id]
        confirmed = kept.seed_queries + kept.search_queries + kept.confirmation_queries
        assert (row.device_queries, row.host_queries) == (confirmed, kept.host_only_queries)
        assert row.round_trips == kept.round_trips


@pytest.mark.extended
def test_a_strategy_s_margin_floor_holds_for_all_that_it_finds(folder: Path) -> None:
    rows = {
        name: [row for row in bench_report(folder).searches if row.strategy == name and row.found]
        for name in ("dflare", "short")
    }
    margins = {name: [row.smaller_margin or 0.0 for row in own] for name, own in rows.items()}
    assert min(margins["dflare"]) < 0.02 <= min(margins["short"])
    for row in rows["short"]:
        assert max(point.margin for point in row.front) == pytest.approx(row.smaller_margin)


@pytest.mark.extended
def test_it_is_the_same_when_made_anew(folder: Path) -> None:
    first = bench_report(folder)
    write_report(first, folder)
    assert bench_report(folder) == first


def _stop_in_the_third_cell() -> Callable[[BatchProgress], None]:
    def watch(told: BatchProgress) -> None:
        if told.number == 3 and isinstance(told.event, Step) and told.event.searched:
            raise KeyboardInterrupt

    return watch


@pytest.mark.extended
def test_an_interrupted_bench_has_one_and_it_ends_as_any_other(folder, tmp_path) -> None:
    other = tmp_path / "other"
    with pytest.raises(KeyboardInterrupt):
        run_bench(SUITE, other, progress=_stop_in_the_third_cell())
    report = bench_report(other)
    assert len(report.finished) == 2
    assert report.unfinished == ("LeNet-5/dflare/1",)
    assert report.missing == ("LeNet-5/short/1",)
    write_report(report, other)
    assert "edgeflare bench resume" in (other / "report.md").read_text(encoding="utf-8")
    resume_bench(other)
    there, here = bench_report(other), bench_report(folder)
    assert [(row.trigger, row.queries) for row in there.searches] == [
        (row.trigger, row.queries) for row in here.searches
    ]
