"""The boundary search on recordings, beside models of their loudness in bands and moments."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from search_models import Pair, Run, played

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy
from edgeflare.strategies.boundary import BoundaryOptions, resolve_options
from edgeflare.strategies.boundary.directions import directions_for, noise_like
from edgeflare.strategies.boundary.points import AUDIO_SPACE
from edgeflare.types import Decision, Sample, Scores
from edgeflare_mutators import Mutation, corruptions, replay

RATE = 8000
BANDS, MOMENTS = 6, 5
CROSSINGS = ("least-l2", "line", "mutants", "natural")


@dataclass(frozen=True)
class Listener:
    """A linear classifier of the logarithms of a recording's power, in bands of moments."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]

    def __call__(self, sample: Sample) -> Scores:
        moments = np.array_split(sample.astype(np.float64), MOMENTS)
        spectra = [np.abs(np.fft.rfft(part, 64)[1:]) ** 2 for part in moments]
        power = [part.mean() for one in spectra for part in np.array_split(one, BANDS)]
        logits = np.log(np.array(power) + 1e-6) @ self.weights + self.bias
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())


def recording(number: int, size: int = 2000) -> Sample:
    rng = np.random.default_rng((number, 4))
    loudness = np.interp(np.arange(size), np.linspace(0, size, 9), rng.uniform(0.02, 0.3, 9))
    hum = np.sin(np.arange(size) * rng.uniform(0.1, 1.5))
    return (np.rint((hum + 0.3 * rng.standard_normal(size)) * loudness * 2e4) / 32768).astype(
        np.float32
    )


def pair(drift: float = 0.3, **options: Any) -> Pair:
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((BANDS * MOMENTS, 4)) * 0.4
    seen = [np.log(Listener(weights, np.zeros(4))(recording(one))) for one in range(40)]
    original = Listener(weights, -np.mean(seen, axis=0))
    deployed = replace(original, bias=original.bias + drift * np.array([1.0, -1.0, 0.5, -0.5]))
    return Pair(original, deployed, **options)


def searched(
    models: Pair, sample: Sample, number: int = 0, operators: tuple[str, ...] = (), **options: Any
) -> Run:
    others = [sample, *(recording(one, size) for one in range(40, 46) for size in (2000, 1500))]
    seed = replace(models.seed(sample, others), rate=RATE)
    run = Run()
    strategy = build_strategy("boundary", {"effort": 64, "tied_classes": 2, **options}, operators)
    run.outcome = played(strategy(seed, np.random.default_rng(number)), models, run)
    return run


def agreed(models: Pair, count: int) -> list[Sample]:
    found = [recording(one) for one in range(40)]
    return [one for one in found if models.outputs(one).decision is Decision.AGREE][:count]


def snr_db(seed: Sample, sample: Sample) -> float:
    difference = sample.astype(np.float64) - seed
    return float(10 * np.log10(np.square(seed).sum() / np.square(difference).sum()))


def is_of_16_bits(sample: Sample) -> bool:
    levels = sample.astype(np.float64) * 32768
    return bool(np.array_equal(levels, np.rint(levels)) and np.abs(levels).max() <= 32768)


@pytest.mark.parametrize("crossing", CROSSINGS)
@pytest.mark.parametrize("labels_only", [False, True], ids=["scores", "labels"])
def test_every_crossing_leads_to_a_trigger(crossing: str, labels_only: bool) -> None:
    models = pair(labels_only=labels_only)
    for number, sample in enumerate(agreed(models, 3)):
        run = searched(models, sample, number, crossing=crossing)
        assert models.outputs(run.found).decision is Decision.DEVIATION
        assert len(run.queries) <= 10
        assert run.kept_back == 0
        for one in run.samples:
            assert one.dtype == np.float32
            assert np.abs(one).max() <= 1.0


@pytest.mark.rounding
def test_the_changes_of_the_nearest_crossing_are_faint_and_of_16_bits() -> None:
    models = pair()
    nearest, lines = (
        [
            snr_db(sample, searched(models, sample, number, crossing=crossing).found)
            for number, sample in enumerate(agreed(models, 5))
        ]
        for crossing in ("least-l2", "line")
    )
    assert np.median(nearest) >= 15
    assert np.median(nearest) >= np.median(lines) + 6
    run = searched(models, agreed(models, 1)[0], crossing="least-l2")
    assert all(is_of_16_bits(one) for one in run.samples)


@pytest.mark.rounding
def test_three_classes_are_brought_to_a_tie_too() -> None:
    models = pair()
    for number, sample in enumerate(agreed(models, 3)):
        run = searched(models, sample, number, crossing="least-l2", tied_classes=3)
        assert models.outputs(run.found).decision is Decision.DEVIATION


@pytest.mark.rounding
def test_a_device_budget_makes_the_finding_severe() -> None:
    models = pair()
    for number, sample in enumerate(agreed(models, 2)):
        first = searched(models, sample, number, crossing="least-l2", effort=16)
        more = searched(models, sample, number, crossing="least-l2", effort=16, device_budget=12)
        assert first.severest < more.severest
        assert len(more.queries) <= 12


def test_natural_findings_replay_and_bounds_hold() -> None:
    models = pair()
    (sample,) = agreed(models, 1)
    run = searched(models, sample, crossing="natural", effort=8)
    steps = [Mutation.from_json(step) for step in run.outcome.mutations]
    assert {step.operator for step in steps} <= set(corruptions("audio"))
    assert np.array_equal(replay(sample, steps), run.found)
    bound = 0.2 * float(np.linalg.norm(sample))
    bounded = searched(models, sample, crossing="least-l2", max_l2=bound)
    assert all(np.linalg.norm(one.sample - sample) <= bound for one in bounded.queries)


def test_a_change_of_the_length_is_no_way_by_mutants_but_one_by_natural_corruptions() -> None:
    models = pair()
    (sample,) = agreed(models, 1)
    assert searched(models, sample, 0, ("tempo",), crossing="mutants", effort=4).found.shape == (
        2000,
    )
    run = searched(models, sample, 0, ("tempo",), crossing="natural", effort=4)
    assert {one.size for one in run.samples} - {2000}


@pytest.mark.parametrize(
    "sample",
    [np.zeros(2000), np.zeros(1), np.full(2, 0.5), np.full(64, -1.0), np.full(2000, 3e-5)],
    ids=["silent", "one-value", "two-values", "clipped", "one-level"],
)
def test_recordings_without_sound_are_searched_as_well(sample: NDArray[np.float64]) -> None:
    def original(one: Sample) -> Scores:
        loud = float(np.clip(1e3 * np.square(one[: one.size // 2 + 1]).mean(), 0, 1))
        return np.array([0.9 - 0.8 * loud, 0.1 + 0.8 * loud])

    def deployed(one: Sample) -> Scores:
        return np.asarray(original(one) + np.array([-0.05, 0.05]))

    models = Pair(original, deployed)
    run = searched(models, sample.astype(np.float32), crossing="least-l2", effort=16)
    assert run.outcome is not None
    assert all(one.shape == sample.shape for one in run.samples)


def test_directions_are_parts_of_the_sound_and_sum_up_to_it() -> None:
    values = AUDIO_SPACE.values(recording(0))
    found = directions_for(values, 64)
    lengths = [(one.steps * one.directions).sum() * 4 for one in found.probes()]
    assert np.allclose([np.linalg.norm(found[place]) for place in range(len(found))], 1.0)
    assert np.allclose(found.combine(np.array(lengths)), values, atol=40.0)
    drawn = noise_like(np.random.default_rng(0), values)
    assert np.linalg.norm(drawn) == pytest.approx(1.0)
    quiet = np.argsort(np.convolve(np.square(values), np.ones(200), "same"))[:500]
    assert np.square(drawn[quiet]).sum() < 0.25


@pytest.mark.parametrize("compares_scores", [False, True])
def test_ssim_is_refused(compares_scores: bool) -> None:
    pytest.importorskip("skimage")
    models = pair()
    seed = replace(models.seed(agreed(models, 1)[0]), rate=RATE, compares_scores=compares_scores)
    steps = build_strategy("boundary", {"min_ssim": 0.5})(seed, np.random.default_rng(0))
    with pytest.raises(UsageError, match="min_ssim means"):
        next(steps)


@pytest.mark.parametrize(
    ("of", "crossing", "effort"), [("audio", "least-l2", 256), ("transcript", "natural", 32)]
)
def test_what_is_left_open_is_chosen_by_the_kind_whatever_a_query_costs(
    of: Any, crossing: str, effort: int
) -> None:
    for ratio in (0.1, 1000.0):
        chosen = resolve_options(BoundaryOptions(), 16_000, one_trip=False, of=of, ratio=ratio)
        assert (chosen.crossing, chosen.effort, chosen.candidates) == (crossing, effort, 1)
    stated = BoundaryOptions(crossing="line", effort=9, candidates=2, tied_classes=3)
    assert resolve_options(stated, 16_000, one_trip=True, of=of) == stated
