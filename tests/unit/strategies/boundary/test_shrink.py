"""Shrinking of triggering inputs: nearer, still deviating, and a local minimum under its moves."""

from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.metrics import l2
from edgeflare.oracles import LabelOracle
from edgeflare.strategies import build_strategy
from edgeflare.testing import FakeModel, run_strategy
from edgeflare.types import Decision, Sample, Scores

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


def shrink(
    tmp_path: Path, seed: Sample, trigger: Sample, original: object, deployed: object
) -> Sample:
    path = tmp_path / "triggers.npz"
    np.savez(path, seed=trigger)
    strategy = build_strategy("shrink", {"triggers": str(path)})
    run = run_strategy(
        strategy, seed, original=original, deployed=deployed, oracle=LabelOracle(FLOOR)
    )  # type: ignore[arg-type]
    assert run.queries <= 20
    assert run.outcome is not None
    assert run.outcome.sample is not None
    return run.outcome.sample


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
                    less *= 0.97 * np.linalg.norm(change) / np.linalg.norm(less)
                    moved = np.clip(np.rint(seed + less), 0, 255).astype(np.uint8)
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


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.npz").write_text("no archive")
    with pytest.raises(UsageError, match=r"can't read the triggering inputs in .*no\.npz"):
        build_strategy("shrink", {"triggers": str(tmp_path / "no.npz")})
