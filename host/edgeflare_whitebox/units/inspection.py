"""Deep neural inspection: one pass of a model over inputs, for all hypotheses and measures."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from edgeflare.errors import ModelError, UsageError
from edgeflare.types import Sample
from edgeflare_whitebox.activations import (
    Activations,
    activations_of,
    activations_or_errors,
    default_layers,
)
from edgeflare_whitebox.priority import InspectedOriginal
from edgeflare_whitebox.stored import Tell, silent
from edgeflare_whitebox.units.hypotheses import Hypothesis, InputRecord
from edgeflare_whitebox.units.measures import (
    JOINT_RECORDS,
    MEASURE_NAMES,
    MEASURES,
    LogisticF1,
    Measure,
    MeasureName,
    Scores,
    design_effects,
    is_binary,
    is_scorable,
    measure_of,
)

LEVEL = 0.95
"""The probability that all intervals of an inspection hold at once, about."""
ERROR = 0.1
"""How far a score may be from the one over all inputs, by default, in the measure's own unit."""
MOST_PAIRS = 4_000_000
"""Pairs of a hypothesis and a unit that an inspection has at most: mutual information keeps 256 bytes of each."""
_BLOCK = 64
_FIRST = 128
"""Inputs after which the scores are looked at first; then each time half as many more."""
_WHAT = "the inputs"


@dataclass(frozen=True)
class UnitScore:
    """How much a unit of a layer goes with a hypothesis, by a measure.

    `unit` is None of a joint measure: then it is the score of all units of the layer. `low` and
    `high` are the ends of the simultaneous 95 % interval. Of `records` inputs.
    """

    layer: str
    unit: int | None
    hypothesis: str
    measure: MeasureName
    score: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    records: int


@dataclass(frozen=True)
class UnitScores:
    """What `inspect_units` found: the scores of all pairs, as arrays and as rows.

    `units` are the inspected units of each layer. `scores` has float64 [hypotheses, units] by
    measure, the units of all layers one after the other; of joint measures [hypotheses, layers].
    `counts` is the number of inputs read of which each hypothesis says something, `ones` of how
    many it is 1, None of one that isn't binary; `scorable`: there were enough of either.
    `guesses` is the F1 of always saying the rarer value, NaN without. `dead`: bool [units], those
    constant over the inputs read.

    `records` of `total` inputs were read, `failed` of them without an answer of the original.
    `stopped_early`: the rest wasn't read, as every error was within `error`.
    """

    units: Mapping[str, Sequence[int]]
    hypotheses: tuple[Hypothesis, ...]
    scores: Mapping[MeasureName, Scores]
    counts: tuple[int, ...]
    ones: tuple[int | None, ...]
    scorable: tuple[bool, ...]
    guesses: tuple[float, ...]
    dead: NDArray[np.bool_]
    records: int
    total: int
    failed: int
    error: float | None

    @property
    def stopped_early(self) -> bool:
        """Whether there were inputs left to read."""
        return self.records < self.total

    def rows(
        self, hypothesis: str | None = None, measure: str | None = None
    ) -> Iterator[UnitScore]:
        """Yield the scores there are, the highest in absolute value first within hypothesis and measure."""
        pairs: list[tuple[str, int | None]] = [
            (layer, unit) for layer, units in self.units.items() for unit in units
        ]
        for h, one in enumerate(self.hypotheses):
            for name, found in self.scores.items():
                if hypothesis not in (None, one.name) or measure not in (None, name):
                    continue
                of_column = (
                    [(layer, None) for layer in self.units] if name == LogisticF1.name else pairs
                )
                order = np.argsort(-np.abs(found.score[h]), kind="stable")
                for place in order[~np.isnan(found.score[h][order])].tolist():
                    layer, unit = of_column[place]
                    score, low, high = (float(part[h, place]) for part in found)
                    records = self.counts[h]
                    if name == LogisticF1.name:
                        records = min(records, JOINT_RECORDS)
                    yield UnitScore(layer, unit, one.name, name, score, low, high, records)


def inspect_units(
    model: InspectedOriginal,
    units: Sequence[str] | Mapping[str, Sequence[int]] | None,
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str],
    data: Sequence[InputRecord],
    *,
    error: float | None = ERROR,
    random_seed: int = 0,
    tell: Tell = silent,
) -> UnitScores:
    """Score how much units of a model go with hypotheses (DeepBase: Sellam et al., SIGMOD 2019).

    `units` are names of tensors that count as layers, or of each of these the units that are
    looked at; `default_layers` where it is None. `measures` are names in `MEASURES`. Inputs are
    read in random order, drawn with `random_seed`, each once: the model runs once and a hypothesis
    is asked once, whatever the number of hypotheses and measures. `data` is asked for one input
    after the other, so that it may read them when they are asked for.

    Reading ends early at 128 inputs, or at each half more than at the look before, once every score
    is within `error` of that over all `data`, in the measure's unit, and every hypothesis has enough
    values; None reads all. Intervals are those of inputs like these; they hold at once with a probability
    of about 95 %. The rest is shared equally among measures, then among pairs and among looks.
    Inputs of one group count less for it, see `InputRecord`. As reading is without replacement, the distance to the score over
    all `data` is bounded by the interval's farther end times the root of the share that isn't read.
    That of f1 isn't reduced; the first `JOINT_RECORDS` inputs count for it, and past these its error
    is no reason to go on.

    An input on which the model can't answer, or has an activation that is not finite, is left out. Raises UsageError for an empty choice of
    hypotheses, measures or data, for more than `MOST_PAIRS`, for names that occur twice or aren't known, for a hypothesis that
    fails (see `Hypothesis.value`), without scikit-learn for f1, and for an error that isn't
    positive; ModelError where the model can't answer on any input.

    Differences: the bound allows for the number of scores and of looks; a unit or a hypothesis that is
    constant over the inputs read has no score.
    """
    _check(hypotheses, measures, data, error)
    if units is None:
        units = default_layers(model.graph)
    chosen = units if isinstance(units, Mapping) else dict.fromkeys(units)
    order = np.random.default_rng(random_seed).permutation(len(data))
    names = tuple(name for name in MEASURE_NAMES if name in measures)
    one_pass = _Pass(chosen, tuple(hypotheses), names, error)
    return one_pass.run(model, _InOrder(data, order), tell)


class _Pass:
    """One pass over the inputs; a block of activations is held, and what the measures keep."""

    def __init__(
        self,
        units: Mapping[str, Sequence[int] | None],
        hypotheses: tuple[Hypothesis, ...],
        measures: tuple[MeasureName, ...],
        error: float | None,
    ) -> None:
        self._units, self._hypotheses, self._names = units, hypotheses, measures
        self._error = error
        self._measures: dict[MeasureName, Measure] = {}
        self._chosen: dict[str, Sequence[int]] = {}
        self._block: list[tuple[NDArray[np.float64], list[float], int]] = []
        self._numbers: dict[str, int] = {}
        self._groups: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.float64]] = []
        self._least = self._largest = np.zeros(0)

    def run(self, model: InspectedOriginal, records: "_InOrder", tell: Tell) -> UnitScores:
        """Read the records, as many as are needed."""
        looks = _looks(records.total)
        layers = tuple(self._units)
        activations = activations_or_errors(
            activations_of(model.graph, model.spec, records, layers, label=model.label)
        )
        failed, last = 0, None
        tell(_WHAT, 0, records.total)
        for read, one in enumerate(activations, start=1):
            if isinstance(one, ModelError):
                failed, last = failed + 1, one
            elif (activity := self._read(one, records.current)) is None:
                failed += 1
                last = ModelError("its activations are NaN or infinite")
            else:
                self._block.append(activity)
            if len(self._block) == _BLOCK or read in looks:
                self._update()
            tell(_WHAT, read, records.total)
            if read in looks and self._is_within(len(looks), 1 - read / records.total):
                break
        if last is not None and failed == read:
            raise last
        scores = self._scores(len(looks))
        values = np.concatenate(self._values)
        known = np.isfinite(values)
        scorable = np.array([is_scorable(column) for column in values.T])
        for found in scores.values():
            finite = np.isfinite(found.score) & np.isfinite(found.low) & np.isfinite(found.high)
            for part in found:
                part[~(scorable[:, None] & finite)] = np.nan
        joint = self._measures.get(LogisticF1.name)
        return UnitScores(
            units=self._chosen,
            hypotheses=self._hypotheses,
            scores=scores,
            counts=tuple(map(int, known.sum(axis=0))),
            ones=tuple(
                int(np.nansum(column)) if is_binary(column) else None for column in values.T
            ),
            scorable=tuple(scorable.tolist()),
            guesses=tuple(joint.guess.tolist())
            if isinstance(joint, LogisticF1)
            else (math.nan,) * len(self._hypotheses),
            dead=self._least == self._largest,
            records=read,
            total=records.total,
            failed=failed,
            error=self._error,
        )

    def _read(
        self, one: Activations, record: InputRecord
    ) -> tuple[NDArray[np.float64], list[float], int] | None:
        """Return the units' activations on an input, the hypotheses' values, its group's number.

        None where an activation is not finite.
        """
        parts = []
        for layer, wanted in self._units.items():
            found = one.layers[layer].units
            if layer not in self._chosen:
                self._chosen[layer] = _of_layer(layer, wanted, found.size)
            parts.append(found[list(self._chosen[layer])])
        units = np.concatenate(parts).astype(np.float64)
        if not self._numbers:
            self._check_size(units.size)
        if not np.isfinite(units).all():
            return None
        seen = record._replace(predicted=None if one.label < 0 else one.label)
        values = [hypothesis.value(seen) for hypothesis in self._hypotheses]
        group = record.group or f"{len(self._numbers)} alone"
        number = self._numbers.setdefault(group, len(self._numbers))
        return units, values, number

    def _check_size(self, units: int) -> None:
        """Raise UsageError where the measures would keep too much."""
        pairs = units * len(self._hypotheses)
        if pairs > MOST_PAIRS:
            raise UsageError(
                f"{len(self._hypotheses):,} hypotheses of {units:,} units are {pairs:,} pairs, more than "
                f"{MOST_PAIRS:,}: name fewer hypotheses (--hypothesis) or layers (--layer)"
            )

    def _update(self) -> None:
        """Give the block to the measures."""
        if not self._block:
            return
        units, values, groups = (np.array(one) for one in zip(*self._block, strict=True))
        self._block = []
        if not self._values:
            ends = np.cumsum([len(one) for one in self._chosen.values()]).tolist()
            layers = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
            self._measures = {name: measure_of(name, layers) for name in self._names}
            self._least = self._largest = units[0]
        self._least = np.minimum(self._least, units.min(axis=0))
        self._largest = np.maximum(self._largest, units.max(axis=0))
        self._values.append(values)
        self._groups.append(groups)
        for measure in self._measures.values():
            measure.update(units, values, groups)

    def _is_within(self, looks: int, left: float) -> bool:
        """Whether all scores are within the error of those over all inputs.

        `left` is the share of the inputs that isn't read yet.
        """
        if self._error is None or not left or not self._values:
            return False
        if not all(map(is_scorable, np.concatenate(self._values).T)):
            return False
        slow_last = sorted(self._names, key=lambda one: self._measures[one].is_joint)
        for name in slow_last:
            measure = self._measures[name]
            found = measure.scores(self._alpha(name, looks))  # those read are drawn from all
            largest = np.fmax.reduce(found.error, None, initial=0.0)
            if not measure.is_joint:
                largest *= math.sqrt(left)
            if not measure.is_full and largest > self._error:
                return False
        return True

    def _scores(self, looks: int) -> dict[MeasureName, Scores]:
        """Return all scores."""
        effects = design_effects(np.concatenate(self._values), np.concatenate(self._groups))
        return {
            name: measure.scores(self._alpha(name, looks), effects)
            for name, measure in self._measures.items()
        }

    def _alpha(self, name: MeasureName, looks: int) -> float:
        """Return the probability with which one interval of a measure may miss."""
        columns = len(self._chosen) if self._measures[name].is_joint else self._least.size
        pairs = max(1, columns * len(self._hypotheses))
        return (1 - LEVEL) / len(self._names) / pairs / looks


class _InOrder:
    """Iterates over the samples of records in an order, one at a time; `current` is the last record."""

    def __init__(self, data: Sequence[InputRecord], order: NDArray[np.intp]) -> None:
        self._data, self._order = data, order
        self.total = len(order)
        self.current: InputRecord

    def __iter__(self) -> Iterator[Sample]:
        for place in self._order.tolist():
            self.current = self._data[place]
            yield self.current.sample


def _looks(total: int) -> set[int]:
    """Return the numbers of inputs after which scores are looked at, the last one all of them."""
    found, at = {total}, _FIRST
    while at < total:
        found.add(at)
        at += at // 2
    return found


def _of_layer(layer: str, wanted: Sequence[int] | None, size: int) -> Sequence[int]:
    """Return the units of a layer that are looked at. Raises UsageError where it has no such unit."""
    if wanted is None:
        return range(size)
    for unit in wanted:
        if not 0 <= unit < size:
            raise UsageError(
                f"the layer {layer!r} has no unit {unit}: its {size:,} units count from 0"
            )
    return wanted


def _check(
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str],
    data: Sequence[InputRecord],
    error: float | None,
) -> None:
    """Raise UsageError for what can't be inspected."""
    for what, given in (("hypothesis", hypotheses), ("measure", measures), ("input", data)):
        if not len(given):
            raise UsageError(f"units are inspected with one {what} or more: none is given")
    names = [one.name for one in hypotheses]
    if twice := next((one for one in names if names.count(one) > 1), None):
        raise UsageError(f"two hypotheses have the name {twice!r}: rename one")
    for name in measures:
        if name not in MEASURES:
            raise UsageError(f"there is no measure {name!r} of units; take {', '.join(MEASURES)}")
    if error is not None and not 0 < error < math.inf:
        raise UsageError(f"the error of a score is above 0, such as {ERROR}, not {error:g}")
