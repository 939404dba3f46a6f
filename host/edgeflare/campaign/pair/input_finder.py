"""Finds how images enter both models: by how well the two agree under the usual ways.

Two versions of one model agree best where both get the inputs that they were made for. That tells
how the preprocessing of one differs from that of the other. Whether both are wrong alike is told by
their accuracy on labelled seeds, or by how much their answers say about the inputs.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.metrics import class_scores, numbers
from edgeflare.answers.outputs import softmax
from edgeflare.answers.value_outputs import TEMPERATURE
from edgeflare.campaign.events import Reporter, Stage
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair.inputs import seed_rows
from edgeflare.campaign.pair.model_pair import readers, resolve_pair
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.devices import ReconnectingSession
from edgeflare.errors import InferenceFailedError, ModelError, UsageError
from edgeflare.models import ONE_INPUT, AnswerReader, InputSpec, OriginalModel, as_output
from edgeflare.models.usual_inputs import (
    changed_options,
    combined_ways,
    stated_options,
    unusualness,
    usual_ways,
    with_values_of,
)
from edgeflare.seeds import SeedSource
from edgeflare.types import Output, Query, SampleWithRow, SeedInput, Task, with_row
from edgeflare.words.preflight import BOTH_UNDER_USUAL, INSTEAD, likeliest

Probabilities: TypeAlias = NDArray[np.float64]

SEEDS = 50
"""Seeds on which the likeliest ways are compared."""
_READ = 1000
"""Seeds of which they are chosen: the first."""
_FIRST, _THEN = 8, 24
"""Seeds on which all ways are compared, and those that are better on them."""
_BETTER, _LEFT = 12, 5
_ALIKE = 3
"""Changes of both models alike that are tried on the device."""
_CLOSE, _COMBINED = 0.1, 6
"""Where a way has at most this distance on the first seeds, so many ways are combined, else all."""
_FEWEST_LABELS = 8
_OF_DISTANCE, _OF_CHANGE = 2.0, 0.03
_NAMES = ("original", "deployed")
_READ_AS = ("classification", "embedding")


class InputPair(NamedTuple):
    """One way for images to enter both models, and what the models make of it.

    `distance` is the mean total variation distance of both models' probabilities, 0 to 1,
    `agreement` the share of seeds with one class, `accuracy` the mean of both models' (None without
    labels), `information` the mutual information of input and class over the greatest possible, 0
    to 1, the mean of both models.
    """

    original: InputSpec
    deployed: InputSpec
    distance: float
    agreement: float
    accuracy: float | None
    information: float
    score: float

    def flags(self) -> list[str]:
        """Return the flags of `edgeflare run` that state it."""
        first, second = (
            [f"{name}={value}" for name, value in stated_options(one).items()] for one in self[:2]
        )
        if first == second:
            return [part for text in first for part in ("--input", text)]
        sides = (("--original-input", first), ("--deployed-input", second))
        return [part for flag, texts in sides for text in texts for part in (flag, text)]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        models = dict(zip(_NAMES, map(stated_options, self[:2]), strict=True))
        return {**self._asdict(), **models, "flags": self.flags()}


class FoundInputs(NamedTuple):
    """The likeliest ways for images to enter both models, by descending score.

    `stated` is the way that is stated or that the files tell, None where neither tells all.
    `labelled` of the `seeds` have a label. Queries are those of the device and of the original.
    `task`: what the outputs are read as, "classification" or "embedding".
    """

    pairs: tuple[InputPair, ...]
    stated: InputPair | None
    seeds: int
    labelled: int
    device: str
    device_queries: int
    original_queries: int
    task: Task = "classification"

    def changes(self) -> list[str]:
        """Return in words how the likeliest way differs from the stated one, by model."""
        if self.stated is None:
            return []
        found = []
        for name, was, now in zip(_NAMES, self.stated[:2], self.pairs[0][:2], strict=True):
            changed = changed_options(was, now)
            old, new = (
                ", ".join(f"{key}={both[at]}" for key, both in changed.items() if both[at])
                or f"no {' and '.join(changed)}"
                for at in (0, 1)
            )
            if changed:
                found.append(INSTEAD.format(name, new, old))
        return found

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            **self._asdict(),
            "pairs": [pair.to_json() for pair in self.pairs],
            "stated": None if self.stated is None else self.stated.to_json(),
            "changes": self.changes(),
        }


def find_among(
    config: CampaignConfig,
    original: OriginalModel,
    fleet: Fleet,
    source: SeedSource,
    reporter: Reporter,
    count: int = SEEDS,
) -> FoundInputs:
    """Return the likeliest preprocessing of both models on `count` seeds, as `find_inputs` says.

    The original and the fleet's first device are configured anew.
    """
    whole, sides = _resolved(config, original, fleet)
    specs = [side.spec for side in sides if isinstance(side.spec, InputSpec)]
    task = sides[0].task
    if len(specs) < 2 or task not in _READ_AS:
        raise UsageError(
            "the preprocessing can be found of models that classify images or embed them "
            f"(--task {' or '.join(_READ_AS)}) alone"
            + ("" if len(specs) < 2 else f"; the outputs are read as {sides[0].answers} ({task})")
        )
    reporter(Stage("seeds", config.seeds.path.name))
    chosen, labels = _chosen(source, config.search.seed, count)
    rows = seed_rows(sides, [one.id for one in chosen])
    samples = [with_row(one.sample, rows.get(one.id)) for one in chosen]
    scores_of: _ScoresOf = class_scores
    if not sides[0].classes:
        scores_of = _direction_scores
        labels = np.full(len(labels), -1)  # the largest value of an embedding is no class
    session = fleet.sessions[0]
    first = _Model(specs[0], samples, _asking_original(original), scores_of)
    second = _Model(specs[1], samples, _asking_device(session, sides[1]), scores_of)
    reporter(Stage("inputs", BOTH_UNDER_USUAL))
    raws = [
        [raw for raw in model.raws(model.spec, len(samples)) if raw is not None]
        for model in (first, second)
    ]
    if not all(raws):
        raise InferenceFailedError(
            "a model answers on none of the seeds; `edgeflare devices check` tells more"
        )
    (first.reader, second.reader), _ = readers(whole, sides, (raws[0], raws[1]))
    search = _Search(
        first, second, labels, is_scored=sides[1].kind.is_scored, placed=sides[0].parts == 1
    )
    stated = search.pair(first.spec, second.spec) if whole is config else None
    return FoundInputs(
        tuple(search.run(stated=stated is not None)),
        stated,
        len(samples),
        int(np.count_nonzero(labels >= 0)),
        session.name,
        second.queries,
        first.queries,
        task,
    )


def likeliest_inputs(
    config: CampaignConfig,
    original: OriginalModel,
    fleet: Fleet,
    source: SeedSource,
    reporter: Reporter,
) -> str:
    """Return a clause that names the likeliest preprocessing where it isn't stated, else ""."""
    try:
        found = find_among(config, original, fleet, source, reporter)
    except (UsageError, ModelError, InferenceFailedError):
        return ""
    best = found.pairs[0]
    return likeliest(found.seeds, shlex.join(best.flags()), best.agreement, best.accuracy)


def _resolved(
    config: CampaignConfig, original: OriginalModel, fleet: Fleet
) -> tuple[CampaignConfig, tuple[ModelInterface, ModelInterface]]:
    """Return the configuration and both interfaces, once what nothing tells is filled in.

    The configuration is the given one where all is told.
    """
    refused: UsageError | None = None
    for missing in (
        {},
        {"resize": "area"},
        {"scale": "1/255"},
        {"resize": "area", "scale": "1/255"},
    ):
        filled = _filled(config, missing) if missing else config
        try:
            return filled, resolve_pair(filled, original, fleet)
        except UsageError as error:
            refused = error
    assert refused is not None  # noqa: S101
    raise refused


def _filled(config: CampaignConfig, missing: dict[str, str]) -> CampaignConfig:
    def with_input(model: ModelConfig, names: Sequence[str]) -> ModelConfig:
        new = {name: missing[name] for name in names if name in missing}
        if model.input.has_scaling:
            new.pop("scale", None)
        return model.model_copy(update={"input": model.input.model_copy(update=new)})

    update = {
        "original": with_input(config.original, ["scale"]),
        "deployed": with_input(config.deployed, ["scale", "resize"]),
    }
    return config.model_copy(update=update)


def _chosen(source: SeedSource, seed: int, count: int) -> tuple[list[SeedInput], NDArray[np.int64]]:
    """Return at most so many of the first seeds, chosen at random, and their labels, -1 for none."""
    rng = np.random.default_rng(seed)
    chosen: list[SeedInput] = []
    for place, one in enumerate(islice(source, _READ)):
        if len(chosen) < count:
            chosen.append(one)
        elif (instead := int(rng.integers(place + 1))) < count:
            chosen[instead] = one
    rng.shuffle(chosen)
    labels = [-1 if one.label is None else one.label for one in chosen]
    return chosen, np.array(labels, np.int64)


_Ask: TypeAlias = Callable[[Sequence[Query], InputSpec], Iterator[Output | None]]
_ScoresOf: TypeAlias = Callable[[Output], Probabilities]
"""Yields the raw output for each sample under a preprocessing, None where the model fails on it."""


def _asking_original(original: OriginalModel) -> _Ask:
    def ask(samples: Sequence[Query], spec: InputSpec) -> Iterator[Output | None]:
        for sample in samples:
            try:
                yield as_output(original.raw(sample, spec))
            except InferenceFailedError:
                yield None

    return ask


def _asking_device(session: ReconnectingSession, side: ModelInterface) -> _Ask:
    given = ONE_INPUT if side.chosen is None else side.chosen.given

    def ask(samples: Sequence[Query], spec: InputSpec) -> Iterator[Output | None]:
        session.configure(spec, side.output.name, given=given)
        for pending in [session.submit([sample], raw=True) for sample in samples]:
            try:
                yield as_output(pending.result().outputs[0])
            except InferenceFailedError:
                yield None

    return ask


class _Model:
    """A model's answers on the seeds under any preprocessing, each asked for once."""

    def __init__(
        self, spec: InputSpec, samples: Sequence[Query], ask: _Ask, scores_of: _ScoresOf
    ) -> None:
        self.spec = spec
        self._samples = samples
        self._ask = ask
        self._scores_of = scores_of
        self._raws: dict[InputSpec, list[Output | None]] = {}
        self.reader: AnswerReader | None = None
        self.queries = 0

    def raws(self, spec: InputSpec, count: int) -> list[Output | None]:
        """Return the raw outputs on the first `count` seeds, None where the model fails."""
        known = self._raws.setdefault(spec, [])
        if len(known) < count:
            missing = self._samples[len(known) : count]
            self.queries += len(missing)
            known += self._ask(missing, spec)
        return known[:count]

    def probabilities(self, spec: InputSpec, count: int) -> Probabilities:
        """Return the answers [count, classes]; NaN where there is none."""
        assert self.reader is not None  # noqa: S101
        found = [
            None if raw is None else self._scores_of(self.reader.read(raw))
            for raw in self.raws(spec, count)
        ]
        classes = max((len(one) for one in found if one is not None), default=1)
        return np.array([np.full(classes, np.nan) if one is None else one for one in found])

    @cached_property
    def sample_size(self) -> tuple[int, int]:
        """(height, width) of the samples."""
        first = self._samples[0]
        sample = first.sample if isinstance(first, SampleWithRow) else first
        height, width = sample.shape[:2]
        return height, width


def _direction_scores(answer: Output) -> Probabilities:
    """Return the softmax of what an embedding is at length 1; NaN where its length is 0."""
    values = numbers(answer)
    length = float(np.linalg.norm(values))
    return softmax(values / (length * TEMPERATURE)) if length > 0 else np.full_like(values, np.nan)


class _Search:
    """Compares ways for images to enter two models."""

    def __init__(
        self,
        original: _Model,
        deployed: _Model,
        labels: NDArray[np.int64],
        *,
        is_scored: bool,
        placed: bool,
    ) -> None:
        """`is_scored`: whether the deployed model returns scores; `placed`: whether images may be turned and resized, too."""
        self._placed = placed
        self._original = original
        self._deployed = deployed
        known = labels[labels >= 0]
        self._labels = labels if len(known) >= _FEWEST_LABELS and len(set(known)) > 1 else None
        self._is_scored = is_scored
        self._count = len(labels)
        self._stated: set[tuple[object, ...]] = set()

    def run(self, *, stated: bool) -> list[InputPair]:
        """Return the likeliest ways, by descending score; `stated`: begin at what both models have."""
        original, deployed = self._original, self._deployed
        size = original.sample_size
        ways = (
            usual_ways(original.spec, deployed.spec, size, placed=self._placed),
            usual_ways(deployed.spec, original.spec, size, placed=self._placed),
        )
        alike = sorted(ways[0], key=self._plausibility, reverse=True)
        if stated:
            self._stated = {_scaling_of(original.spec), _scaling_of(deployed.spec)}
        else:
            original.spec = alike[0]
            deployed.spec = with_values_of(deployed.spec, original.spec)
        tried = {(original.spec, deployed.spec)}
        tried |= {(one, with_values_of(deployed.spec, one)) for one in alike[:_ALIKE]}
        tried |= {(original.spec, one) for one in self._nearest(ways[1], swapped=False)}
        tried |= {(one, deployed.spec) for one in self._nearest(ways[0], swapped=True)}
        found = [self.pair(*both) for both in tried]
        return sorted(found, key=lambda one: (-one.score, one.flags()))

    def pair(self, first: InputSpec, second: InputSpec) -> InputPair:
        """Return what the models make of one way, on all seeds."""
        answers = self._answers(first, second, self._count)
        distance, agreement = _distances(*answers)
        informed = answers if self._is_scored else answers[:1]
        information = float(np.mean([_information(one) for one in informed]))
        accuracy = None
        if self._labels is not None:
            accuracy = float(np.mean([_accuracy(answer, self._labels) for answer in answers]))
        score = information if accuracy is None else accuracy
        score -= _OF_DISTANCE * distance + self._unusual(first) + self._unusual(second)
        score -= _OF_CHANGE * ((first != self._original.spec) + (second != self._deployed.spec))
        return InputPair(first, second, distance, agreement, accuracy, information, score)

    def _unusual(self, spec: InputSpec) -> float:
        return unusualness(spec, stated=_scaling_of(spec) in self._stated)

    def _answers(
        self, first: InputSpec, second: InputSpec, count: int
    ) -> tuple[Probabilities, Probabilities]:
        original = self._original.probabilities(first, count)
        if not self._is_scored:
            tops = np.argmax(original, axis=1)
            original = np.where(np.isnan(original), np.nan, np.eye(original.shape[1])[tops])
        return original, self._deployed.probabilities(second, count)

    def _plausibility(self, spec: InputSpec) -> float:
        """Return how likely this is the original's preprocessing, by the original alone."""
        answers = self._original.probabilities(spec, self._count)
        known = self._labels
        return (
            _information(answers) if known is None else _accuracy(answers, known)
        ) - unusualness(spec)

    def _nearest(self, ways: Sequence[InputSpec], *, swapped: bool) -> list[InputSpec]:
        """Return the ways of one model that come nearest to the other; `swapped`: the original's."""

        def distance(one: InputSpec, count: int) -> float:
            both = (one, self._deployed.spec) if swapped else (self._original.spec, one)
            return _distances(*self._answers(*both, count))[0] + unusualness(one) / _OF_DISTANCE

        first = min(_FIRST, self._count)
        found = sorted(ways, key=lambda way: distance(way, first))
        near = found if distance(found[0], first) > _CLOSE else found[:_COMBINED]
        found = list(dict.fromkeys([*found, *combined_ways(near)]))
        found.sort(key=lambda one: distance(one, first))
        then = min(_THEN, self._count)
        return sorted(found[:_BETTER], key=lambda one: distance(one, then))[:_LEFT]


def _scaling_of(spec: InputSpec) -> tuple[object, ...]:
    return spec.scale, spec.mean, spec.std, spec.color


def _distances(first: Probabilities, second: Probabilities) -> tuple[float, float]:
    """Return the mean total variation distance and the share of equal classes; 1 and 0 for NaN."""
    apart = np.nan_to_num(np.abs(first - second).sum(axis=1) / 2, nan=1.0)
    alike = (np.argmax(first, axis=1) == np.argmax(second, axis=1)) & (apart < 1)
    return float(apart.mean()), float(alike.mean())


def _information(answers: Probabilities) -> float:
    """Return the mutual information of input and class over the greatest possible, 0 to 1."""
    answers = answers[~np.isnan(answers).any(axis=1)]
    count, classes = len(answers), int(answers.shape[1])
    if count < 2 or classes < 2:
        return 0.0
    known = _entropy(answers.mean(axis=0)) - _entropy(answers).mean()
    return float(known / np.log(float(min(count, classes))))


def _entropy(probabilities: Probabilities) -> Any:
    return -(probabilities * np.log(np.maximum(probabilities, 1e-30))).sum(axis=-1)


def _accuracy(answers: Probabilities, labels: NDArray[np.int64]) -> float:
    known = labels >= 0
    right = np.argmax(np.nan_to_num(answers, nan=-1.0), axis=1) == labels
    return int(np.count_nonzero(right & known)) / max(1, int(np.count_nonzero(known)))
