"""A pursuit finds planted faults of a shipped model and describes them; a sound one costs little."""

from collections.abc import Sequence

import numpy as np
import pytest
from planted_faults import SURE, Faulty, PlantedFault, demo_images

from edgeflare.survey.families import families_for
from edgeflare.survey.features import Features, FeatureSet
from edgeflare.survey.proposals import Derivation, Inputs
from edgeflare.survey.pursuit import Answered, Reply, Screened
from edgeflare.types import Sample

QUERIES = 100
FAMILIES = families_for("image", channels=1)
_MADE: dict[str, Sample] = {}
_FEATURES: dict[tuple[bytes, int | None], Features] = {}


class _MadeOnce(Inputs):
    """The tests begin with the same questions: each input of them is made once."""

    def sample(self, made: Derivation) -> Sample:
        if (key := repr(made)) not in _MADE:
            _MADE[key] = super().sample(made)
        return _MADE[key]


class _MeasuredOnce(FeatureSet):
    def of(self, sample: Sample, label: int | None = None) -> Features:
        if (key := (sample.tobytes(), label)) not in _FEATURES:
            _FEATURES[key] = super().of(sample, label)
        return _FEATURES[key]


def planted(faulty: Faulty) -> PlantedFault:
    images = demo_images(50)
    world = PlantedFault(faulty, _MadeOnce(images, FAMILIES, images[:32]))
    world.features = _MeasuredOnce(images[0].shape, classes=10)
    return world


def _extended(value: object) -> object:
    return pytest.param(value, marks=pytest.mark.extended)


REGIONS: dict[str, Faulty] = {
    "brightest pixel below": lambda sample, _: sample.max() < 100,
    "the top left corner": lambda sample, _: sample[:3, :3].min() >= 250,
    "the right column": lambda sample, _: sample[:, -1].mean() > 128,
    "the original's answer is 3": lambda _, label: label == 3,
}


@pytest.mark.parametrize(
    "words",
    [
        "brightest pixel below",
        "the original's answer is 3",
        _extended("the top left corner"),
        _extended("the right column"),
    ],
)
def test_a_region_is_found_and_described(words: str) -> None:
    world, rng = planted(REGIONS[words]), np.random.default_rng(1)
    found = world.pursue(world.survey(rng, 100), rng, QUERIES)
    first = found[0]
    assert words in first.condition.words(world.features.features)
    assert first.checked.precision is not None
    assert first.checked.precision >= 0.9
    precision, recall = world.accuracy(first, np.random.default_rng(2))
    assert precision >= 0.9
    assert recall >= 0.9


def test_two_faults_are_told_apart() -> None:
    world = planted(lambda sample, label: sample.max() < 100 or label == 3)
    rng = np.random.default_rng(1)
    found = world.pursue(world.survey(rng, 100), rng, 2 * QUERIES)
    words = [one.condition.words(world.features.features) for one in found if one.condition]
    assert {text.split(" at ")[0].split(" below")[0] for text in words[:2]} == {
        "brightest pixel",
        "the original's answer is 3",
    }


def test_a_sound_model_costs_little() -> None:
    world, rng = planted(lambda sample, label: False), np.random.default_rng(1)
    surveyed = world.survey(rng, 100)
    before = len(world.asked)
    assert world.pursue(surveyed, rng, QUERIES) == ()
    assert len(world.asked) - before <= QUERIES // 4


def test_a_single_deviation_is_not_described() -> None:
    world, rng = planted(lambda sample, label: False), np.random.default_rng(1)
    first, *others = world.survey(rng, 100)
    found = world.pursue([first._replace(deviates=True), *others], rng, QUERIES)
    assert [one.condition for one in found] == [None]
    assert len(world.asked) - 100 <= QUERIES // 4 + 8


def test_a_drift_unlike_the_others_is_followed() -> None:
    images = demo_images(50)
    world = PlantedFault(
        lambda sample, label: False,
        Inputs(images, FAMILIES, images[:32]),
        drifts=lambda sample, _: sample.max() < 200,
    )
    rng = np.random.default_rng(1)
    found = world.pursue(world.survey(rng, 200), rng, QUERIES)
    assert [one.condition for one in found] == [None]
    _, close = world.rounds
    assert sum(sample.max() < 200 for sample in close.samples) >= len(close.samples) // 2


class _LessSure(PlantedFault):
    """A deployed model whose margin for the original's answer is smaller, on dark inputs."""

    drop = 0.5

    def replies(self, samples: Sequence[Sample]) -> list[Reply]:
        self.asked += samples
        leads = [
            original.margin - (self.drop if sample.max() < 200 else 0.0)
            for sample, original in zip(samples, self.screened(samples), strict=True)
        ]
        return [Reply(lead < 0, abs(lead), self.drop / 2) for lead in leads]


def less_sure(drop: float) -> tuple[_LessSure, list[Answered], np.random.Generator]:
    images, rng = demo_images(50), np.random.default_rng(1)
    world = _LessSure(lambda sample, label: False, Inputs(images, FAMILIES, images[:32]))
    world.drop = drop
    return world, [one for one in world.survey(rng, 150) if not one.deviates], rng


def test_a_model_that_is_less_sure_is_led_to_deviations() -> None:
    world, surveyed, rng = less_sure(0.5)
    found = world.pursue(surveyed, rng, QUERIES)
    assert [one.condition for one in found] == [None]
    assert found[0].members
    assert min(one.margin for one in world.screened(world.asked)) >= SURE


def test_a_model_that_is_hardly_less_sure_costs_no_more_than_a_sound_one() -> None:
    world, surveyed, rng = less_sure(0.05)
    before = len(world.asked)
    assert world.pursue(surveyed, rng, QUERIES) == ()
    assert len(world.asked) - before <= QUERIES // 4


class _AlwaysSure(PlantedFault):
    """An original that answers class 0 of every clip, and is sure of it."""

    def screened(self, samples: Sequence[Sample]) -> list[Screened]:
        return [Screened(1.0, 0) for _ in samples]


def test_audio_is_described_by_its_level() -> None:
    rng = np.random.default_rng(1)
    times = np.arange(8000) / 8000
    clips = [
        (level * np.sin(2 * np.pi * pitch * times) + rng.uniform(-0.02, 0.02, 8000)).astype("f4")
        for level, pitch in zip(rng.uniform(0.2, 0.9, 20), rng.uniform(100, 3000, 20), strict=True)
    ]
    world = _AlwaysSure(
        lambda sample, _: bool(np.abs(sample).max() < 0.25),
        Inputs(clips, families_for("audio", rate=8000), clips),
        rate=8000,
    )
    found = world.pursue(world.survey(rng, 100), rng, QUERIES)
    assert found[0].condition.words(world.features.features).startswith("peak below 25")


def test_the_budget_holds_and_the_original_is_sure() -> None:
    world, rng = planted(lambda sample, label: label % 2 == 0), np.random.default_rng(1)
    surveyed = world.survey(rng, 60)
    before = len(world.asked)
    world.pursue(surveyed, rng, 40)
    asked = world.asked[before:]
    assert len(asked) <= 40
    assert min(one.margin for one in world.screened(asked)) >= 0.3


def _after_dark() -> PlantedFault:
    """A pursuit of a fault of dark images, at its end."""
    world, rng = planted(REGIONS["brightest pixel below"]), np.random.default_rng(3)
    world.pursue(world.survey(rng, 60), rng, 60)
    return world


@pytest.fixture(scope="module")
def pursued() -> PlantedFault:
    return _after_dark()


def test_the_same_answers_lead_to_the_same_questions(pursued: PlantedFault) -> None:
    runs = [
        [one for part in world.rounds for one in part.inputs] for world in (pursued, _after_dark())
    ]
    assert runs[0] == runs[1]


def test_what_is_recorded_makes_the_inputs_again(pursued: PlantedFault) -> None:
    assert any(one.family == "chain" for part in pursued.rounds for one in part.inputs)
    for part in pursued.rounds:
        for made, sample in zip(part.inputs, part.samples, strict=True):
            np.testing.assert_array_equal(Inputs(*pursued.inputs).sample(made), sample)


@pytest.mark.parametrize("rounds", [_extended(0), 1, _extended(3), _extended(5), 8])
def test_it_ends_where_the_original_is_unsure_of_all_further_inputs(rounds, monkeypatch) -> None:
    world, rng = planted(REGIONS["brightest pixel below"]), np.random.default_rng(1)
    surveyed, screened = world.survey(rng, 100), world.screened

    def unsure(samples: Sequence[Sample]) -> list[Screened]:
        found = screened(samples)
        return [one._replace(margin=0.0) for one in found] if len(world.rounds) >= rounds else found

    monkeypatch.setattr(world, "screened", unsure)
    world.pursue(surveyed, rng, QUERIES)
    assert all(len(request.samples) for request in world.rounds)


def test_a_single_sure_input_is_enough_for_a_pursuit() -> None:
    world, rng = planted(lambda sample, label: False), np.random.default_rng(1)
    surveyed, screened = world.survey(rng, 20), world.screened
    first = iter([True])
    world.screened = lambda samples: [  # type: ignore[method-assign]
        one if next(first, False) else one._replace(margin=0.0) for one in screened(samples)
    ]
    assert world.pursue(surveyed, rng, QUERIES) == ()
