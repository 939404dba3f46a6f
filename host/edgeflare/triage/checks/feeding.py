"""Whether another way of feeding makes the pair agree: on the host, and of the device's answers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError
from edgeflare.models.tensors import Grid
from edgeflare.triage.agreement import (
    GAIN,
    HEALTHY,
    Outputs,
    Values,
    by_seed,
    least_agreement,
    stacked,
)
from edgeflare.triage.cause import CORRECTED, LIKELY, REMARK, Cause, Side
from edgeflare.triage.model import HostModel, stored
from edgeflare.triage.pair import Pair
from edgeflare.triage.ways import Way, ways_of
from edgeflare_agent.preprocess import dequantize

_FIRST, _FIRST_OF_COMBINED, _BEST = 4, 3, 5
"""Seeds on which all ways are tried, and how many of the best ways are tried on all."""
SEEDS = 16
MOST_LABELLED = 120
_FEWEST_MORE, _MARGIN_MORE = 3, 0.005
_COMBINED_OF_LARGE = 32
"""Combined ways of large models: a detector of 640 x 640 takes half a second for each answer."""
_ALIKE, _NAMED = 3.0, 4
_PARTLY = 3.0
_CUT_OFF, _LARGE_PART, _USED = 0.005, 0.05, 0.12
_CUT_GAIN = 10.0


class TriedWay(NamedTuple):
    """A way that was tried, and the agreement that it brought, in dB."""

    agreement: float
    way: Way


def screened(
    single: Iterable[Way],
    combined: Iterable[Way],
    score: Callable[[Way], Callable[[int], float]],
    is_good: Callable[[float], bool],
    seeds: int,
) -> list[TriedWay]:
    """Return the ways, the best first: all on a few seeds, the best five on all.

    Combined ones only where no single one is good. The number of inferences is bounded by the number
    of ways, never by a clock: a feed that is missed on a busy machine would be another answer.
    """
    tried: list[TriedWay] = []
    for ways, count in ((single, _FIRST), (combined, _FIRST_OF_COMBINED)):
        of_each = [(way, score(way)) for way in ways]
        first = sorted(
            ((of_first(count), place) for place, (_, of_first) in enumerate(of_each)),
            key=lambda one: -one[0],
        )
        tried += [
            TriedWay(of_each[place][1](seeds), of_each[place][0]) for _, place in first[:_BEST]
        ]
        tried += [TriedWay(min(few, -1.0), of_each[place][0]) for few, place in first[_BEST:]]
        tried.sort(key=lambda one: -one.agreement)
        if tried and is_good(tried[0].agreement):
            break
    return tried


def ways_for(pair: Pair, model: HostModel) -> tuple[list[Way], Iterator[Way]]:
    """Return the ways for the seeds to enter a model of the pair, as `ways_of` does."""
    other = pair.original if model is pair.deployed else pair.deployed
    single, combined = ways_of(
        model.spec,
        other.spec,
        pair.sizes,
        is_integer=model.spec.quantization is not None,
        placed=model.parts == 1,
    )
    # the usual scalings come first
    return single, islice(combined, _COMBINED_OF_LARGE if pair.is_large else None)


def fed_otherwise(
    pair: Pair,
    best: TriedWay,
    strength: float,
    side: Side,
    evidence: Mapping[str, float],
    further: Sequence[TriedWay] = (),
) -> Cause:
    """Return the cause that a model expects another input, in this way."""
    spec = (pair.original if side == "original" else pair.deployed).spec
    change = best.way.change(spec)
    found: dict[str, object] = {"agreement": best.agreement, "way": change}
    least = min(best.agreement, HEALTHY["float32"]) - _ALIKE  # better than that is rounding alone
    near = [one for one in further if one.agreement > least]
    if near:  # what the answers can't tell apart
        found["also"] = [one.way.change(spec) for one in near[:_NAMED]]
    reordered = [cause for cause in pair.causes if cause.what == "kernel-reordered"]
    if reordered:  # the file itself expects its channels in another order
        found["kernel"] = reordered[0].names[0]
    found |= _or_classes(pair)
    return Cause(
        "preprocessing",
        "other-way",
        "corrected" if strength == CORRECTED else "indicated",
        strength,
        side=side,
        evidence={**evidence, **found},
        change=change,
        gain=best.agreement - evidence["stated"],
    )


def _or_classes(pair: Pair) -> dict[str, object]:
    """Return that renumbered classes fit, too, as where classes are colours."""
    fits = any(cause.what == "classes-exchanged" for cause in pair.causes)
    return {"classes": True} if fits else {}


def feeds(pair: Pair) -> Iterator[Cause]:
    """Yield the way of feeding one model in which the pair agrees; "none of k fits" is ruled out.

    The deployed model's ways come first. There is no winner among misfits: the statement is then not
    refuted.
    """
    places = pair.places[:SEEDS]
    nearest: TriedWay | None = None
    count = 0
    models = ((pair.deployed, pair.both[0]), (pair.original, pair.both[1]))
    for model, outputs in models[1:] if pair.is_recorded else models:
        wanted = tuple(output[: len(places)] for output in outputs)

        def score(
            way: Way, model: HostModel = model, wanted: Outputs = wanted
        ) -> Callable[[int], float]:
            return pair.score(model, wanted, way, places)

        tried = screened(*ways_for(pair, model), score, pair.corrects, len(places))
        count += len(tried)
        if not tried:
            continue
        best, evidence = tried[0], {"stated": pair.agreement, "tried": count}
        if pair.corrects(best.agreement) and (
            pair.is_off or _decides_better(pair, best.way, model)
        ):
            cause = fed_otherwise(pair, best, CORRECTED, model.side, evidence, tried[1:])
            # of a file that can't be run here the original's feed tells the device's
            is_told = pair.is_recorded
            yield replace(cause, what="as-original", side="device") if is_told else cause
            return
        if model is pair.deployed or pair.is_recorded:
            nearest = best
    if nearest is None:
        return
    evidence = {"stated": pair.agreement, "tried": count}
    pair.ruled_out["feeds"] = evidence | {"best": nearest.agreement, "needed": pair.expected}
    is_nearer = nearest.agreement - pair.agreement >= GAIN and nearest.agreement > _PARTLY
    if is_nearer and pair.number_format != "float32" and not pair.is_recorded:
        yield fed_otherwise(pair, nearest, LIKELY - 0.1, "deployed", evidence)


def _decides_better(pair: Pair, way: Way, model: HostModel) -> bool:
    """Whether a pair that agrees as healthy ones do decides alike on more seeds where a model is fed so.

    Larger inputs make scores of 0 and 1 of both models' probabilities, which agree better for that alone.
    """
    answers, place = pair.answers(model, way), 0 if model is pair.original else 1
    if answers is None or pair.same_class is None:
        return answers is not None
    both = list(pair.both)
    both[place] = answers
    same = pair.share_of_one_class(both[0], both[1])
    return same is not None and same > pair.same_class


def same_tensor(pair: Pair) -> Iterator[Cause]:
    """Yield that both agree once one of them is given the other's tensors; labels tell whose feed is wrong."""
    first, second = pair.original, pair.deployed
    if len(first.inputs) != len(second.inputs) or fed_alike(pair):
        return
    given = _given_the_other(pair, second, pair.places)
    # integers may not hold what the original is fed, and the original always holds what they are
    also = _given_the_other(pair, first, pair.places)
    agreement = max(
        -np.inf if given is None else least_agreement(pair.both[0], given),
        -np.inf if also is None else least_agreement(also, pair.both[1]),
    )
    if not pair.corrects(agreement):
        return
    by_labels = _labels_by_feed(pair)
    is_original = _is_original_fed_wrongly(by_labels)
    if is_original:  # what the labels say of both is the original's alone
        pair.causes = [cause for cause in pair.causes if cause.what != "of-both"]
    evidence = {"agreement": agreement, "stated": pair.agreement, **by_labels, **_or_classes(pair)}
    models = (second, first) if is_original else (first, second)
    yield Cause(
        *("preprocessing", "same-tensor", "corrected", CORRECTED, models[1].side),
        evidence=evidence,
        change=Way(models[0].spec).change(models[1].spec),
        gain=agreement - pair.agreement,
    )


def _is_original_fed_wrongly(by_labels: Mapping[str, tuple[float, float]]) -> bool:
    """Whether the labels speak for the deployed model's feed; by the margins where the answers don't tell."""
    if not by_labels:
        return False
    (own, others), margins = by_labels["right"], by_labels["margin"]
    if abs(others - own) >= _FEWEST_MORE:
        return others > own
    return margins[1] - margins[0] > _MARGIN_MORE * abs(margins[0])


def _given_the_other(pair: Pair, model: HostModel, places: Sequence[int]) -> Outputs | None:
    """Return a model's answers to what the other one is fed; None where it can't be given that."""
    try:
        return stacked([model.run(_adapted(pair, model, place)) for place in places])
    except (ModelError, ValueError):
        return None


def _labels_by_feed(pair: Pair) -> dict[str, tuple[float, float]]:
    """Return how the original does on labelled seeds as it is fed, and as the deployed model is; {}: no labels.

    `right`: on how many it is right. `margin`: by how much the labelled class is above the others in
    the mean, in deviations of the scores, which tells more where few answers change.
    """
    classes, labels = pair.classes_at, pair.seeds.labels
    places = [place for place, label in enumerate(labels) if label >= 0][:MOST_LABELLED]
    if classes is None or not places:
        return {}
    truth = np.array([labels[place] for place in places])
    rows = np.arange(len(places))
    right, margins = [], []
    for answers in (
        pair.answers(pair.original, None, places),
        _given_the_other(pair, pair.original, places),
    ):
        scores = None if answers is None else by_seed(answers[classes])
        if scores is None or not 1 < scores.shape[1] > truth.max() or not np.isfinite(scores).all():
            return {}
        others = scores.copy()
        others[rows, truth] = -np.inf
        apart = scores[rows, truth] - others.max(axis=1)
        right.append(int((apart > 0).sum()))
        margins.append(float(apart.mean() / (scores.std() + 1e-30)))
    return {"right": (right[0], right[1]), "margin": (margins[0], margins[1])}


def _adapted(pair: Pair, model: HostModel, place: int) -> list[NDArray[Any]]:
    """Return what the other model is fed, as this one's inputs store it."""
    other = pair.original if model is pair.deployed else pair.deployed
    fed = pair.fed(other, place), pair.fed(model, place)
    made = []
    for real, like, info in zip(*fed, model.inputs, strict=True):
        turned = [real]
        if real.shape != like.shape and real.ndim == like.ndim == 4:
            turned = [real.transpose(0, 2, 3, 1), real.transpose(0, 3, 1, 2)]
        fitting = next((one for one in turned if one.shape == like.shape), real)
        made.append(stored(fitting.reshape(like.shape), info))
    return made


def fed_alike(pair: Pair) -> bool:
    """Whether both models are fed the same real values, but for their layout."""
    pairs = zip(*(pair.fed(model, pair.places[0]) for model in pair.models), strict=True)
    return all(_are_alike(first, second) for first, second in pairs)


def _are_alike(first: Values, second: Values) -> bool:
    if first.size != second.size:
        return False
    turned = [first.reshape(second.shape)]
    if first.ndim == 4:
        turned += [first.transpose(0, 2, 3, 1), first.transpose(0, 3, 1, 2)]
    most = 1e-5 * (1 + float(np.abs(second).max()))
    return any(one.shape == second.shape and np.allclose(one, second, atol=most) for one in turned)


def _codes(pair: Pair) -> Iterator[tuple[int, Grid, dict[str, Any]]]:
    """Yield the deployed model's integer inputs: place, integers, and how what they are fed fills them."""
    for place in range(len(pair.deployed.inputs)):
        grid = pair.deployed.grid_of_input(place)
        if grid is None or grid.scale <= 0:
            continue
        values = np.concatenate(
            [pair.fed(pair.deployed, seed)[place].ravel() for seed in pair.places]
        )
        least, largest = grid.range
        outside = float(((values < least - grid.scale) | (values > largest + grid.scale)).mean())
        low, high = float(values.min()), float(values.max())
        used = (min(high, largest) - max(low, least)) / (largest - least)
        fed = {"range": (least, largest), "fed": (low, high), "cut_off": outside, "used": used}
        yield place, grid, fed


def few_codes(pair: Pair) -> Iterator[Cause]:
    """Yield integer inputs that are fed a small part of their range: a remark where the pair agrees."""
    for place, _, evidence in _codes(pair):
        if evidence["cut_off"] < _CUT_OFF and evidence["used"] <= _USED:
            yield Cause(
                *("input-range", "few-codes", "read", LIKELY if pair.is_off else REMARK),
                names=(pair.deployed.inputs[place].name,),
                evidence=evidence,
                gain=5,
                is_remark=not pair.is_off,
            )


def input_range(pair: Pair) -> Iterator[Cause]:
    """Yield that an integer input cuts off what it is fed.

    It is a calibration on other data where the original, cut off alike, answers as the deployed model.
    """
    for place, grid, evidence in _codes(pair):
        outside = evidence["cut_off"]
        if outside < _CUT_OFF:
            continue
        agreement = _cut_off_alike(pair, place, grid) if fed_alike(pair) else -np.inf
        gain = agreement - pair.agreement
        is_it = pair.corrects(agreement) or gain >= _CUT_GAIN
        corrected = is_it and (pair.agreement < pair.expected or pair.lost_accuracy > 0)
        weak = LIKELY + 0.3 if outside > _LARGE_PART else LIKELY - 0.3
        yield Cause(
            "calibration",
            "input-cut-off",
            "corrected" if corrected else "read",
            CORRECTED if corrected else weak,
            names=(pair.deployed.inputs[place].name,),
            evidence=evidence | {"agreement": agreement, "stated": pair.agreement},
            gain=gain if corrected else 5,
        )


def _cut_off_alike(pair: Pair, place: int, grid: Grid) -> float:
    """Return the agreement of the deployed model with the original, whose input is cut off alike."""
    runs = []
    for seed in pair.places:
        tensors = list(pair.tensors(pair.original, seed))
        info = pair.original.inputs[place]
        real = np.clip(
            np.round(dequantize(tensors[place], info.quantization) / grid.scale) * grid.scale,
            *grid.range,
        )
        tensors[place] = stored(real, info)
        runs.append(pair.original.run(tensors))
    given = stacked(runs)
    return -np.inf if given is None else least_agreement(given, pair.both[1])
