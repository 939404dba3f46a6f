"""Shrinking of triggering inputs: nearer, still deviating, and a local minimum under its moves."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgeflare.answers.oracles import LabelOracle, TranscriptOracle
from edgeflare.errors import UsageError
from edgeflare.metrics import l2
from edgeflare.strategies import build_strategy
from edgeflare.strategies.natural_shrink import NaturalChange, steps_in
from edgeflare.strategies.shrink import PARTNER
from edgeflare.types import Decision, Outcome, Sample, Scores, Transcript
from edgeflare_lab.testing import FakeModel, run_strategy

FLOOR = 1e-3
ORIGINAL = FakeModel.random()
DEPLOYED = ORIGINAL.quantised(0.5)


def softmax(logits: np.ndarray) -> Scores:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def waves(sample: Sample) -> Scores:
    """The loudness of a recording in two bands."""
    power = np.abs(np.fft.rfft(sample, 1024)) ** 2
    return softmax(np.array([power[:128].sum(), 1.1 * power[128:].sum() + 20.0]) / 5000)


def drifted(sample: Sample) -> Scores:
    return softmax(np.log(np.maximum(waves(sample), 1e-30)) + np.array([0.6, -0.6]))


def found(number: int) -> tuple[Sample, Sample]:
    """A seed input on which both models agree, and an input on which they don't."""
    rng = np.random.default_rng(number)
    decide = LabelOracle(FLOOR).decide
    while True:
        seed, other = rng.integers(0, 256, (2, 8, 8, 1), dtype=np.uint8)
        same = decide(ORIGINAL(seed), DEPLOYED(seed)) is Decision.AGREE
        if same and decide(ORIGINAL(other), DEPLOYED(other)) is Decision.DEVIATION:
            return seed, other


def run(
    tmp_path: Path,
    seed: Sample,
    trigger: Sample,
    models: tuple[object, object],
    oracle: object = LabelOracle(FLOOR),
    natural: NaturalChange | None = None,
    **partners: Sample,
) -> Outcome:
    np.savez(tmp_path / "triggers.npz", seed=trigger, **partners)
    options = {"triggers": str(tmp_path / "triggers.npz")}
    if natural is not None:
        (tmp_path / "changes.json").write_text(json.dumps({"seed": natural._asdict()}))
        options["changes"] = str(tmp_path / "changes.json")
    found = run_strategy(
        build_strategy("shrink", options),
        seed,
        original=models[0],
        deployed=models[1],
        oracle=oracle,
    )  # type: ignore[arg-type]
    assert found.queries <= 20
    assert found.outcome is not None
    return found.outcome


def shrink(
    tmp_path: Path, seed: Sample, trigger: Sample, original: object, deployed: object
) -> Sample:
    sample = run(tmp_path, seed, trigger, (original, deployed)).sample
    assert sample is not None
    return sample


@pytest.mark.parametrize("number", range(10))
def test_the_result_is_nearer_and_no_single_move_leads_nearer(tmp_path: Path, number: int) -> None:
    """Brute force: no square of the change can be left out, or halved, at a smaller distance."""
    seed, trigger = found(number)
    nearer = shrink(tmp_path, seed, trigger, ORIGINAL, DEPLOYED)
    assert LabelOracle(FLOOR).decide(ORIGINAL(nearer), DEPLOYED(nearer)) is Decision.DEVIATION
    assert l2(seed, nearer) < 0.5 * l2(seed, trigger)
    change = nearer.astype(float) - seed
    label = int(ORIGINAL(seed).argmax())
    for side in (4, 2, 1):
        for top in range(0, 8, side):
            for left in range(0, 8, side):
                for share in (0.0, 0.5):
                    less = change.copy()
                    less[top : top + side, left : left + side] *= share
                    if not less.any():
                        continue
                    less *= 0.95 * np.linalg.norm(change) / np.linalg.norm(less)
                    moved = np.clip(np.rint(seed + less), 0, 255).astype(np.uint8)
                    if l2(seed, moved) > 0.97 * l2(seed, nearer):  # by rounding
                        continue
                    assert int(ORIGINAL(moved).argmax()) == label


def test_where_the_original_never_changes_its_mind_the_line_is_bisected(tmp_path: Path) -> None:
    """The deployed model is wrong on bright images; the original has one class for all."""

    def bright(sample: Sample) -> Scores:
        return np.array([0.2, 0.8] if sample.mean() > 100 else [0.8, 0.2])

    seed, trigger = np.zeros((8, 8, 1), np.uint8), np.full((8, 8, 1), 250, np.uint8)
    nearer = shrink(tmp_path, seed, trigger, lambda _: np.array([0.9, 0.1]), bright)
    assert 100 < nearer.mean() < 103


def test_recordings_are_shrunk_in_time_and_in_bands(tmp_path: Path) -> None:
    time = np.arange(1024) / 1024
    seed = (0.3 * np.sin(2 * np.pi * 20 * time)).astype(np.float32)
    trigger = seed.copy()
    for frequency, loud in ((300, 0.29), (50, 0.1), (400, 0.1)):
        trigger += (loud * np.sin(2 * np.pi * frequency * time)).astype(np.float32)
    decide = LabelOracle(FLOOR).decide
    scale = next(
        one
        for one in np.linspace(0.2, 2, 400)
        if decide(
            waves(at := np.clip(seed + np.float32(one) * (trigger - seed), -1, 1)), drifted(at)
        )
        is Decision.DEVIATION
    )
    trigger = np.clip(seed + np.float32(scale) * (trigger - seed), -1, 1)
    nearer = shrink(tmp_path, seed, trigger, waves, drifted)
    assert nearer.dtype == np.float32
    assert decide(waves(nearer), drifted(nearer)) is Decision.DEVIATION
    assert l2(seed, nearer) < 0.9 * l2(seed, trigger)


def sure(_: Sample) -> Scores:
    return np.array([0.9, 0.1])


def wrong_below(level: float) -> Callable[[Sample], Scores]:
    return lambda sample: np.array([0.1, 0.9] if sample.mean() < level else [0.9, 0.1])


def test_an_input_of_the_survey_shrinks_in_its_parameters(tmp_path: Path) -> None:
    """The step that isn't needed is left out, and the other is as mild as it deviates."""
    seed = np.full((8, 8, 1), 200, np.uint8)
    change = NaturalChange(
        (("noise", {"sigma": 5.0, "seed": 3}), ("dim", {"by": -0.9})), 0.3, of_survey=True
    )
    trigger = seed
    for name, family in change.families(seed, None).items():
        trigger = family.apply(trigger, dict(change.steps)[name])
    found = run(tmp_path, seed, trigger, (sure, wrong_below(120)), natural=change)
    ((name, params),) = steps_in(found.mutations)
    assert name == "dim"
    assert params["by"] == pytest.approx(-0.4, abs=0.03)
    assert 110 < found.sample.mean() < 120
    less = change._replace(steps=((name, params),))
    assert less.words(less.families(seed, None)) == f"brightness {100 * params['by']:.1f} %"


def test_a_natural_input_keeps_what_it_was_mixed_with_and_the_original_sure(tmp_path: Path) -> None:
    seed, other = np.zeros((4, 4, 1), np.uint8), np.full((4, 4, 1), 200, np.uint8)
    change = NaturalChange((("mix", {"share": 0.5, "partner": 1}),), 0.3, of_survey=True)

    def original(sample: Sample) -> Scores:
        """Sure on images of a mean above 50."""
        return np.array([0.9, 0.1] if sample.mean() > 50 else [0.55, 0.45])

    trigger = np.full((4, 4, 1), 100, np.uint8)
    partners = {f"{PARTNER}0": seed, f"{PARTNER}1": other}
    models = (original, lambda sample: np.array([0.1, 0.9] if sample.any() else [0.9, 0.1]))
    found = run(tmp_path, seed, trigger, models, natural=change, **partners)
    ((_, params),) = steps_in(found.mutations)
    assert params["share"] == pytest.approx(0.26, abs=0.02)


def test_what_makes_another_input_here_is_left_as_it_was(tmp_path: Path) -> None:
    seed = np.full((4, 4, 1), 200, np.uint8)
    change = NaturalChange((("brightness", {"by": -0.8}),), 0.0, of_survey=False)
    found = run(tmp_path, seed, seed + 1, (sure, wrong_below(120)), natural=change)
    assert found.sample is None
    assert "makes another" in found.reason


def test_a_recogniser_s_recording_is_shrunk_by_the_devices_words(tmp_path: Path) -> None:
    """The device hears another word where the middle of the recording is loud."""

    def heard(word: str) -> Transcript:
        return Transcript((word,), np.array([[0.9, 0.1]]))

    def hear(sample: Sample) -> Transcript:
        return heard("yes" if np.abs(sample[400:600]).max() < 0.3 else "no")

    seed = np.zeros(1024, np.float32)
    trigger = np.full(1024, 0.9, np.float32)
    models = (lambda _: heard("yes"), hear)
    found = run(tmp_path, seed, trigger, models, TranscriptOracle())
    assert found.sample is not None
    assert hear(found.sample).text == "no"
    assert l2(seed, found.sample) < 0.4 * l2(seed, trigger)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.npz").write_text("no archive")
    with pytest.raises(UsageError, match=r"no\.npz"):
        build_strategy("shrink", {"triggers": str(tmp_path / "no.npz")})
