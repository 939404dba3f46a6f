"""Candidates are ranked by campaigns that differ in nothing but the deployed model."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_answers import values
from shown_numbers import numbers
from stores import Ended, candidate, value_campaign

from edgeflare import Ranking, UsageError, rank_campaigns
from edgeflare.analysis.ranking.paired_tests import duels_between
from edgeflare.store import Store
from edgeflare.types import Status

SEEDS = 16
DFLARE = {"strategy": "dflare", "max_queries": 500}


def about(level: float, *, spread: float = 0.1, draw: int = 0, seeds: int = SEEDS) -> list[Ended]:
    """Triggers of about this disagreement; `draw` says which noise."""
    noise = np.random.default_rng(draw).uniform(-spread, spread, seeds)
    return [Ended(float(level + one)) for one in noise]


def asking(queries: Sequence[int], **more: Any) -> list[Ended]:
    return [Ended(queries=one, **more) for one in queries]


def folders_of(
    home: Path, candidates: Mapping[str, Sequence[Ended | None]], **more: Any
) -> list[Path]:
    """Write the campaigns of these candidates, by their names."""
    return [candidate(home / name, ends, **more) for name, ends in candidates.items()]


def ranked(
    home: Path, candidates: Mapping[str, Sequence[Ended | None]], measure: Any = None, **more: Any
) -> Ranking:
    options = {} if measure is None else {"measure": measure}
    return rank_campaigns(folders_of(home, candidates, **more), **options)


def names(ranking: Ranking) -> list[str]:
    return [one.name for one in ranking.candidates]


def places(ranking: Ranking) -> dict[str, int]:
    return {one.name: one.place for one in ranking.candidates}


def counted(ranking: Ranking) -> list[float]:
    return [one.value.value for one in ranking.candidates]


def codes(ranking: Ranking) -> list[str]:
    return [one.code for one in ranking.remarks]


TWO = {"a": about(0.5), "b": about(0.5)}


class TestOrder:
    def test_the_hardest_to_make_deviate_comes_first_whatever_the_order_they_are_named_in(
        self, tmp_path: Path
    ) -> None:
        levels = {"worst": (0.8, 0), "best": (0.2, 1), "middle": (0.5, 2)}
        ranking = ranked(tmp_path, {n: about(level, draw=d) for n, (level, d) in levels.items()})
        assert places(ranking) == {"best": 1, "middle": 2, "worst": 3}
        assert (names(ranking)[0], ranking.measure) == ("best", "disagreement")
        assert "middle: disagreement" in ranking.verdict
        assert ranking.verdict.count("the share of probability") == 1
        assert [(duel.first, duel.second, duel.verdict) for duel in ranking.duels] == [
            *(("best", "middle", "best"), ("best", "worst", "best")),
            ("middle", "worst", "middle"),
        ]

    def test_nan_is_worse_than_any_distance_of_values(self, tmp_path: Path) -> None:
        alike = values(1.0), values(1.0)
        answers = {"nan": math.nan, "far": 6.0, "near": 1.5}
        folders = [
            value_campaign(tmp_path / name, alike, (values(1.0), values(answer)))
            for name, answer in answers.items()
        ]
        ranking = rank_campaigns(folders)
        assert names(ranking) == ["near", "far", "nan"]
        assert counted(ranking) == [0.5, 5.0, 10.0]

    def test_more_queries_are_harder(self, tmp_path: Path) -> None:
        ends = {name: asking(range(n, n + SEEDS)) for name, n in (("few", 20), ("many", 200))}
        ranking = ranked(tmp_path, ends, search=DFLARE)
        assert (ranking.measure, names(ranking)) == ("queries", ["many", "few"])
        assert numbers(ranking.verdict) == "16 16 0 0.001"
        assert "found (100" in ranking.success_verdict

    def test_a_search_that_found_nothing_counts_above_all_others_however_early_it_ended(
        self, tmp_path: Path
    ) -> None:
        search = {"strategy": "dflare", "max_queries": 0, "timeout_s": 5.0}
        early = asking([50] * SEEDS, status=Status.TIMEOUT)
        ends = {"found": asking(range(100, 100 + SEEDS)), "slow": early}
        ranking = ranked(tmp_path, ends, search=search)
        assert ranking.duels[0].verdict == ranking.success[0].verdict == "slow"
        assert names(ranking) == ["slow", "found"]

    def test_queries_are_counted_up_to_the_first_trigger(self, tmp_path: Path) -> None:
        ends = {"one": asking([90] * SEEDS, first=12), "other": asking([30] * SEEDS)}
        ranking = ranked(tmp_path, ends, search=DFLARE)
        assert dict(zip(names(ranking), counted(ranking), strict=True)) == {"one": 12, "other": 30}

    @pytest.mark.parametrize(
        ("measure", "expected"),
        [
            ("disagreement", (0.25, 0.5, 0.7)),
            ("severity", (0.25, 0.5, 0.7)),
            ("queries", (300, 100, 50)),
        ],
    )
    def test_resisting_is_a_merit_and_failing_as_it_is_none(
        self, tmp_path: Path, measure: Any, expected: tuple[float, ...]
    ) -> None:
        plain = asking([100] * SEEDS, disagreement=0.5)
        resists = [*plain[:8], *[Ended(queries=80, status=Status.GAVE_UP)] * 8]
        fails = [*plain[:8], *[Ended(0.9, status=Status.SEED_DEVIATES)] * 8]
        ends = {"fails": fails, "plain": plain, "resists": resists}
        ranking = ranked(tmp_path, ends, measure, search=DFLARE if measure == "queries" else None)
        assert places(ranking) == {"resists": 1, "plain": 2, "fails": 3}
        assert counted(ranking) == pytest.approx(expected)
        assert [one.figures.seed_deviates for one in ranking.candidates] == [0, 0, 8]
        assert [one.figures.success_rate for one in ranking.candidates] == [0.5, 1, 1]

    def test_an_answer_that_is_no_number_is_the_worst(self, tmp_path: Path) -> None:
        broken = [Ended(queries=1, status=Status.NONFINITE)] * SEEDS
        ranking = ranked(tmp_path, {"broken": broken, "whole": about(0.9)})
        assert (names(ranking), counted(ranking)[1]) == (["whole", "broken"], 1)


class TestTies:
    def test_a_model_against_itself(self, tmp_path: Path) -> None:
        ranking = ranked(tmp_path, TWO)
        (duel,) = ranking.duels
        assert (duel.difference, duel.interval, duel.verdict) == (0, (0, 0), "tie")
        assert "16 seeds don't" in ranking.verdict
        assert places(ranking) == {"a": 1, "b": 1}
        assert "same-file" in codes(ranking)
        said = json.loads(json.dumps(ranking.to_json(), allow_nan=False))
        assert said["candidates"][0]["value"]["value"] == pytest.approx(0.5, abs=0.1)
        assert said["duels"][0]["verdict"] == "tie"

    def test_others_are_distinguished_from_those_that_tie(self, tmp_path: Path) -> None:
        levels = {"a": (0.3, 1), "b": (0.34, 2), "z": (0.9, 3)}
        ranking = ranked(tmp_path, {n: about(level, draw=d) for n, (level, d) in levels.items()})
        assert places(ranking) == {"a": 1, "b": 1, "z": 3}
        assert "(16 seeds don't" in ranking.verdict

    @pytest.mark.parametrize(("seeds", "verdict"), [(2, "tie"), (5, "tie"), (6, "a")])
    def test_few_seeds_never_tell_apart_however_alike_they_are(
        self, tmp_path: Path, seeds: int, verdict: str
    ) -> None:
        ranking = ranked(tmp_path, {"a": [Ended(0.1)] * seeds, "b": [Ended(0.9)] * seeds})
        (duel,) = ranking.duels
        assert (duel.verdict, duel.too_few) == (verdict, seeds < 6)
        if duel.too_few:
            assert (duel.differing, duel.needed) == (seeds, 6)
            assert "6 seeds" in ranking.verdict

    def test_a_tie_for_want_of_seeds_that_differ_says_so(self, tmp_path: Path) -> None:
        levels = {"a": 0.1, "b": 0.9, "c": 0.9}
        ends = {name: [Ended(0.1)] * 4 + [Ended(level)] * 5 for name, level in levels.items()}
        folders = folders_of(tmp_path, ends)
        two, three = rank_campaigns(folders[:2]), rank_campaigns(folders)
        assert "differ between a and b: 5 of 9" in two.verdict
        assert numbers(two.verdict).endswith("5 9 6")
        assert not two.notes[1:]  # said once
        notes = [one for one in three.notes if "Too few" in one]
        assert numbers(notes[0]).startswith("5 9 7")
        assert len(notes) == 2  # b and c are alike

    @pytest.mark.extended
    def test_noise_is_called_a_difference_no_oftener_than_the_level_says(self) -> None:
        rng, draws = np.random.default_rng(5), 400
        wrong = 0
        for _ in range(draws):
            drawn = {name: rng.normal(0.5, 0.1, 20).tolist() for name in "ab"}
            (duel,) = duels_between(drawn, level=0.95, more_is_better=True)
            wrong += duel.verdict != "tie"
        assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)

    def test_more_pairs_need_more_to_be_distinguished(self, tmp_path: Path) -> None:
        ends = {name: about(0.5, draw=draw) for draw, name in enumerate("abc")}
        folders = folders_of(tmp_path, ends)
        of_two, of_three = rank_campaigns(folders[:2]), rank_campaigns(folders)
        assert of_two.duels[0].level == pytest.approx(0.95)
        assert of_three.duels[0].level == pytest.approx(1 - 0.05 / 3)
        same = next(duel for duel in of_three.duels if {duel.first, duel.second} == {"a", "b"})
        assert np.ptp(same.interval) > np.ptp(of_two.duels[0].interval)

    def test_where_a_tie_is_not_handed_on_it_is_reported(self, tmp_path: Path) -> None:
        noise = np.random.default_rng(2).uniform(-0.2, 0.2, SEEDS)
        between = [Ended(float(0.43 + one - noise.mean())) for one in noise]
        ends = {"low": [Ended(0.40)] * SEEDS, "between": between, "high": [Ended(0.46)] * SEEDS}
        ranking = ranked(tmp_path, ends)
        assert {*places(ranking).values()} == {1}
        (note,) = (one for one in ranking.notes if "shared by low and high" in one)
        assert "(between)" in note
        assert "make deviate" in note


class TestFigures:
    def test_accuracy_is_contrasted_where_it_cannot_tell(self, tmp_path: Path) -> None:
        ends = about(0.2)
        ends[0] = ends[0]._replace(right=False)
        ranking = ranked(tmp_path, {"a": ends, "b": about(0.7)})
        accuracy = ranking.candidates[0].figures.accuracy
        assert ranking.original is not None
        assert ranking.original.rate == 1
        assert (accuracy.right, accuracy.labelled) == (15, 16)
        assert 0.7 < accuracy.low < accuracy.rate < accuracy.high < 1
        assert numbers(ranking.accuracy_verdict) == "16 93.8 100 100"

    def test_those_of_the_paper_are_next_to_it(self, tmp_path: Path) -> None:
        ends = {"a": asking(range(1, 1 + SEEDS)), "b": asking([5] * SEEDS)}
        one = ranked(tmp_path, ends, search=DFLARE).candidates[0]
        mean, median = one.figures.queries, one.figures.queries_median
        assert (one.name, one.size, mean.value, median.value) == ("a", 1234, 8.5, 8.5)
        assert mean.low < 8.5 < mean.high
        assert (median.low, median.high) == (pytest.approx(4, abs=1), pytest.approx(13, abs=1))
        assert one.figures.l2 == 1.5
        assert one.figures.seconds_per_inference == pytest.approx(0.001)

    def test_replicas_count_with_their_mean(self, tmp_path: Path) -> None:
        ends = {"a": about(0.2), "b": about(0.6)}
        ranking = ranked(tmp_path, ends, replicas=("pi", "jetson"))
        assert (ranking.seeds, ranking.duels[0].verdict) == (SEEDS, "a")
        assert ranking.candidates[0].figures.searched == 2 * SEEDS


class TestWhatIsCompared:
    def test_only_seeds_that_all_have_finished(self, tmp_path: Path) -> None:
        left = [*about(0.5)[:-4], None, None, None, None]
        failed = [Ended(status=Status.UNSTABLE), *about(0.5)[2:], Ended(status=Status.FAILED)]
        ranking = ranked(tmp_path, {"a": left, "b": failed})
        assert ranking.seeds == SEEDS - 5
        remarks = {one.code: (one.names, one.number, one.total) for one in ranking.remarks}
        assert remarks["unfinished"] == (("a",), 12, 16)
        assert remarks["unanswered"] == (("b",), 2, 0)
        assert {one.name: one.finished for one in ranking.candidates} == {"a": False, "b": True}

    def test_open_stores_and_names_of_ones_own(self, tmp_path: Path) -> None:
        folders = folders_of(tmp_path, TWO)
        with Store.open(folders[0]) as one, Store.open(folders[1]) as other:
            ranking = rank_campaigns([one, other], names=["last green night", "tonight"])
            assert one.seed_count() == SEEDS
        assert "16 seeds don't" in ranking.verdict

    def test_two_campaigns_of_one_file_are_called_by_their_folders(self, tmp_path: Path) -> None:
        folders = [candidate(tmp_path / night / "lenet", about(0.5)) for night in ("mon", "tue")]
        assert {*names(rank_campaigns(folders))} == {"1-lenet", "2-lenet"}

    def test_a_candidate_that_answers_otherwise_is_not_taken_for_the_original(
        self, tmp_path: Path
    ) -> None:
        hard = [Ended(status=Status.GAVE_UP)] * 8
        hard[0] = hard[0]._replace(right=False)
        folders = folders_of(tmp_path, {"hard": hard})
        folders += folders_of(tmp_path, {"pruned": [Ended(0.5)] * 8}, deployed="cc")
        assert rank_campaigns(folders).notes == ()

    def test_the_candidates_runtimes_are_no_other_devices(self, tmp_path: Path) -> None:
        folders = folders_of(tmp_path, TWO)
        with Store.open(folders[1]) as store:
            for runtime in ("tflite", "onnx"):
                store.add_device({"board": "pi", "runtime": {"name": runtime}}, "pi")
        assert "devices-differ" not in codes(rank_campaigns(folders))

    @pytest.mark.parametrize(
        ("more", "note", "refused"),
        [
            ({"search": {"seed": 7}}, "seeds-differ", ""),
            ({"device": "jetson"}, "devices-differ", ""),
            ({"original": "cc"}, "", "differ (a: original.onnx"),
            ({"first_sample": 3}, "", "inputs differ (16"),
            ({"search": {"margin_floor": 0.1}}, "", "margin_floor is 0.001"),
            ({"search": {"options": {"device_budget": 8}}}, "", "option device_budget"),
            ({"search": {"strategy": "dflare"}}, "", "strategy is boundary"),
            ({"search": {"max_queries": 9}}, "", "max_queries is 2000"),
        ],
    )
    def test_what_may_differ_is_reported_and_what_must_not_is_refused(
        self, tmp_path: Path, more: Any, note: str, refused: str
    ) -> None:
        folders = [candidate(tmp_path / "a", TWO["a"]), candidate(tmp_path / "b", TWO["b"], **more)]
        if note:
            assert note in codes(rank_campaigns(folders))
            return
        with pytest.raises(UsageError, match="can't be compared") as error:
            rank_campaigns(folders)
        assert refused in str(error.value)

    @pytest.mark.parametrize(
        ("count", "options", "named"),
        [
            (1, {}, "two candidates"),
            (2, {"names": ["x", "x"]}, "name"),
            (2, {"level": 1}, "confidence"),
            (2, {"measure": "luck"}, "measure luck"),
            (2, {"measure": "queries"}, "two queries"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self, tmp_path: Path, count: int, options: Any, named: str
    ) -> None:
        with pytest.raises(UsageError, match=named):
            rank_campaigns(folders_of(tmp_path, TWO)[:count], **options)

    def test_labels_alone_have_no_disagreement(self, tmp_path: Path) -> None:
        ends = {name: asking([5] * SEEDS) for name in "ab"}
        folders = folders_of(tmp_path, ends, kind="label", search=DFLARE)
        assert rank_campaigns(folders).measure == "queries"
        with pytest.raises(UsageError, match="deployed model"):
            rank_campaigns(folders, measure="severity")

    def test_nothing_in_common_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="candidates have"):
            ranked(tmp_path, {"a": [None] * 3, "b": about(0.5, seeds=3)})
