import json
import shlex
import shutil
import statistics
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benches import bench_of, fill_cell, search, suite_of
from shown_numbers import numbers

from edgeflare.campaign.provenance import check_forced
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.types import Status
from edgeflare_bench.cell_figures import cell_figures
from edgeflare_bench.cells import Bench, Cell, cells
from edgeflare_bench.comparisons import Correlation, adjusted, compare, correlate
from edgeflare_bench.report import bench_report, command
from edgeflare_bench.suite import load_suite, suite_about, suite_names


class TestOneStrategyOnOnePair:
    ROWS = (
        search(0, 10, l2=1.0, linf=9, ssim=0.9, original_margin=0.5, deployed_margin=0.1),
        search(1, 60, l2=3.0, linf=5, ssim=0.7, original_margin=0.2, deployed_margin=0.4),
        search(2, 500, Status.EXHAUSTED),
        search(3, 0, Status.SEED_DEVIATES),
        search(
            0, 20, repeat=1, l2=2.0, linf=7, ssim=None, original_margin=0.3, deployed_margin=0.9
        ),
        search(1, 110, repeat=1, seed_label_kept=True),
        search(2, 210, Status.TIMEOUT, repeat=1),
        search(3, 0, Status.SEED_DEVIATES, repeat=1),
    )

    FIGURES = cell_figures("pair", "a", ROWS)

    def test_success_is_of_those_that_were_searched(self) -> None:
        assert (
            self.FIGURES.seeds,
            self.FIGURES.searches,
            self.FIGURES.searched,
            self.FIGURES.found,
        ) == (4, 8, 6, 4)
        assert self.FIGURES.success_rate == pytest.approx(4 / 6)
        assert (self.FIGURES.timeouts, self.FIGURES.exhausted) == (1, 1)
        assert sum(self.FIGURES.by_status.values()) == 8

    def test_means_are_of_those_found_and_spent_of_all(self) -> None:
        assert self.FIGURES.queries == (10 + 60 + 20 + 110) / 4
        assert self.FIGURES.queries_median == 40
        assert self.FIGURES.queries_p90 == pytest.approx(np.percentile([10, 20, 60, 110], 90))
        assert self.FIGURES.queries_spent == pytest.approx((10 + 60 + 500 + 20 + 110 + 210) / 6)
        assert (self.FIGURES.seconds, self.FIGURES.seconds_median) == (5.0, 4.0)

    def test_the_interval_draws_seed_inputs_whole(self) -> None:
        # of two seed inputs, one quarter of the draws takes each one twice: the ends are their means
        assert self.FIGURES.queries_interval == (15.0, 85.0)

    def test_of_one_seed_input_there_is_no_interval(self) -> None:
        assert cell_figures("pair", "a", self.ROWS[:1]).queries_interval is None

    def test_shorter_timeouts_are_read_from_the_times(self) -> None:
        # found after 1, 2, 6 and 11 seconds
        assert self.FIGURES.within == pytest.approx({"5": 2 / 6, "10": 3 / 6, "15": 4 / 6})

    def test_medians_of_what_was_found(self) -> None:
        assert (self.FIGURES.l2, self.FIGURES.linf, self.FIGURES.ssim) == (
            2.0,
            7.0,
            pytest.approx(0.8),
        )
        assert (self.FIGURES.original_margin, self.FIGURES.deployed_margin) == (0.3, 0.4)
        assert self.FIGURES.smaller_margin == 0.2  # of 0.1, 0.2 and 0.3
        assert self.FIGURES.label_kept == 1.0

    def test_repeats_one_by_one(self) -> None:
        first, second = self.FIGURES.repeats
        assert (first.repeat, first.searched, first.found, first.queries) == (0, 3, 2, 35.0)
        assert (second.repeat, second.searched, second.found, second.queries) == (1, 3, 2, 65.0)

    def test_equal_triggers_of_one_repeat_are_none_of_them_unique(self) -> None:
        rows = [
            *(search(number, 5, trigger="same") for number in (0, 1)),
            search(2, 5, trigger="other"),
            search(0, 5, trigger="same", repeat=1),  # in another repeat it may come again
        ]
        figures = cell_figures("pair", "a", rows)
        assert (figures.unique, figures.duplicates) == (0.5, 2)

    def test_of_nothing_every_figure_is_open(self) -> None:
        figures = cell_figures("pair", "a", [])
        assert figures.searched == figures.found == 0
        for value in (
            *(figures.success_rate, figures.queries, figures.queries_interval, figures.seconds),
            *(figures.queries_spent, figures.unique, figures.ssim, figures.label_kept),
            *figures.within.values(),
        ):
            assert value is None


class TestComparison:
    def test_it_pairs_the_means_of_the_seed_inputs(self) -> None:
        mine = [
            *(search(0, 10), search(0, 30, repeat=1)),
            *(search(1, 500, Status.EXHAUSTED), search(2, 9), search(7, 1)),
        ]
        base = [
            *(search(0, 10, strategy="base"), search(1, 50, strategy="base")),
            *(search(2, 9, strategy="base"), search(8, 1, strategy="base")),
        ]
        comparison = compare(mine, base)
        assert comparison is not None
        assert (comparison.strategy, comparison.baseline, comparison.seeds) == ("a", "base", 3)
        assert comparison.success.mean == pytest.approx(2 / 3)
        assert (comparison.success.baseline_mean, comparison.success.p) == (1.0, 1.0)
        queries = comparison.queries
        assert (queries.mean, queries.baseline_mean) == pytest.approx((529 / 3, 69 / 3))
        assert queries.ratio == pytest.approx(529 / 69)
        assert (queries.p, queries.verdict) == (0.5, "can't tell")
        assert (queries.rank_biserial, queries.rank_biserial_size) == (1.0, "large")
        assert comparison.seconds.ratio == pytest.approx(529 / 69)

    def test_a_search_that_found_nothing_needs_more_than_any_that_did(self) -> None:
        seeds = range(20)
        gave_up = [search(seed, 5, Status.GAVE_UP) for seed in seeds]
        base = [search(seed, 100 + seed, strategy="base") for seed in seeds]
        (comparison,) = adjusted([one for one in [compare(gave_up, base)] if one is not None])
        assert comparison.success.verdict == "less"
        assert comparison.queries.verdict == "more"
        assert comparison.seconds.verdict == "more"

    def test_seeds_that_were_not_searched_are_left_out(self) -> None:
        rows = [search(0, 5), search(1, 0, Status.SEED_DEVIATES)]
        comparison = compare(rows, rows)
        assert comparison is not None
        assert (comparison.seeds, comparison.queries.p, comparison.queries.ratio) == (1, 1.0, 1.0)

    def test_without_a_common_seed_there_is_none(self) -> None:
        assert compare([search(0, 5)], [search(1, 5)]) is None

    def test_several_are_adjusted_measure_by_measure(self) -> None:
        seeds = range(12)
        base = [search(seed, 100 + seed) for seed in seeds]
        comparisons = [
            compare([search(seed, queries(seed), seconds=5.0 + seed) for seed in seeds], base)
            for queries in (lambda seed: 400 + seed, lambda seed: 100 + seed + seed % 2 * 3)
        ]
        first, second = adjusted([one for one in comparisons if one is not None])
        assert first.queries.p < second.queries.p
        assert first.queries.p_holm == pytest.approx(2 * first.queries.p)
        assert second.queries.p_holm == pytest.approx(second.queries.p)
        assert first.seconds.p_holm == pytest.approx(min(1.0, 2 * first.seconds.p))


class TestCorrelation:
    @staticmethod
    def of(xs: dict[str, float], found: dict[str, int | None]) -> Correlation:
        """That of one search a pair, which found a trigger after so many queries, or of none."""
        rows = {
            pair: [search(0, n, seconds=1.0, pair=pair)] if n else [] for pair, n in found.items()
        }
        return correlate(
            "study", "a", xs, [cell_figures(pair, "a", own) for pair, own in rows.items()]
        )

    def test_it_is_over_the_pairs_of_the_study(self) -> None:
        xs = {"p1": 10.0, "p2": 20.0, "p3": 30.0, "p4": 40.0}
        correlation = self.of(xs, {"p1": 90, "p2": 50, "p3": 45, "p4": None, "other": 1000})
        expected = statistics.correlation([10, 20, 30], [90, 50, 45])
        assert correlation.queries == pytest.approx(expected)
        assert correlation.seconds is None  # all the same
        assert [(point.x, point.queries) for point in correlation.points] == [
            *((10.0, 90.0), (20.0, 50.0), (30.0, 45.0), (40.0, None)),
        ]

    def test_pairs_of_one_x_are_one_point_and_two_always_lie_on_a_line(self) -> None:
        xs = {"p1": 10.0, "q1": 10.0, "p2": 20.0, "p3": 30.0}
        found: dict[str, int | None] = {"p1": 80, "q1": 100, "p2": 50, "p3": 45}
        expected = statistics.correlation([10, 20, 30], [90, 50, 45])
        assert self.of(xs, found).queries == pytest.approx(expected)
        del xs["p3"]
        assert self.of(xs, found).queries is None
        del xs["q1"]
        assert self.of(xs, found).queries is None

    def test_it_reports_the_lowest_success_of_its_points(self) -> None:
        xs = {"p1": 10.0, "p2": 20.0, "p3": 30.0}
        figures = [
            cell_figures("p1", "a", [search(0, 5), search(1, 5)]),
            cell_figures("p2", "a", [search(0, 5), search(1, 9, Status.EXHAUSTED)]),
            cell_figures("p3", "a", []),
        ]
        correlation = correlate("study", "a", xs, figures)
        assert (correlation.lowest_success, correlation.leaves_out) == (0.5, True)
        assert not correlate("study", "a", {"p1": 10.0}, figures).leaves_out
        assert correlate("study", "a", {"p3": 30.0}, figures).lowest_success is None


QUICK = [(Status.FOUND, 10), (Status.FOUND, 20), (Status.FOUND, 33), (Status.SEED_DEVIATES, 0)]
SLOW = [(Status.FOUND, 60), (Status.TIMEOUT, 80), (Status.FOUND, 45), (Status.SEED_DEVIATES, 0)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Of eight cells on two pairs two are finished, one is half done, one can't be run, four have not begun."""
    published = [
        {"pair": "One pair", "strategy": "a", "source": "a paper", "queries": 83.97},
        {"pair": "One pair", "strategy": "a", "source": "their code", "success": 0.99},
    ]
    suite = suite_of(["One pair", "Other"], published=published)
    bench = bench_of(
        tmp_path / "bench",
        suite,
        {"Other/a/0": "there is no model file /m/o.onnx", "gone/a/0": "x"},
    )
    fill_cell(bench, Cell("One pair", "a", 0), QUICK)
    fill_cell(bench, Cell("One pair", "b", 0), SLOW)
    fill_cell(bench, Cell("One pair", "a", 1), QUICK[:2], finished=False)
    return bench


class TestWholeBench:
    def test_it_reports_how_far_each_cell_is(self, bench: Bench) -> None:
        report = bench_report(bench)
        assert report.finished == ("One-pair/a/0", "One-pair/b/0")
        assert report.unfinished == ("One-pair/a/1",)
        assert report.missing == ("One-pair/b/1", "Other/b/0", "Other/a/1", "Other/b/1")
        assert report.failed == {"Other/a/0": "there is no model file /m/o.onnx"}
        assert len(report.searches) == 4 + 4 + 2

    def test_each_pair_and_strategy_has_its_figures(self, bench: Bench) -> None:
        report = bench_report(bench)
        assert [(one.pair, one.strategy) for one in report.cells] == [
            *(("One pair", "a"), ("One pair", "b"), ("Other", "a"), ("Other", "b")),
        ]
        first = report.cells[0]
        assert (first.found, first.searched, first.ties) == (3, 3, 1)
        assert first.queries == pytest.approx((10 + 20 + 33) / 3)  # of the finished cell alone
        assert [(one.source, one.queries, one.success) for one in first.published] == [
            *(("a paper", 83.97, None), ("their code", None, 0.99)),
        ]
        assert report.cells[3].searches == 0

    def test_strategies_are_compared_with_the_baseline(self, bench: Bench) -> None:
        report = bench_report(bench)
        (comparison,) = report.comparisons
        assert (comparison.pair, comparison.strategy, comparison.seeds) == ("One pair", "b", 3)
        assert comparison.queries.ratio == pytest.approx((60 + 80 + 45) / (10 + 20 + 33))
        assert bench_report(Bench(bench.folder, suite_of(baseline=None), ())).comparisons == ()

    def test_studies_are_correlated(self, bench: Bench) -> None:
        report = bench_report(bench)
        assert [(one.study, one.strategy) for one in report.correlations] == [
            *(("study", "a"), ("study", "b")),
        ]
        assert [point.x for point in report.correlations[0].points] == [10.0, 20.0]

    def test_it_reports_what_the_searches_ran_on(self, bench: Bench) -> None:
        report = bench_report(bench)
        (device,) = report.devices
        assert (device.names, device.fingerprint["board"]) == (("pi-0", "pi-1"), "Pi | 5")
        assert list(report.environments) == [
            *({"numpy": "2", "repeat": 0}, {"numpy": "2", "repeat": 1}),
        ]
        assert {pair: len(models) for pair, models in report.models.items()} == {"One pair": 1}
        (notice,) = report.notices
        assert "One-pair/a/1" in notice
        assert "2 so far" in notice
        assert report.queries == {"seed": 10, "search": 278, "confirmation": 14, "host_only": 556}

    def test_its_json_has_everything_but_the_searches(self, bench: Bench) -> None:
        values = json.loads(json.dumps(bench_report(bench).to_json(), allow_nan=False))
        assert values["cells"][0]["queries"] == pytest.approx(21.0)
        assert values["cells"][2]["queries"] is None
        assert values["comparisons"][0]["queries"]["rank_biserial_size"] == "large"
        assert values["settings"]["seeds"] == 4
        assert "searches" not in values

    def test_limits_are_those_of_the_strategy(self, bench: Bench) -> None:
        strategies = [{"name": "a", "max_queries": 50}, {"name": "b", "timeout_s": 5.0}]
        suite = suite_of(strategies=strategies)
        report = bench_report(Bench(bench.folder, suite, ()))
        assert [(one.max_queries, one.timeout_s) for one in report.cells] == [
            *((50, 180.0), (2000, 5.0)),
        ]
        assert report.cells[1].within["5"] is None

    def test_a_folder_does_as_well(self, bench: Bench) -> None:
        assert bench_report(bench.folder) == bench_report(bench)

    def test_a_folder_that_is_no_bench_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="check the"):
            bench_report(tmp_path)

    def test_a_bench_that_has_not_started_has_a_report(self, tmp_path: Path) -> None:
        bench = bench_of(tmp_path / "new", suite_of())
        report = bench_report(bench)
        assert report.missing == tuple(cell.name for cell in cells(bench.suite))
        assert (report.comparisons, report.searches, report.devices) == ((), (), ())

    def test_without_the_heavy_libraries_it_reports_what_is_missing(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = bench_report(bench)
        for name in ("scipy", "skimage"):
            monkeypatch.setitem(sys.modules, name, None)
        report = bench_report(bench)
        assert report.comparisons == whole.comparisons
        assert (report.cells[0].ssim, report.cells[0].queries) == (None, whole.cells[0].queries)
        assert ["scikit-image" in text for text in report.notices] == [True, False]


@pytest.mark.parametrize("name", suite_names())
class TestCommandOfAPackagedSuite:
    def test_the_whole_suite_needs_no_flag(self, name: str, tmp_path: Path) -> None:
        data = " --data FOLDER" if suite_about(name).needs_data else ""
        suite = load_suite(name, tmp_path)
        assert command(suite, ["local"]) == f"edgeflare bench run {name}{data}"

    def test_a_narrowed_one_is_reported_by_the_flags_that_narrow_it(self, name, tmp_path) -> None:
        whole = load_suite(name, tmp_path)
        last = whole.pairs[-1].name
        suite = whole.narrowed(pairs=[last], seeds=3, max_queries=77)
        told = shlex.split(command(suite, ["pi", "ssh://me@board"]) or "")
        assert [told[place + 1] for place, word in enumerate(told) if word == "--device"] == [
            *("pi", "ssh://me@board"),
        ]
        flags = dict(pairwise(told))
        assert (flags["--seeds"], flags["--max-queries"]) == ("3", "77")
        assert "--repeats" not in flags
        assert flags.get("--pair", last) == last

    def test_one_of_other_files_has_none(self, name: str, tmp_path: Path) -> None:
        suite = load_suite(name, tmp_path)
        first = suite.pairs[0]
        others = [
            {"original": first.original.model_copy(update={"path": tmp_path / "own.onnx"})},
            {"seeds": first.seeds.model_copy(update={"path": tmp_path / "own.npz"})},
        ]
        if first.deployed:
            own = first.deployed.model_copy(update={"path": tmp_path / "own.tflite"})
            others.append({"deployed": own})
        for change in others:
            pairs = (first.model_copy(update=change), *suite.pairs[1:])
            assert command(suite.model_copy(update={"pairs": pairs}), ["local"]) is None

    def test_one_of_two_folders_names_both(self, name: str, tmp_path: Path) -> None:
        if not suite_about(name).needs_data:
            pytest.skip("its files come with EdgeFlare")
        (tmp_path / "other").mkdir()
        here, there = load_suite(name, tmp_path), load_suite(name, tmp_path / "other")
        first = here.pairs[0].model_copy(update={"seeds": there.pairs[0].seeds})
        mixed = here.model_copy(update={"pairs": (first, *here.pairs[1:])})
        assert command(mixed, ["local"]) == (
            f"edgeflare bench run {name} --data FOLDER --data FOLDER"
        )

    def test_one_that_was_changed_has_none(self, name: str, tmp_path: Path) -> None:
        suite = load_suite(name, tmp_path)
        changed = suite.model_copy(update={"seed": suite.seed + 1})
        assert command(changed, ["local"]) is None


def test_a_suite_of_the_users_own_has_no_command() -> None:
    assert command(suite_of(), ["local"]) is None


# cells of one pair that don't belong together

CHANGED = Cell("One pair", "b", 1)
FINGERPRINT = {"board": "Pi | 5", "cpu_flags": ["neon"]}


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Two pairs with four cells each, all alike."""
    bench = bench_of(tmp_path_factory.mktemp("alike") / "bench", suite_of(["One pair", "Other"]))
    for cell in cells(bench.suite):
        fill_cell(bench, cell, [(Status.FOUND, 10), (Status.FOUND, 20)])
    return bench


@pytest.fixture
def changeable(alike: Bench, tmp_path: Path) -> Bench:
    """A copy that a test may change."""
    return replace(alike, folder=shutil.copytree(alike.folder, tmp_path / "bench"))


def test_of_cells_that_are_alike_nothing_is_reported(alike: Bench) -> None:
    assert bench_report(alike).notices == ()


def test_a_model_that_was_replaced_is_reported_with_its_cells(changeable: Bench) -> None:
    with Store.open(changeable.campaign(CHANGED)) as store:
        models = store.models
        store.set_models(models["original"], models["deployed"] | {"sha256": "cc"})
    report = bench_report(changeable)
    (notice,) = report.notices
    assert numbers(notice) == "1 256 3 256"
    assert [one["deployed"]["sha256"] for one in report.models["One pair"]] == ["bb", "cc"]
    assert len(report.models["Other"]) == 1


def test_a_model_that_was_only_moved_is_the_same(changeable: Bench) -> None:
    with Store.open(changeable.campaign(CHANGED)) as store:
        models = store.models
        store.set_models(models["original"] | {"path": "/elsewhere/o.onnx"}, models["deployed"])
    report = bench_report(changeable)
    assert (len(report.models["One pair"]), report.notices) == (1, ())


def test_a_device_that_changed_is_reported_with_its_cells(changeable: Bench) -> None:
    with Store.open(changeable.campaign(CHANGED)) as store:
        store.add_device(FINGERPRINT | {"board": "Pi 4"}, "pi-1")
    (notice,) = bench_report(changeable).notices
    assert numbers(notice) == "1 1 1 4 3 0"


def test_pairs_on_different_devices_are_not_compared(changeable: Bench) -> None:
    for cell in cells(changeable.suite):
        if cell.pair == "Other":
            with Store.open(changeable.campaign(cell)) as store:
                store.add_device(FINGERPRINT | {"board": "Pi 4"}, "pi")
    assert bench_report(changeable).notices == ()


def test_a_campaign_that_went_on_all_the_same_is_reported(changeable: Bench) -> None:
    text = check_forced(["the deployed model /m/d.tflite has changed"], force=True)
    assert text is not None
    with Store.open(changeable.campaign(CHANGED)) as store:
        store.add_notice("something else")
        store.add_notice(text)
    assert bench_report(changeable).notices == (f"One-pair/b/1: {text}",)
