"""Small models without a file, a device that runs one, and a search without a campaign."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare.oracles import LabelOracle, Oracle, has_margin_below
from edgeflare.testing.fake_agent import FakeAgent
from edgeflare.types import Answer, Ask, Decision, Outcome, Outputs, Sample, Scores, Seed, Strategy

Model: TypeAlias = Callable[[Sample], Scores]
"""Gives the probabilities, float64 [classes], for a raw sample."""


@dataclass(frozen=True, eq=False)
class FakeModel:
    """A linear classifier of images: softmax of pixels (0 to 1) @ `weights` [values, classes].

    `shape` is that of an image: (height, width, channels).
    """

    shape: tuple[int, int, int]
    weights: NDArray[np.float64]

    @classmethod
    def random(
        cls, shape: tuple[int, int, int] = (8, 8, 1), classes: int = 4, seed: int = 0
    ) -> "FakeModel":
        """Return a model with Gaussian weights; the same arguments give the same model."""
        values = int(np.prod(shape))
        return cls(shape, np.random.default_rng(seed).normal(size=(values, classes)))

    def quantised(self, step: float = 0.25) -> "FakeModel":
        """Return a copy with weights rounded to multiples of `step`, like a compressed model's."""
        return FakeModel(self.shape, np.round(self.weights / step) * step)

    def __call__(self, sample: Sample) -> Scores:
        """Return the probabilities for a uint8 image of the model's shape."""
        logits = sample.reshape(-1) / 255.0 @ self.weights
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())

    def device(self) -> FakeAgent:
        """Return a device that answers with this model, whatever its file; see `connecting`."""
        tensor = {"dtype": "float32", "quantization": None}
        loaded = {
            "inputs": [{"name": "x", "shape": [1, *self.shape], **tensor}],
            "outputs": [{"name": "y", "shape": [1, self.weights.shape[1]], **tensor}],
        }
        return FakeAgent(loaded=loaded, infer=lambda sample: self(sample)[None].astype(np.float32))


@dataclass
class StrategyRun:
    """What a strategy did: how it ended, and all that it asked, in order, with the answers.

    `outcome` is None where an answer that is not finite ended the search. `queries` counts the
    inputs that the deployed model was asked about, `host_only_queries` those for the original
    alone.
    """

    outcome: Outcome | None = None
    asked: list[tuple[Ask, Answer]] = field(default_factory=list)
    queries: int = 0
    host_only_queries: int = 0


def run_strategy(
    strategy: Strategy,
    sample: Sample,
    *,
    original: Model,
    deployed: Model,
    oracle: Oracle | None = None,
    max_queries: int = 2000,
    seed: int = 0,
) -> StrategyRun:
    """Search from one seed input as a campaign does, without confirmation.

    `oracle` None compares top-1 labels; `seed` is that of the strategy's randomness. A search that
    would exceed `max_queries` ends with the best outcome that it has reported. Raises UsageError
    for a strategy that asks for gradients.
    """
    judge = oracle or LabelOracle()
    run = StrategyRun()

    def outputs(one: Sample, of: str) -> Outputs:
        ours = None if of == "deployed" else original(one)
        if of == "original":
            run.host_only_queries += 1
            return Outputs(ours, None, Decision.UNDECIDED)
        if ours is not None and has_margin_below(ours, judge.floor):
            return Outputs(ours, None, Decision.BELOW_FLOOR)
        run.queries += 1
        theirs = deployed(one)
        return Outputs(
            ours, theirs, Decision.UNDECIDED if ours is None else judge.decide(ours, theirs)
        )

    answers = (original(sample), deployed(sample))
    start = Seed(
        "seed", sample, Outputs(*answers, judge.decide(*answers)), margin_floor=judge.floor
    )
    search = strategy(start, np.random.default_rng(seed))
    try:
        ask = next(search)
        while ask.of == "original" or run.queries + len(ask.samples) <= max_queries:
            if ask.want == "gradient":
                raise UsageError(
                    "a strategy asks for gradients, which a plain function as the original does not "
                    "have; leave gradients out"
                )
            answer = Answer([outputs(one, ask.of) for one in ask.samples])
            run.asked.append((ask, answer))
            if any(one.decision is Decision.NONFINITE for one in answer.outputs):
                return run
            ask = search.send(answer)
        run.outcome = ask.best or Outcome(None, reason=f"{max_queries} queries were not enough")
    except StopIteration as end:
        run.outcome = end.value
    return run
