"""What labelled seeds tell: accuracy, a preprocessing that is wrong for both, renumbered classes."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from edgeflare.errors import ModelError
from edgeflare.triage.agreement import by_seed
from edgeflare.triage.cause import (
    CORRECTED,
    INACCURATE,
    MOST_LIKE,
    REMARK,
    RENUMBERED_LABELS,
    Cause,
)
from edgeflare.triage.checks.feeding import MOST_LABELLED
from edgeflare.triage.model import HostModel
from edgeflare.triage.pair import LOST_ACCURACY, LOST_SEEDS, Pair
from edgeflare.triage.ways import Way, ways_of

_RIGHT, _WRONG = 0.97, 0.6
"""An original that is right on more needs no other feed; where it is right on less, combined ways are tried."""
_NO_CLASSES, _FEW = 0.1, 0.7
_BETTER_BY = 0.1
_BEST = 8
"""Ways that are tried on all labelled seeds."""
_FOR_EACH_CLASS = 4
_MOST_NUMBERS = 2
"""Labels with numbers up to so many times the classes may be renumbered ones: COCO's 80 have 1 to 90."""
_RENUMBERED, _MORE_RENUMBERED = 0.75, 0.3


class WonWay(NamedTuple):
    """A way for both models: the share of seeds that the original is right on, won and lost ones."""

    right: float
    won: int
    lost: int
    way: Way

    @property
    def is_sure(self) -> bool:
        """Whether so many more are won than chance gives among some 30 candidates (McNemar)."""
        return self.won - self.lost >= 3 + 2 * math.sqrt(self.won + self.lost)

    @property
    def is_hint(self) -> bool:
        """Whether a few more are won."""
        more = self.won - self.lost
        return more >= 3 and (more >= 2 * math.sqrt(self.won + self.lost) or not self.lost)


def labels(pair: Pair) -> Iterator[Cause]:
    """Yield what the labels tell of both models; note their accuracy in `ruled_out`."""
    classes = pair.classes_at
    places = [place for place, label in enumerate(pair.seeds.labels) if label >= 0][:MOST_LABELLED]
    if classes is None or pair.same_class is None:
        return
    if not places:  # a mistake that both models share can't be seen then
        yield Cause(
            *("labels", "missing", "read", REMARK, "both"),
            evidence={"seeds": len(pair.places)},
            is_remark=True,
        )
        return
    count = by_seed(pair.both[0][classes]).shape[1]
    truth = np.array([pair.seeds.labels[place] for place in places])
    if truth.max() >= count:
        pair.ruled_out["labels"] = {"largest": int(truth.max()), "classes": count}
        if truth.max() >= _MOST_NUMBERS * count:
            return
    first, second = (_decided(pair, model, places, classes) for model in pair.models)
    right, there = float((first == truth).mean()), float((second == truth).mean())
    pair.ruled_out["accuracy"] = {"original": right, "deployed": there, "labelled": len(places)}
    if len(np.unique(truth)) > 1:  # on seeds of one class any feed that makes it likely looks right
        yield from _judged(pair, places, truth, first, classes, count)
    elif right < _NO_CLASSES:
        pair.ruled_out.setdefault("labels", {"right": right})
    if right - there >= LOST_ACCURACY and (right - there) * len(places) >= LOST_SEEDS:
        pair.lost_accuracy = right - there


def _decided(
    pair: Pair, model: HostModel, places: list[int], classes: int, way: Way | None = None
) -> NDArray[np.int64]:
    answers = pair.answers(model, way, places)
    if answers is None:
        raise ModelError("the shapes of its outputs change by seed")
    return np.asarray(by_seed(answers[classes]).argmax(axis=1))


def _judged(
    pair: Pair,
    places: list[int],
    truth: NDArray[np.int64],
    decided: NDArray[np.int64],
    classes: int,
    count: int,
) -> Iterator[Cause]:
    is_right = decided == truth
    right = float(is_right.mean())
    won, tried = _won(pair, places, truth, is_right, classes) if right < _RIGHT else ([], 0)
    better = [way for way in won if way.is_sure]
    numbers = max(count, int(truth.max()) + 1)  # lists that begin at 1, or leave numbers out
    confusion = np.zeros((numbers, numbers))
    np.add.at(confusion, (truth, decided), 1)
    rows, columns = linear_sum_assignment(-confusion)
    renumbered = float(confusion[rows, columns].sum()) / len(places)
    is_filled = len(places) >= _FOR_EACH_CLASS * min(count, len(np.unique(truth)))
    if right < _NO_CLASSES and renumbered < _FEW and not better:
        # embeddings, or labels of something else
        pair.ruled_out.setdefault("labels", {"right": right})
        return
    # A renumbering has more freedom than a feed; with colours as classes BGR looks like one.
    least = max(0.5, renumbered - _BETTER_BY if is_filled else 0.0)
    better = [way for way in better if way.right >= least]
    hints = [way for way in won if way.is_hint and not way.is_sure]
    evidence = {"right": right, "labelled": len(places), "tried": tried}
    if is_filled and renumbered > right + _MORE_RENUMBERED:
        evidence["renumbered"] = renumbered
    if better:
        if renumbered < better[0].right - _BETTER_BY:
            evidence.pop("renumbered", None)
        strength = CORRECTED if right < 0.8 else MOST_LIKE
        yield _for_both(pair, better[0], strength, evidence)
    elif hints and right < 0.95 and not (right < _WRONG and renumbered > hints[0].right):
        yield _for_both(pair, hints[0], REMARK, evidence)
    elif renumbered > _RENUMBERED and (
        (right < _WRONG and "renumbered" in evidence)
        or (is_filled and _are_exchanged(confusion, rows, columns))
    ):
        evidence["renumbered"] = renumbered
        pair.ruled_out.pop("labels", None)
        seen = set(truth.tolist())
        moved = {
            int(row): int(column)
            for row, column in zip(rows, columns, strict=True)
            if row in seen or numbers == count
        }
        yield Cause(
            *("labels", "renumbered", "corrected", RENUMBERED_LABELS, "both"),
            evidence=evidence | {"classes": moved},
            gain=40,
        )
    elif right < 0.5:
        yield Cause(
            *("preprocessing", "inaccurate", "indicated", INACCURATE, "both"),
            evidence=evidence,
            gain=10,
        )


def _are_exchanged(
    confusion: NDArray[np.float64], rows: NDArray[np.int_], columns: NDArray[np.int_]
) -> bool:
    """Whether the seeds of some classes are taken for those of others altogether, as in an exchanged list."""
    moved = rows != columns
    counts = confusion[rows[moved]].sum(axis=1)
    stated = confusion[rows[moved], rows[moved]].sum()
    renumbered = confusion[rows[moved], columns[moved]].sum()
    labelled = counts.sum()
    return bool(
        labelled >= 2 * _FOR_EACH_CLASS
        and stated <= _NO_CLASSES * labelled
        and renumbered >= _RENUMBERED * labelled
    )


def _for_both(pair: Pair, best: WonWay, strength: float, evidence: Mapping[str, object]) -> Cause:
    change = best.way.change(pair.original.spec)
    numbers = {"won": best.won, "lost": best.lost, "right_then": best.right, "way": change}
    return Cause(
        "preprocessing",
        "of-both",
        "corrected" if strength == CORRECTED else "indicated",
        strength,
        side="both",
        evidence={**evidence, **numbers},
        change=change,
        gain=40,
        is_remark=strength == REMARK,
    )


def _won(
    pair: Pair,
    places: list[int],
    truth: NDArray[np.int64],
    is_right: NDArray[np.bool_],
    classes: int,
) -> tuple[list[WonWay], int]:
    """Return the ways in which the original is right on other seeds, the best first, and how many were tried."""
    spec = pair.original.spec
    single, combined = ways_of(
        spec, pair.deployed.spec, pair.sizes, placed=pair.original.parts == 1
    )
    few = np.linspace(0, len(places) - 1, min(len(places), pair.most_seeds)).astype(int)

    def won_on(ways: Iterable[Way], rows: NDArray[np.int_]) -> list[WonWay]:
        won_ways = []
        for way in ways:
            try:
                at = [places[row] for row in rows]
                is_right_now = _decided(pair, pair.original, at, classes, way) == truth[rows]
            except (ModelError, ValueError):
                continue
            was_right = is_right[rows]
            won, lost = (
                int((is_right_now & ~was_right).sum()),
                int((was_right & ~is_right_now).sum()),
            )
            won_ways.append(WonWay(float(is_right_now.mean()), won, lost, way))
        return sorted(won_ways, key=lambda way: -way.right)

    every = np.arange(len(places))
    # all ways on some seeds, the best of them on all: an original of ImageNet is never right on 97 %
    screened = won_on(single, few)
    best, tried = won_on([way.way for way in screened[:_BEST]], every), len(screened)
    if is_right.mean() < _WRONG and not any(way.is_sure and way.right >= 0.5 for way in best):
        screened = won_on(combined, few)
        best += won_on([way.way for way in screened[:_BEST]], every)
        tried += len(screened)
    return sorted(best, key=lambda way: -way.right), tried
