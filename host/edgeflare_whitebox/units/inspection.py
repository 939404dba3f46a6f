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
    MeasureName,
    Scores,
    design_effects,
    is_binary,
    is_scorable,
    logistic_f1,
    logistic_regression,
    scores_by_unit,
)

LEVEL = 0.95
"""The probability that all intervals of an inspection hold at once, about."""
MOST_PAIRS = 4_000_000
"""Pairs of a hypothesis and a unit that an inspection has at most: each is a row of the table for each measure."""
MOST_ACTIVATIONS = 500_000_000
"""Activations that an inspection holds at most, of all inputs and units: 2 GB."""


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
    measure, the units of all layers one after the other; of f1 [hypotheses, layers]. `counts` is the
    number of inputs of which each hypothesis says something, `ones` of how many it is 1, None of one
    that isn't binary; `scorable`: there were enough of either. `guesses` is the F1 of always saying
    the rarer value, NaN without. `dead`: bool [units], those constant over the inputs. `records`
    inputs were read, `failed` of them without an answer of the original.
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
    failed: int

    def rows(
        self, hypothesis: str | None = None, measure: str | None = None
    ) -> Iterator[UnitScore]:
        """Yield the scores there are, the highest in absolute value first within hypothesis and measure."""
        of_units = [(layer, unit) for layer, units in self.units.items() for unit in units]
        for h, one in enumerate(self.hypotheses):
            for name, found in self.scores.items():
                if hypothesis not in (None, one.name) or measure not in (None, name):
                    continue
                joint = name == "f1"
                order = np.argsort(-np.abs(found.score[h]), kind="stable")
                for place in order[~np.isnan(found.score[h][order])].tolist():
                    layer, unit = (list(self.units)[place], None) if joint else of_units[place]
                    score, low, high = (float(part[h, place]) for part in found)
                    records = min(self.counts[h], JOINT_RECORDS) if joint else self.counts[h]
                    yield UnitScore(layer, unit, one.name, name, score, low, high, records)


def inspect_units(
    model: InspectedOriginal,
    units: Sequence[str] | Mapping[str, Sequence[int]] | None,
    hypotheses: Sequence[Hypothesis],
    measures: Sequence[str],
    data: Sequence[InputRecord],
    *,
    random_seed: int = 0,
    tell: Tell = silent,
) -> UnitScores:
    """Score how much units of a model go with hypotheses (DeepBase: Sellam et al., SIGMOD 2019).

    `units` are names of tensors that count as layers, or of each of these the units that are
    looked at; `default_layers` where it is None. `measures` are names in `MEASURES`. Inputs are
    read in random order, drawn with `random_seed`, each once: the model runs once and a hypothesis
    is asked once, whatever the number of hypotheses and measures. `data` is asked for one input
    after the other, so that it may read them when they are asked for. What is held is the
    activations, float32 [inputs, units]: `MOST_ACTIVATIONS` at most.

    Intervals are those of inputs like these; they hold at once with a probability of about 95 %. The
    rest is shared equally among measures, then among pairs. Inputs of one group count less for it,
    see `InputRecord`. The first `JOINT_RECORDS` inputs count for f1.

    An input on which the model can't answer, or has an activation that is not finite, is left out. Raises
    UsageError for an empty choice of hypotheses, measures or data, for more than `MOST_PAIRS` or
    `MOST_ACTIVATIONS`, for names that occur twice or aren't known, for a hypothesis that fails (see
    `Hypothesis.value`), and without scikit-learn for f1; ModelError where the model can't answer on
    any input.

    Differences: reading doesn't end early; a unit or a hypothesis that is constant over the inputs has
    no score.
    """
    _check(hypotheses, measures, data)
    asked = default_layers(model.graph) if units is None else units
    wanted = asked if isinstance(asked, Mapping) else dict.fromkeys(asked)
    chosen: dict[str, Sequence[int]] = {}
    numbers: dict[str, int] = {}
    values: list[list[float]] = []
    groups: list[int] = []
    failed = 0
    last: ModelError | None = None
    tell("the inputs", 0, len(data))
    for read, (record, one) in enumerate(_pass(model, wanted, data, random_seed), start=1):
        tell("the inputs", read, len(data))
        if isinstance(one, ModelError):
            failed, last = failed + 1, one
            continue
        if not chosen:
            for layer, some in wanted.items():
                chosen[layer] = _of_layer(layer, some, one.layers[layer].units.size)
            size = sum(map(len, chosen.values()))
            _check_size(len(hypotheses), size, len(data))
            activations = np.empty((len(data), size), np.float32)
        row = np.concatenate(
            [one.layers[layer].units[list(some)] for layer, some in chosen.items()]
        )
        if not np.isfinite(row).all():
            failed, last = failed + 1, ModelError("its activations are NaN or infinite")
            continue
        activations[len(values)] = row
        seen = record._replace(predicted=None if one.label < 0 else one.label)
        values.append([hypothesis.value(seen) for hypothesis in hypotheses])
        groups.append(numbers.setdefault(record.group or f"{len(numbers)} alone", len(numbers)))
    if last is not None and not values:
        raise last
    names = tuple(name for name in MEASURE_NAMES if name in measures)
    return _scored(
        chosen, tuple(hypotheses), names, activations[: len(values)], np.array(values), np.array(groups), failed
    )  # fmt: skip


def _pass(
    model: InspectedOriginal,
    layers: Mapping[str, Sequence[int] | None],
    data: Sequence[InputRecord],
    random_seed: int,
) -> Iterator[tuple[InputRecord, Activations | ModelError]]:
    """Yield the records in random order, each with what the layers do on it."""
    current: list[InputRecord] = []

    def samples() -> Iterator[Sample]:
        for place in np.random.default_rng(random_seed).permutation(len(data)).tolist():
            current[:] = [data[place]]
            yield current[0].sample

    found = activations_of(model.graph, model.spec, samples(), tuple(layers), label=model.label)
    for one in activations_or_errors(found):
        yield current[0], one


def _scored(
    chosen: Mapping[str, Sequence[int]],
    hypotheses: tuple[Hypothesis, ...],
    names: tuple[MeasureName, ...],
    activations: NDArray[np.float32],
    values: NDArray[np.float64],
    groups: NDArray[np.int64],
    failed: int,
) -> UnitScores:
    scorable = [is_scorable(column) for column in values.T]
    effects = design_effects(values, groups)
    guesses = np.full(len(hypotheses), math.nan)
    records = len(values) + failed
    scores: dict[MeasureName, Scores] = {}
    for name in names:
        columns = len(chosen) if name == "f1" else activations.shape[1]
        share = (1 - LEVEL) / len(names) / max(1, columns * len(hypotheses))
        alpha = share / _parts(records)
        if name == "f1":
            ends = np.cumsum([len(one) for one in chosen.values()])[:-1]
            layers = np.split(activations[:JOINT_RECORDS], ends, axis=1)
            scores[name], guesses = logistic_f1(layers, values, groups, alpha, effects)
        else:
            scores[name] = scores_by_unit(name, activations, values, alpha, effects)
        has_score = np.array(scorable)[:, None] & np.isfinite(np.stack(scores[name])).all(axis=0)
        scores[name] = Scores(*(np.where(has_score, part, np.nan) for part in scores[name]))
    return UnitScores(
        units=chosen,
        hypotheses=hypotheses,
        scores=scores,
        counts=tuple(map(int, np.isfinite(values).sum(axis=0))),
        ones=tuple(int(np.nansum(one)) if is_binary(one) else None for one in values.T),
        scorable=tuple(scorable),
        guesses=tuple(guesses.tolist()),
        dead=activations.min(axis=0) == activations.max(axis=0),
        records=records,
        failed=failed,
    )


def _parts(records: int) -> int:
    """Return among how many parts an interval's probability is shared besides.

    Reading could once end after 128 inputs or at each half more than before. Its share for each of
    these is kept: intervals, a little too wide, stay those that stored results and docs state.
    """
    found, at = 1, 128
    while at < records:
        found, at = found + 1, at + at // 2
    return found


def _of_layer(layer: str, wanted: Sequence[int] | None, size: int) -> Sequence[int]:
    """Return the units of a layer that are looked at. Raises UsageError where it has no such unit."""
    for unit in wanted or ():
        if not 0 <= unit < size:
            raise UsageError(
                f"the layer {layer!r} has no unit {unit}: its {size:,} units count from 0"
            )
    return range(size) if wanted is None else wanted


def _check_size(hypotheses: int, units: int, inputs: int) -> None:
    """Raise UsageError where too much would be held."""
    if (pairs := units * hypotheses) > MOST_PAIRS:
        raise UsageError(
            f"{hypotheses:,} hypotheses of {units:,} units are {pairs:,} pairs, more than "
            f"{MOST_PAIRS:,}: name fewer hypotheses (--hypothesis) or layers (--layer)"
        )
    if (held := units * inputs) > MOST_ACTIVATIONS:
        raise UsageError(
            f"{units:,} units on {inputs:,} inputs have {held:,} activations, more than "
            f"{MOST_ACTIVATIONS:,}: name fewer layers (--layer) or inputs (--inputs)"
        )


def _check(
    hypotheses: Sequence[Hypothesis], measures: Sequence[str], data: Sequence[InputRecord]
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
    if "f1" in measures:
        logistic_regression()  # what is missing is said before inputs are read
