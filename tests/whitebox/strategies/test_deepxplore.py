"""DeepXplore: what it asks for at each step, and when the device is asked."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from search_models import Affine, Pair, affine, agreed, quantised
from search_models import moved as drifted

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy, check_search
from edgeflare.types import Answer, Ask, Decision, JointGradient, Outcome, Outputs, Sample

SHAPE = (14, 14, 1)


class Host:
    """Answers a search of a pair of models beside a further original, and keeps what it asked."""

    def __init__(self, pair: Pair, *others: Affine) -> None:
        self.pair = pair
        assert isinstance(pair.original, Affine)
        self.models = (pair.original, *others)
        self.asks: list[Ask] = []
        self.asked: list[Sample] = []
        self.labels: list[tuple[int | None, ...]] = []

    def search(self, sample: Sample, **options: Any) -> Outcome:
        """Drive the strategy to its end."""
        files = [f"{number}.onnx" for number in range(len(self.models) - 1)]
        strategy = build_strategy("deepxplore", {"others": files, **options})
        steps = strategy(self.pair.seed(sample), np.random.default_rng(0))
        answer: Any = None
        while True:
            try:
                ask = steps.send(answer)
            except StopIteration as stop:
                outcome: Outcome = stop.value
                return outcome
            self.asks.append(ask)
            if ask.joint is not None:
                nothing = Outputs(None, None, Decision.UNDECIDED)
                answer = Answer([nothing], joint=[self._joint(ask)])
                continue
            self.asked.append(ask.samples[0])
            answer = Answer([self.pair.outputs(ask.samples[0])])

    def objective(self, ask: Ask, sample: Sample) -> float:
        """The objective of a request at an image."""
        scores = [model.logits(sample)[ask.joint.label] for model in self.models]
        shares = [1.0] * len(scores)
        shares[ask.joint.deviating] = -ask.joint.weight
        return float(np.dot(shares, scores))

    def _joint(self, ask: Ask) -> JointGradient:
        (sample,) = ask.samples
        gradient = np.zeros(sample.shape)
        for place, model in enumerate(self.models):
            share = -ask.joint.weight if place == ask.joint.deviating else 1.0
            gradient += share * model.weights[:, ask.joint.label].reshape(sample.shape) / 255
        labels = tuple(int(model.logits(sample).argmax()) for model in self.models)
        self.labels.append(labels)
        return JointGradient(gradient, labels)


@pytest.fixture
def host() -> Host:
    original = affine(SHAPE, 4)
    return Host(Pair(original, quantised(original)), drifted(original, 0.5))


def seeds(host: Host, count: int) -> list[Sample]:
    """Seeds on which the models of the host decide alike, too."""
    found = agreed(host.pair, SHAPE, 40)
    alike = [one for one in found if len({int(m.logits(one).argmax()) for m in host.models}) == 1]
    return alike[:count]


def test_only_images_on_which_the_hosts_models_differ_are_given_to_the_device(host: Host) -> None:
    for sample in seeds(host, 10):
        host.search(sample, constraint="occlusion")

    assert host.asked
    for sample in host.asked:
        assert len({int(model.logits(sample).argmax()) for model in host.models}) == 2
    assert len({one.tobytes() for one in host.asked}) == len(host.asked)


def test_each_step_raises_the_objective_and_each_model_deviates_in_turn(host: Host) -> None:
    (sample,) = seeds(host, 1)
    host.pair = Pair(host.pair.original, host.pair.original)  # a device that never deviates

    outcome = host.search(sample, constraint="occlusion", steps=12, weight=3, size=14)

    walks: dict[int, list[float]] = {}
    for ask in host.asks:
        if ask.joint is not None:
            assert (ask.joint.weight, ask.joint.others) == (3.0, host.asks[0].joint.others)  # type: ignore[union-attr]
            walks.setdefault(ask.joint.deviating, []).append(host.objective(ask, ask.samples[0]))
    assert set(walks) == {0, 1}
    for values in walks.values():
        assert len(values) > 3
        assert all(after > before for before, after in pairwise(values))
    assert "device decides" in outcome.reason


def test_a_finding_is_the_first_image_on_which_the_device_deviates(host: Host) -> None:
    found = 0
    for sample in seeds(host, 10):
        host.asked.clear()
        outcome = host.search(sample, constraint="occlusion")
        if outcome.sample is not None:
            found += 1
            assert np.array_equal(outcome.sample, host.asked[-1])
            assert host.pair.outputs(outcome.sample).decision is Decision.DEVIATION
    assert found


def test_a_seed_on_which_the_models_differ_is_left_out(host: Host) -> None:
    differing = next(
        one
        for one in agreed(host.pair, SHAPE, 60, surely=0.0)
        if len({int(model.logits(one).argmax()) for model in host.models}) > 1
    )

    outcome = host.search(differing)

    assert "seed already" in outcome.reason
    assert not host.asked
    assert len(host.asks) == 1


def test_scores_that_are_not_finite_are_shown_to_both_models(host, monkeypatch) -> None:
    (sample,) = seeds(host, 1)
    joint: Callable[[Ask], JointGradient] = host._joint

    def broken(ask: Ask) -> JointGradient:
        found = joint(ask)
        return found._replace(labels=(None, None)) if len(host.asks) > 2 else found

    monkeypatch.setattr(host, "_joint", broken)
    host.search(sample, steps=5)

    assert len(host.asked) >= 1


def test_options_of_stored_campaigns_that_are_gone_change_nothing() -> None:
    kept = {"others": ["a.onnx"], "weight": 3.0}
    stored = {**kept, "unit_weight": 0.1, "threshold": 0.5}
    assert build_strategy("deepxplore", stored) == build_strategy("deepxplore", kept)


def test_arguments_that_mean_nothing_are_refused() -> None:
    for options, sentence in (
        ({}, "option 'others': name the ONNX file"),
        ({"others": []}, "option 'others': name the ONNX file"),
        ({"others": ["a.onnx"], "weight": -1}, "greater than or equal to 0"),
    ):
        with pytest.raises(UsageError, match=sentence):
            build_strategy("deepxplore", options)
    with pytest.raises(UsageError, match="mutation operators"):
        build_strategy("deepxplore", {"others": ["a.onnx"]}, ("gaussian-noise",))
    with pytest.raises(UsageError, match="changes images"):
        check_search("deepxplore", {"others": ["a.onnx"]}, kind="audio", answered="audio")
