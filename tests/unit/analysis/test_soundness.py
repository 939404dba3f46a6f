"""A deployed model held against healthy references, on simulated answers to a survey."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from stores import store_of

from edgeflare.analysis import Soundness, SurveyScores, campaign_soundness, check_limits, judge
from edgeflare.answers.oracles import LabelOracle
from edgeflare.reports import report_text
from edgeflare.store import (
    OutcomeRecord,
    ReferenceAnswer,
    SeedAnswer,
    Store,
    SurveyRecord,
)
from edgeflare.types import Decision, Status

REFERENCES = 6
FAMILIES = ("gain", "noise", "mix", "patch")


class Survey:
    """Answers of models to the same inputs: some inputs are harder than others for all of them."""

    def __init__(self, seed: int, seeds: int = 50, each: int = 6, drift: float = 0.03) -> None:
        self._rng = np.random.default_rng(seed)
        count = seeds * each
        self.seed_ids = [f"s:{number // each}" for number in range(count)]
        self.families = [FAMILIES[number % len(FAMILIES)] for number in range(count)]
        self.severities = [1 + number % 5 for number in range(count)]
        of_seed = np.repeat(self._rng.lognormal(0, 0.7, seeds), each)
        self._hardness = drift * of_seed * self._rng.lognormal(0, 0.7, count)

    def model(self, larger: float = 1.0) -> SurveyScores:
        """A model that drifts on average `larger` times as far as a usual one."""
        own = larger * self._rng.lognormal(0, 0.15)
        noise = self._rng.lognormal(0, 0.4, self._hardness.size)
        drift = np.minimum(own * self._hardness * noise, 1.0)
        return self.scores(drift)

    def scores(self, drift: NDArray[np.float64]) -> SurveyScores:
        """A model of this drift, which deviates wherever it is above .45."""
        return SurveyScores(self.seed_ids, self.families, self.severities, drift, drift > 0.45)

    def references(self) -> Mapping[str, SurveyScores]:
        return {f"int8-{number}": self.model() for number in range(REFERENCES)}

    def wrong_where(self, chosen: NDArray[np.bool_]) -> SurveyScores:
        """A healthy model that answers wrongly on the chosen inputs."""
        return self.scores(np.where(chosen, 0.9, self.model().total_variation))

    @property
    def draws(self) -> NDArray[np.float64]:
        """A uniform number for each input."""
        return self._rng.random(len(self.seed_ids))


def verdicts(results: list[Soundness]) -> Counter[str]:
    return Counter(one.verdict for one in results)


def test_a_healthy_model_is_hardly_ever_called_worse() -> None:
    """At 95 % confidence about 1 of 24 would be; the allowance keeps it well below that."""
    surveys = [Survey(number, drift=0.01 if number % 2 else 0.05) for number in range(24)]
    found = verdicts([judge(one.model(), one.references()) for one in surveys])
    assert found["worse"] <= 1
    assert found["sound"] >= 19


@pytest.mark.parametrize("rate", [0.03, 0.06])
def test_deviations_that_no_reference_has_are_found(rate: float) -> None:
    """3 % of 300 inputs: 9 on average, each of them where all references agree."""
    surveys = [Survey(number) for number in range(10)]
    results = [judge(one.wrong_where(one.draws < rate), one.references()) for one in surveys]
    assert verdicts(results)["worse"] >= 9
    worse = next(one for one in results if one.verdict == "worse")
    assert worse.reasons[0] == "unexplained"


def test_a_fault_on_few_inputs_is_never_called_sound() -> None:
    chosen = np.zeros(300, np.bool_)
    chosen[[0, 30, 90, 150]] = True  # of four seeds
    surveys = [Survey(number, seeds=100, each=3) for number in range(8)]
    results = [judge(one.wrong_where(chosen), one.references()) for one in surveys]
    assert "sound" not in verdicts(results)


Drift = Callable[[Survey], NDArray[np.float64]]


@pytest.mark.parametrize(
    ("survey", "drift", "verdict", "reason", "unexplained"),
    [
        ({"seed": 1}, lambda survey: np.zeros(300), "sound", None, 0),  # the original itself
        (
            {"seed": 3, "drift": 0.01},  # drift without a deviation
            lambda survey: np.minimum(survey.model().total_variation + 0.2, 0.4),
            *("worse", "excess", 0),
        ),
        (
            {"seed": 6, "seeds": 9, "each": 30},  # fewer than ten seeds tell nothing
            lambda survey: np.full(270, 0.9),
            *("cannot-tell", "too-few", None),
        ),
        (
            {
                "seed": 7
            },  # inputs of one seed, which may be an odd one, are no evidence of their own
            lambda survey: np.where([one == "s:3" for one in survey.seed_ids], 0.9, 0.01),
            *("cannot-tell", None, 6),
        ),
    ],
)
def test_a_drift_is_judged(
    survey: dict[str, Any], drift: Drift, verdict: str, reason: str | None, unexplained: int | None
) -> None:
    made = Survey(**survey)
    references = made.references()
    found = judge(made.scores(drift(made)), references)
    assert found.verdict == verdict
    assert reason in (None, found.reasons[0])
    assert unexplained in (None, found.unexplained)
    if survey["seed"] == 1:
        assert (found.drift, found.excess) == (0, 0)
    if reason == "excess":
        assert found.excess > found.allowed_excess


def test_one_family_alone_is_named() -> None:
    survey = Survey(4, drift=0.005)
    drift = survey.model().total_variation
    noise = np.array([family == "noise" for family in survey.families])
    found = judge(survey.scores(np.where(noise, drift + 0.1, drift)), survey.references())
    assert found.verdict == "worse"
    assert "noise" in found.parts
    assert not {"gain", "mix", "patch"} & set(found.parts)


def test_a_little_evidence_is_not_enough_and_says_how_much_more_would_be() -> None:
    survey = Survey(5, seeds=20, each=2)
    found = judge(survey.model(), survey.references())
    assert (found.verdict, found.reasons[-1]) == ("cannot-tell", "more-inputs")
    assert found.more_inputs is not None
    assert found.more_inputs > 0
    enough = Survey(5, seeds=20 + found.more_inputs, each=2)
    assert judge(enough.model(), enough.references()).verdict == "sound"


def test_a_single_reference_will_do() -> None:
    survey = Survey(8, drift=0.01)
    reference = {"release-3": survey.model()}
    assert judge(survey.model(), reference).verdict == "sound"
    assert judge(survey.wrong_where(survey.draws < 0.2), reference).verdict == "worse"


def test_without_probabilities_the_deviations_alone_decide() -> None:
    survey = Survey(9, drift=0.01)
    nothing = np.full(300, np.nan)
    references = {
        name: one._replace(total_variation=nothing) for name, one in survey.references().items()
    }
    healthy = survey.model()._replace(total_variation=nothing)
    found = judge(healthy, references)
    assert (found.verdict, found.drift, found.excess) == ("sound", None, None)
    faulty = survey.wrong_where(survey.draws < 0.1)._replace(total_variation=nothing)
    assert judge(faulty, references).verdict == "worse"


def test_a_reference_of_another_kind_explains_without_enlarging_what_is_allowed() -> None:
    survey = Survey(12, drift=0.01)
    drift = survey.model().total_variation
    far = np.where(survey.draws < 0.3, drift + 0.15, drift)
    references = {**survey.references(), "dynamic": survey.scores(far)}
    like_it, other = survey.scores(far * 0.99), survey.scores(drift + 0.08)
    assert judge(like_it, survey.references()).verdict == "worse"
    assert judge(like_it, references, explaining={"dynamic"}).verdict == "sound"
    assert judge(other, references).verdict != "worse"
    found = judge(other, references, explaining={"dynamic"})
    assert found.verdict == "worse"
    assert (found.reasons[0], found.static) == ("excess", 6)
    only = {"dynamic": references["dynamic"]}
    assert judge(like_it, only, explaining={"dynamic"}).verdict == "sound"


def test_the_same_scores_give_the_same_judgement() -> None:
    first, second = (
        judge(survey.model(), survey.references()) for survey in (Survey(10), Survey(10))
    )
    assert first == second
    assert first.to_json()["evidence"] == list(first.evidence)


def test_other_inputs_are_refused() -> None:
    survey, other = Survey(11), Survey(11, seeds=49)
    with pytest.raises(ValueError, match="other inputs"):
        judge(survey.model(), {"int8": other.model()})
    with pytest.raises(ValueError, match="healthy reference"):
        judge(survey.model(), {})


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Store]:
    """Two devices that surveyed for themselves, of which "board" deviates everywhere."""
    seeds = [f"s{number}" for number in range(12)]
    agrees, other = np.array([0.9, 0.1]), np.array([0.05, 0.95])

    def answer(replica: str, seed: str, number: int) -> SurveyRecord:
        broken = replica == "board"
        return SurveyRecord(
            *(seed, number, "gain", 3, {}, f"{seed}-{number % 3}"),  # number 3 repeats 0
            original=agrees,
            deployed=None if number == 2 else other if broken else agrees,
            decision=Decision.DEVIATION if broken else Decision.AGREE,
            total_variation=0.85 if broken else 0.0,
            confident_deviation=broken and number != 2,
            replica=replica,
        )

    about = {"kind": "campaign", "path": "elsewhere", "sha256": "0" * 64}
    with store_of(
        tmp_path / "campaign",
        seeds=seeds,
        replicas=["pi", "board"],
        config={"limits": {"verdict": "sound"}},
        references={"release": about},
    ) as store:
        for seed in seeds:
            for replica in ("pi", "board"):
                store.add_survey([answer(replica, seed, number) for number in range(4)], [])
            store.add_reference_answers(
                [
                    ReferenceAnswer("release", seed, number, agrees, Decision.AGREE, 0.01)
                    for number in range(4)
                ]
            )
        yield store


def test_of_several_devices_the_worst_is_reported(fleet: Store) -> None:
    """Inputs without an answer, and those equal to one before, are left out."""
    found = campaign_soundness(fleet)
    assert found is not None
    assert (found.verdict, found.devices, found.inputs) == ("worse", 2, 24)
    assert all(one.startswith("board: ") for one in found.evidence)


def test_a_report_with_limits_judges_each_device_once(
    fleet: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs: list[int] = []

    def counted(deployed: SurveyScores, *others: Any, **settings: Any) -> Soundness:
        inputs.append(len(deployed.seed_ids))
        return judge(deployed, *others, **settings)

    monkeypatch.setattr("edgeflare.analysis.campaign_verdict.judge", counted)
    assert "healthy reference" in report_text(fleet, "markdown")
    assert inputs == [24, 24]


SCORES: Mapping[str, list[float]] = {
    "right": [0.9, 0.1],
    "wrong": [0.1, 0.9],
    "tied": [0.5, 0.5],
    "nan": [np.nan, 0.5],
}


class Seeds:
    """A campaign whose survey tells nothing against the deployed model, and what its seeds tell.

    Each model's answers to 60 seeds are given by counts; the original is right on all others.
    """

    def __init__(
        self, folder: Path, *, labels: bool, limits: bool = True, unlabelled: int = 0
    ) -> None:
        self.names = [f"s{number}" for number in range(60)]
        self.unlabelled = [f"u{number}" for number in range(unlabelled)]
        self.store = store_of(
            folder,
            seeds=[*self.names, *self.unlabelled],
            label=lambda number: 0 if labels and number < 60 else None,
            config={"limits": {"verdict": "sound"}} if limits else {},
            finished=True,
        )

    def answers(self, **counts: int) -> list[NDArray[np.float64] | None]:
        """So many answers of each kind, the others right."""
        kinds = [kind for kind, count in counts.items() for _ in range(count)]
        kinds += ["right"] * (len(self.names) - len(kinds))
        return [None if kind == "none" else np.array(SCORES[kind]) for kind in kinds]

    def deployed(self, original: Mapping[str, int] | None = None, **counts: int) -> None:
        oracle = LabelOracle()
        for name, first, second in zip(
            self.names, self.answers(**(original or {})), self.answers(**counts), strict=True
        ):
            if first is None or second is None:
                detail = "original model: no answer" if first is None else "no answer"
                self.store.add_outcome(OutcomeRecord(name, Status.FAILED, "0", detail=detail))
            else:
                answer = SeedAnswer(name, first, second, oracle.decide(first, second))
                self.store.add_seed_answers([answer])

    def reference(self, name: str, *, asked: bool = True, **counts: int) -> None:
        """A reference that answers the survey as the original does, and the seeds as counted."""
        right = np.array(SCORES["right"])
        facts = self.store.state.references
        if not facts:
            self.store.add_survey([self._surveyed(*key) for key in self._inputs()], [])
        about = {"kind": "int8", "path": name, "sha256": "0" * 64}
        self.store.state.references = {**facts, name: about}
        answers = [
            ReferenceAnswer(name, seed, number, right, Decision.AGREE, 0.01)
            for seed, number in self._inputs()
        ]
        if asked:
            answers += [
                ReferenceAnswer(
                    *(name, seed, 0, answer, LabelOracle().decide(right, answer)), phase="seed"
                )
                for seed, answer in zip(self.names, self.answers(**counts), strict=True)
                if answer is not None
            ]
        self.store.add_reference_answers(answers)

    def verdict(self) -> tuple[str | None, str, tuple[str, ...], tuple[str, ...]]:
        """The verdict, whether the limit is kept, the evidence, and the references left out."""
        found = campaign_soundness(self.store)
        (limit,) = check_limits(self.store) or (None,)
        self.store.close()
        kept = "none"
        if limit is not None:
            kept = "crossed" if limit.crossed else "undecided" if limit.undecided else "kept"
        if found is None:
            return None, kept, (), ()
        return found.verdict, kept, found.evidence, found.left_out

    def _inputs(self) -> list[tuple[str, int]]:
        return [(seed, number) for seed in self.names for number in range(3)]

    def _surveyed(self, seed: str, number: int) -> SurveyRecord:
        right = np.array(SCORES["right"])
        return SurveyRecord(
            *(seed, number, "gain", 3, {}, f"{seed}-{number}", right, right, Decision.AGREE),
            total_variation=0.0,
        )


@pytest.mark.parametrize(
    ("labels", "deployed", "references", "verdict", "kept", "left_out"),
    [
        (True, {}, [{}], "sound", "kept", 0),
        (True, {"wrong": 4}, [{}], "sound", "kept", 0),  # a fall of 4
        (True, {"wrong": 5}, [{}], "worse", "crossed", 0),
        (True, {"nan": 3, "tied": 1, "none": 1}, [{}], "worse", "crossed", 0),
        (True, {"wrong": 5}, [{"wrong": 4}], "worse", "crossed", 0),
        (True, {"wrong": 8}, [{"wrong": 7}, {"wrong": 6}], "worse", "crossed", 2),
        (True, {}, [{"wrong": 7}, {}], "sound", "kept", 1),
        (True, {}, [{"wrong": 7}], "cannot-tell", "undecided", 1),
        (False, {"wrong": 4}, [{}], "sound", "kept", 0),
        (False, {"wrong": 5}, [{}, {}], "worse", "crossed", 0),
        (False, {"tied": 2, "none": 3}, [{}], "worse", "crossed", 0),
        (False, {"wrong": 6}, [{"wrong": 3}], "sound", "kept", 0),  # as many as twice
        (False, {"wrong": 6}, [{"wrong": 6}, {}], "worse", "crossed", 1),
        (False, {"wrong": 30}, [{"wrong": 30}], "cannot-tell", "undecided", 0),
        (False, {"wrong": 13}, [{"wrong": 14}, {"wrong": 12}], "cannot-tell", "undecided", 0),
    ],
)
def test_nothing_is_sound_against_the_seeds_as_they_are(
    labels: bool,
    deployed: dict[str, int],
    references: list[dict[str, int]],
    verdict: str,
    kept: str,
    left_out: int,
    tmp_path: Path,
) -> None:
    """Though neither deviates anywhere far from the seeds."""
    seeds = Seeds(tmp_path / "c", labels=labels)
    seeds.deployed(**deployed)
    for number, counts in enumerate(references):
        seeds.reference(f"int8-{number}", **counts)
    found = seeds.verdict()
    assert found[:2] == (verdict, kept)
    assert found[2][0].startswith("on the seeds")
    assert len(found[3]) == left_out
    assert all(name in found[2][1] for name in found[3])


def test_labels_that_the_original_has_wrong_are_no_measure(tmp_path: Path) -> None:
    seeds = Seeds(tmp_path / "c", labels=True)
    seeds.deployed(original={"wrong": 48}, wrong=48)
    seeds.reference("int8")
    verdict, kept, evidence, _ = seeds.verdict()
    assert (verdict, kept) == ("cannot-tell", "undecided")
    assert "12 of 60" in evidence[1]


@pytest.mark.parametrize("labels", [True, False])
def test_an_original_that_fails_tells_nothing_against_the_deployed_model(
    labels: bool, tmp_path: Path
) -> None:
    seeds = Seeds(tmp_path / "c", labels=labels)
    seeds.deployed(original={"none": 8})
    seeds.reference("int8", none=8)
    assert seeds.verdict()[:2] == ("sound", "kept")


def test_a_failure_at_a_seed_without_a_label_is_no_fall(tmp_path: Path) -> None:
    seeds = Seeds(tmp_path / "c", labels=True, unlabelled=5)
    seeds.deployed()
    for name in seeds.unlabelled:
        seeds.store.add_outcome(OutcomeRecord(name, Status.FAILED, "0", detail="no answer"))
    seeds.reference("int8")
    found = campaign_soundness(seeds.store)
    seeds.store.close()
    assert found is not None
    assert found.own is not None
    assert (found.own.fall, found.own.failed, found.own.labelled) == (0, 5, 60)


def test_a_tie_of_the_original_is_no_flip(tmp_path: Path) -> None:
    seeds = Seeds(tmp_path / "c", labels=False)
    seeds.deployed(original={"tied": 8}, wrong=8)
    seeds.reference("int8")
    assert seeds.verdict()[:2] == ("sound", "kept")


@pytest.mark.parametrize(
    ("wrong", "labels", "verdict"),
    [(1, False, "sound"), (6, False, "cannot-tell"), (6, True, "worse")],
)
def test_a_campaign_whose_references_were_not_asked_about_the_seeds_is_judged(
    tmp_path: Path, wrong: int, labels: bool, verdict: str
) -> None:
    """As those of earlier versions: by the survey while the seeds say nothing against it."""
    seeds = Seeds(tmp_path / "c", labels=labels)
    seeds.deployed(wrong=wrong)
    seeds.reference("int8", asked=False)
    assert seeds.verdict()[0] == verdict


@pytest.mark.parametrize(
    ("wrong", "labels", "verdict"), [(5, True, "worse"), (4, True, None), (9, False, None)]
)
def test_without_references_labels_alone_tell_that_a_model_is_worse(
    tmp_path: Path, wrong: int, labels: bool, verdict: str | None
) -> None:
    seeds = Seeds(tmp_path / "c", labels=labels, limits=False)
    seeds.deployed(wrong=wrong)
    assert seeds.verdict()[0] == verdict
