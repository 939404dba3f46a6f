"""What a search that bisects the strength of a natural corruption relies on, for each of them."""

import json
from typing import Any

import numpy as np
import pytest

from edgeflare_mutators import Corruption, ParamsError, Sample, SampleSpec, common_corruptions

STRENGTHS = np.linspace(0, 1, 11)
IMAGES = list(common_corruptions().values())
AUDIO = list(common_corruptions("audio").values())
RATE = 8000
SLOWLY = ("impulse-noise", "snow", "spatter", "pixelate")
"""Those that replace a share of the values, or blocks of whole pixels: a mild step already goes far."""


def each(some: list[Corruption]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("corruption", some, ids=lambda corruption: corruption.name)


EACH = each(IMAGES + AUDIO)


def scene(height: int, width: int, channels: int) -> Sample:
    """Return a smooth image with an edge, as photographs have them; levels 40 to 170."""
    down, right = np.mgrid[:height, :width] / max(height, width)
    waves = 90 + 40 * np.sin(5 * right + 2 * down) + 40 * (down > right)
    planes = [waves * (1 - channel / 5) for channel in range(channels)]
    return np.stack(planes, -1).astype(np.uint8)


def sound(samples: int) -> Sample:
    """Return a voice-like clip of 8 kHz: harmonics of 120 Hz that swell and fade; within -0.6 to 0.6."""
    time = np.arange(samples) / RATE
    waves = sum(np.sin(2 * np.pi * 120 * k * time + k) / k for k in range(1, 6))
    return (0.25 * waves * (1 + np.sin(8 * time))).astype(np.float32)


def small(corruption: Corruption) -> Sample:
    return scene(16, 16, 1) if corruption.kind == "image" else sound(800)


def draw(corruption: Corruption, seed: int, sample: Sample) -> dict[str, Any]:
    return corruption.draw(np.random.default_rng(seed), SampleSpec.of(sample, RATE))


def distance(one: Sample, other: Sample) -> float:
    return float(np.linalg.norm(one.astype(float) - other))


@each(IMAGES)
@pytest.mark.parametrize("shape", [(28, 28, 1), (40, 33, 3)])
def test_the_image_goes_from_nearly_its_own_to_far_away(corruption, shape) -> None:
    sample = scene(*shape)
    if corruption.name == "saturation" and shape[2] == 1:
        params = draw(corruption, 0, sample)
        assert np.array_equal(corruption.apply(sample, params), sample), "grey has no colour"
        return
    for seed in range(5):
        params = draw(corruption, seed, sample)
        far = [
            distance(corruption.apply(sample, corruption.graded(params, strength)), sample)
            for strength in STRENGTHS
        ]
        assert far[0] <= (0 if corruption.name != "jpeg" else 0.02 * np.linalg.norm(sample))
        assert far[-1] > 0.03 * np.linalg.norm(sample)
        assert far[-1] > (2 if corruption.name in SLOWLY else 3) * far[1]
        assert np.corrcoef(STRENGTHS, far)[0, 1] > 0.7


@each(AUDIO)
def test_the_sound_goes_from_its_own_to_far_away(corruption: Corruption) -> None:
    sample = sound(RATE)
    for seed in range(5):
        params = draw(corruption, seed, sample)
        far = []
        for strength in (0, 0.0002, 1):
            mutated = corruption.apply(sample, corruption.graded(params, strength))
            size = min(mutated.size, sample.size)
            far.append(distance(mutated[:size], sample[:size]) / np.linalg.norm(sample))
        assert far[0] == 0
        assert far[1] < 0.3 * far[-1]
        assert far[-1] > 0.2


@each(IMAGES)
def test_a_small_step_of_the_strength_is_a_small_step_of_the_image(corruption: Corruption) -> None:
    sample = scene(64, 64, 3)
    params = draw(corruption, 3, sample)
    images = [corruption.apply(sample, corruption.graded(params, s)) for s in (0.5, 0.512, 1.0)]
    assert distance(images[0], images[1]) < 0.3 * distance(images[0], images[2])


@EACH
def test_grading_again_keeps_the_direction_the_seed_and_the_place(corruption: Corruption) -> None:
    sample = small(corruption)
    for seed in range(20):
        params = draw(corruption, seed, sample)
        mild, strong = corruption.graded(params, 0.2), corruption.graded(params, 1.0)
        assert list(mild) == list(strong) == list(params)
        kept = [drawn.name for drawn in corruption.ranges if drawn.name not in corruption.moving]
        assert all(mild[name] == strong[name] == params[name] for name in kept)
        for name in corruption.moving:
            assert np.sign(strong[name] - corruption.neutral) in {
                0, np.sign(params[name] - corruption.neutral)
            }  # fmt: skip
        if corruption.name != "jpeg":  # whole numbers: a mild step rounds
            again = corruption.graded(mild, 1.0)
            assert again == pytest.approx(strong)
        corruption.apply(sample, json.loads(json.dumps(strong)))


@EACH
def test_the_strongest_step_reaches_an_end_of_the_ranges_and_none_leaves_them(corruption) -> None:
    sample = small(corruption)
    ends = {drawn.name: (drawn.low, drawn.high) for drawn in corruption.ranges}
    for seed in range(20):
        params = draw(corruption, seed, sample)
        strong = corruption.graded(params, 1.0)
        assert any(strong[name] in ends[name] for name in corruption.moving)
        for strength in STRENGTHS:
            graded = corruption.graded(params, strength)
            assert all(low <= graded[name] <= high for name, (low, high) in ends.items())
            for drawn in corruption.ranges:
                drawn.check(graded[drawn.name])


@EACH
def test_words_name_what_changes_with_the_strength(corruption: Corruption) -> None:
    params = draw(corruption, 1, small(corruption))
    told = [corruption.words(corruption.graded(params, strength)) for strength in (0.2, 0.6, 1.0)]
    assert len(set(told)) == 3
    assert all("\n" not in words and len(words) < 90 for words in told)


@EACH
def test_a_strength_beyond_its_range_is_refused(corruption: Corruption) -> None:
    params = draw(corruption, 1, small(corruption))
    words = f"{corruption.name}: the strength must be a number from"
    for strength in (-0.01, 1.01, float("nan")):
        with pytest.raises(ParamsError, match=words):
            corruption.graded(params, strength)


@EACH
def test_incomplete_parameters_have_no_words_and_no_grade(corruption: Corruption) -> None:
    for ask in (corruption.words, lambda params: corruption.graded(params, 0.5)):
        with pytest.raises(ParamsError, match=f"{corruption.name}"):
            ask({})
