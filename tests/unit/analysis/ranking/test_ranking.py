"""Candidates are ranked by campaigns that differ in nothing but the deployed model."""

import json
import math
from collections.abc import Callable, Sequence
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


def about(level: float, *, spread: float = 0.1, draw: int = 0, seeds: int = SEEDS) -> list[Ended]:
    """Triggers of about this disagreement; `draw` says which noise."""
    noise = np.random.default_rng(draw).uniform(-spread, spread, seeds)
    return [Ended(float(level + one)) for one in noise]


def asking(queries: Sequence[int], **more: Any) -> list[Ended]:
    return [Ended(queries=one, **more) for one in queries]


DFLARE = {"strategy": "dflare", "max_queries": 500}


class TestOrder:
    def test_the_hardest_to_make_deviate_comes_first_whatever_the_order_they_are_named_in(
        self, tmp_path: Path
    ) -> None:
        folders = [
            candidate(tmp_path / name, about(level, draw=draw))
            for draw, (name, level) in enumerate({"worst": 0.8, "best": 0.2, "middle": 0.5}.items())
        ]
        ranking = rank_campaigns(folders)
        assert [(one.name, one.place) for one in ranking.candidates] == [
            ("best", 1),
            ("middle", 2),
            ("worst", 3),
        ]
        assert ranking.measure == "disagreement"
        assert "middle: disagreement" in ranking.verdict
        assert ranking.verdict.count("the share of probability") == 1
        assert {(duel.first, duel.second): duel.verdict for duel in ranking.duels} == {
            ("best", "middle"): "best",
            ("best", "worst"): "best",
            ("middle", "worst"): "middle",
        }

    def test_nan_is_worse_than_any_distance_of_values(self, tmp_path: Path) -> None:
        alike = values(1.0), values(1.0)
        answers = {"nan": math.nan, "far": 6.0, "near": 1.5}
        folders = [
            value_campaign(tmp_path / name, alike, (values(1.0), values(answer)))
            for name, answer in answers.items()
        ]
        ranked = rank_campaigns(folders).candidates
        assert [one.name for one in ranked] == ["near", "far", "nan"]
        assert [one.value.value for one in ranked] == [0.5, 5.0, 10.0]

    def test_more_queries_are_harder(self, tmp_path: Path) -> None:
        many = candidate(tmp_path / "many", asking(range(200, 200 + SEEDS)), search=DFLARE)
        few = candidate(tmp_path / "few", asking(range(20, 20 + SEEDS)), search=DFLARE)
        ranking = rank_campaigns([few, many])
        assert ranking.measure == "queries"
        assert [one.name for one in ranking.candidates] == ["many", "few"]
        assert numbers(ranking.verdict) == "16 16 0 0.001"
        assert "found (100" in ranking.success_verdict

    def test_a_search_that_found_nothing_counts_above_all_others_however_early_it_ended(
        self, tmp_path: Path
    ) -> None:
        search = {"strategy": "dflare", "max_queries": 0, "timeout_s": 5.0}
        early = asking([50] * SEEDS, status=Status.TIMEOUT)
        slow = candidate(tmp_path / "slow", early, search=search)
        found = candidate(tmp_path / "found", asking(range(100, 100 + SEEDS)), search=search)
        ranking = rank_campaigns([found, slow])
        assert ranking.duels[0].verdict == "slow"
        assert [one.name for one in ranking.candidates] == ["slow", "found"]
        assert ranking.success[0].verdict == "slow"

    def test_queries_are_counted_up_to_the_first_trigger(self, tmp_path: Path) -> None:
        one = candidate(tmp_path / "one", asking([90] * SEEDS, first=12), search=DFLARE)
        other = candidate(tmp_path / "other", asking([30] * SEEDS), search=DFLARE)
        ranking = rank_campaigns([one, other])
        assert {one.name: one.value.value for one in ranking.candidates} == {"one": 12, "other": 30}

    @pytest.mark.parametrize("measure", ["disagreement", "severity", "queries"])
    def test_resisting_is_a_merit_and_failing_as_it_is_none(
        self, tmp_path: Path, measure: Any
    ) -> None:
        search = DFLARE if measure == "queries" else None
        plain = asking([100] * SEEDS, disagreement=0.5)
        resists = [*plain[:8], *[Ended(queries=80, status=Status.GAVE_UP)] * 8]
        fails = [*plain[:8], *[Ended(0.9, status=Status.SEED_DEVIATES)] * 8]
        folders = [
            candidate(tmp_path / name, ended, search=search)
            for name, ended in (("fails", fails), ("plain", plain), ("resists", resists))
        ]
        ranking = rank_campaigns(folders, measure=measure)
        assert [(one.name, one.place) for one in ranking.candidates] == [
            ("resists", 1),
            ("plain", 2),
            ("fails", 3),
        ]
        counted = {"queries": (300, 100, 50)}.get(measure, (0.25, 0.5, 0.7))
        assert [one.value.value for one in ranking.candidates] == pytest.approx(counted)
        assert [one.figures.seed_deviates for one in ranking.candidates] == [0, 0, 8]
        assert [one.figures.success_rate for one in ranking.candidates] == [0.5, 1, 1]

    def test_an_answer_that_is_no_number_is_the_worst(self, tmp_path: Path) -> None:
        broken = candidate(tmp_path / "broken", [Ended(queries=1, status=Status.NONFINITE)] * SEEDS)
        whole = candidate(tmp_path / "whole", about(0.9))
        ranking = rank_campaigns([broken, whole])
        assert [one.name for one in ranking.candidates] == ["whole", "broken"]
        assert ranking.candidates[1].value.value == 1


class TestTies:
    def test_a_model_against_itself(self, tmp_path: Path) -> None:
        folders = [candidate(tmp_path / name, about(0.5)) for name in ("a", "b")]
        ranking = rank_campaigns(folders)
        (duel,) = ranking.duels
        assert (duel.difference, duel.interval, duel.verdict) == (0, (0, 0), "tie")
        assert "16 seeds don't" in ranking.verdict
        assert [one.place for one in ranking.candidates] == [1, 1]
        assert "same-file" in [one.code for one in ranking.remarks]

    def test_others_are_distinguished_from_those_that_tie(self, tmp_path: Path) -> None:
        levels = {"a": (0.3, 1), "b": (0.34, 2), "z": (0.9, 3)}
        folders = [
            candidate(tmp_path / name, about(level, spread=0.1, draw=draw), deployed=name)
            for name, (level, draw) in levels.items()
        ]
        ranking = rank_campaigns(folders)
        assert [one.place for one in ranking.candidates] == [1, 1, 3]
        assert "(16 seeds don't" in ranking.verdict

    def test_few_seeds_never_tell_apart_however_alike_they_are(self, tmp_path: Path) -> None:
        for seeds, expected in ((5, "tie"), (6, "a")):
            folders = [
                candidate(tmp_path / f"{seeds}" / name, about(level, spread=0, seeds=seeds))
                for name, level in (("a", 0.1), ("b", 0.9))
            ]
            assert rank_campaigns(folders).duels[0].verdict == expected

    def test_two_seeds_are_a_tie_that_needs_more(self, tmp_path: Path) -> None:
        folders = [
            candidate(tmp_path / name, about(level, spread=0, seeds=2))
            for name, level in (("a", 0.1), ("b", 0.9))
        ]
        ranking = rank_campaigns(folders)
        assert ranking.duels[0].verdict == "tie"
        assert "6 seeds" in " ".join([ranking.verdict, *ranking.differences])

    @pytest.mark.extended
    def test_noise_is_called_a_difference_no_oftener_than_the_level_says(self) -> None:
        rng, draws = np.random.default_rng(5), 400
        wrong = 0
        for _ in range(draws):
            values = {name: rng.normal(0.5, 0.1, 20).tolist() for name in "ab"}
            (duel,) = duels_between(values, level=0.95, more_is_better=True)
            wrong += duel.verdict != "tie"
        assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)

    def test_more_pairs_need_more_to_be_distinguished(self, tmp_path: Path) -> None:
        folders = [
            candidate(tmp_path / name, about(0.5, draw=draw)) for draw, name in enumerate("abc")
        ]
        of_two, of_three = rank_campaigns(folders[:2]), rank_campaigns(folders)
        assert of_two.duels[0].level == pytest.approx(0.95)
        assert of_three.duels[0].level == pytest.approx(1 - 0.05 / 3)
        same = next(duel for duel in of_three.duels if {duel.first, duel.second} == {"a", "b"})
        assert np.ptp(same.interval) > np.ptp(of_two.duels[0].interval)

    def test_where_a_tie_is_not_handed_on_it_is_reported(self, tmp_path: Path) -> None:
        noise = np.random.default_rng(2).uniform(-0.2, 0.2, SEEDS)
        steady = [Ended(0.40)] * SEEDS
        between = [Ended(float(0.43 + one - noise.mean())) for one in noise]
        above = [Ended(0.46)] * SEEDS
        folders = [
            candidate(tmp_path / name, ended)
            for name, ended in (("low", steady), ("between", between), ("high", above))
        ]
        ranking = rank_campaigns(folders)
        assert [one.place for one in ranking.candidates] == [1, 1, 1]
        (note,) = [
            one for one in ranking.notes if one.startswith("Place 1 is shared by low and high")
        ]
        assert "(between)" in note
        assert "make deviate" in note


class TestAccuracy:
    def test_it_is_contrasted_where_it_cannot_tell(self, tmp_path: Path) -> None:
        ended = about(0.2)
        ended[0] = ended[0]._replace(right=False)
        folders = [candidate(tmp_path / "a", ended), candidate(tmp_path / "b", about(0.7))]
        ranking = rank_campaigns(folders)
        assert ranking.original is not None
        assert ranking.original.rate == 1
        accuracy = ranking.candidates[0].figures.accuracy
        assert accuracy is not None
        assert (accuracy.right, accuracy.labelled) == (15, 16)
        assert 0.7 < accuracy.low < accuracy.rate < accuracy.high < 1
        assert numbers(ranking.accuracy_verdict) == "16 93.8 100 100"


class TestFigures:
    def test_those_of_the_paper_are_next_to_it(self, tmp_path: Path) -> None:
        a = candidate(tmp_path / "a", asking(range(1, 1 + SEEDS)), search=DFLARE)
        b = candidate(tmp_path / "b", asking([5] * SEEDS), search=DFLARE)
        one = rank_campaigns([a, b]).candidates[0]
        assert one.name == "a"
        assert one.size == 1234
        assert one.figures.queries is not None
        assert one.figures.queries.value == 8.5
        assert one.figures.queries.low < 8.5 < one.figures.queries.high
        assert one.figures.queries_median is not None
        assert one.figures.queries_median.value == 8.5
        assert one.figures.queries_median.low == pytest.approx(4, abs=1)
        assert one.figures.queries_median.high == pytest.approx(13, abs=1)
        assert one.figures.l2 == 1.5
        assert one.figures.seconds_per_inference == pytest.approx(0.001)

    def test_replicas_count_with_their_mean(self, tmp_path: Path) -> None:
        folders = [
            candidate(tmp_path / name, about(level), replicas=("pi", "jetson"))
            for name, level in (("a", 0.2), ("b", 0.6))
        ]
        ranking = rank_campaigns(folders)
        assert ranking.seeds == SEEDS
        assert ranking.candidates[0].figures.searched == 2 * SEEDS
        assert ranking.duels[0].verdict == "a"

    def test_it_is_json(self, tmp_path: Path) -> None:
        folders = [candidate(tmp_path / name, about(0.4)) for name in ("a", "b")]
        said = json.loads(json.dumps(rank_campaigns(folders).to_json(), allow_nan=False))
        assert said["candidates"][0]["value"]["value"] == pytest.approx(0.4, abs=0.1)
        assert said["duels"][0]["verdict"] == "tie"


class TestWhatIsCompared:
    def test_only_seeds_that_all_have_finished(self, tmp_path: Path) -> None:
        left: list[Ended | None] = [*about(0.5)[:-4], None, None, None, None]
        failed = [*about(0.5)[1:], Ended(status=Status.FAILED)]
        failed[0] = Ended(status=Status.UNSTABLE)
        folders = [candidate(tmp_path / "a", left), candidate(tmp_path / "b", failed)]
        ranking = rank_campaigns(folders)
        assert ranking.seeds == SEEDS - 5
        remarks = {one.code: (one.names, one.number, one.total) for one in ranking.remarks}
        assert remarks["unfinished"] == (("a",), 12, 16)
        assert remarks["unanswered"] == (("b",), 2, 0)
        assert {one.name: one.finished for one in ranking.candidates} == {"a": False, "b": True}

    def test_open_stores_and_names_of_ones_own(self, tmp_path: Path) -> None:
        folders = [candidate(tmp_path / name, about(0.5)) for name in ("a", "b")]
        with Store.open(folders[0]) as one, Store.open(folders[1]) as other:
            ranking = rank_campaigns([one, other], names=["last green night", "tonight"])
            assert one.seed_count() == SEEDS
        assert "16 seeds don't" in ranking.verdict

    def test_two_campaigns_of_one_file_are_called_by_their_folders(self, tmp_path: Path) -> None:
        folders = [candidate(tmp_path / night / "lenet", about(0.5)) for night in ("mon", "tue")]
        assert {one.name for one in rank_campaigns(folders).candidates} == {"1-lenet", "2-lenet"}

    def test_the_candidates_runtimes_are_no_other_devices(self, tmp_path: Path) -> None:
        folders = [candidate(tmp_path / name, about(0.5)) for name in ("a", "b")]
        with Store.open(folders[1]) as store:
            store.add_device({"board": "pi", "runtime": {"name": "tflite"}}, "pi")
            store.add_device({"board": "pi", "runtime": {"name": "onnx"}}, "pi")
        assert "devices-differ" not in [one.code for one in rank_campaigns(folders).remarks]

    @pytest.mark.parametrize(
        ("more", "note"),
        [
            ({"search": {"seed": 7}}, "seeds-differ"),
            ({"device": "jetson"}, "devices-differ"),
        ],
    )
    def test_what_may_differ_is_reported(self, tmp_path: Path, more: Any, note: str) -> None:
        folders = [
            candidate(tmp_path / "a", about(0.5)),
            candidate(tmp_path / "b", about(0.5), **more),
        ]
        ranking = rank_campaigns(folders)
        assert note in [one.code for one in ranking.remarks]

    @pytest.mark.parametrize(
        ("more", "named"),
        [
            (
                {"original": "cc"},
                "differ (a: original.onnx",
            ),
            ({"first_sample": 3}, "inputs differ (16"),
            ({"search": {"margin_floor": 0.1}}, "margin_floor is 0.001"),
            (
                {"search": {"options": {"device_budget": 8}}},
                "option device_budget",
            ),
            ({"search": {"strategy": "dflare"}}, "strategy is boundary"),
            ({"search": {"max_queries": 9}}, "max_queries is 2000"),
        ],
    )
    def test_what_must_not_differ_is_named(self, tmp_path: Path, more: Any, named: str) -> None:
        folders = [
            candidate(tmp_path / "a", about(0.5)),
            candidate(tmp_path / "b", about(0.5), **more),
        ]
        with pytest.raises(UsageError) as refused:
            rank_campaigns(folders)
        assert "can't be compared" in str(refused.value)
        assert named in str(refused.value)

    @pytest.mark.parametrize(
        ("rank", "named"),
        [
            (lambda a, _: rank_campaigns([a]), "two candidates"),
            (lambda a, b: rank_campaigns([a, b], names=["x", "x"]), "name"),
            (lambda a, b: rank_campaigns([a, b], level=1), "confidence"),
            (lambda a, b: rank_campaigns([a, b], measure="luck"), "measure luck"),
            (lambda a, b: rank_campaigns([a, b], measure="queries"), "two queries"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self, tmp_path: Path, rank: Callable[[Path, Path], Ranking], named: str
    ) -> None:
        folders = [candidate(tmp_path / name, about(0.5)) for name in ("a", "b")]
        with pytest.raises(UsageError, match=named):
            rank(*folders)

    def test_labels_alone_have_no_disagreement(self, tmp_path: Path) -> None:
        folders = [
            candidate(tmp_path / name, asking([5] * SEEDS), kind="label", search=DFLARE)
            for name in ("a", "b")
        ]
        assert rank_campaigns(folders).measure == "queries"
        with pytest.raises(UsageError, match="deployed model"):
            rank_campaigns(folders, measure="severity")

    def test_nothing_in_common_is_refused(self, tmp_path: Path) -> None:
        folders = [
            candidate(tmp_path / "a", [None] * 3),
            candidate(tmp_path / "b", about(0.5, seeds=3)),
        ]
        with pytest.raises(UsageError, match="candidates have"):
            rank_campaigns(folders)
