"""What labelled seeds tell: accuracy, a preprocessing that is wrong for both, renumbered classes."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from edgeflare.errors import ModelError
from edgeflare.models import InputSpec
from edgeflare.triage.agreement import by_seed
from edgeflare.triage.cause import (
    CORRECTED,
    INACCURATE,
    MOST_LIKE,
    REMARK,
    RENUMBERED_LABELS,
    Cause,
)
from edgeflare.triage.model import HostModel
from edgeflare.triage.pair import LOST_ACCURACY, LOST_SEEDS, Pair
from edgeflare.triage.ways import Way, ways_of

_MOST = 120
_RIGHT, _WRONG = 0.97, 0.6
"""An original that is right on more needs no other feed; where it is right on less, combined ways are tried."""
_NO_CLASSES, _FEW = 0.1, 0.7
_BETTER_BY = 0.1
_FOR_EACH_CLASS = 4
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
    known = [place for place, label in enumerate(pair.seeds.labels) if label >= 0][:_MOST]
    if classes is None or pair.same_class is None:
        return
    if not known:  # a mistake that both models share can't be seen then
        yield Cause(
            *("labels", "missing", "read", REMARK, "both"),
            evidence={"seeds": len(pair.places)},
            is_remark=True,
        )
        return
    count = by_seed(pair.both[0][classes]).shape[1]
    wanted = np.array([pair.seeds.labels[place] for place in known])
    if wanted.max() >= count:
        pair.ruled_out["labels"] = {"largest": int(wanted.max()), "classes": count}
        return
    first, second = (_decided(pair, model, known, classes) for model in pair.models)
    right, there = float((first == wanted).mean()), float((second == wanted).mean())
    pair.ruled_out["accuracy"] = {"original": right, "deployed": there, "labelled": len(known)}
    yield from _judged(pair, known, wanted, first, classes, count)
    if right - there >= LOST_ACCURACY and (right - there) * len(known) >= LOST_SEEDS:
        pair.lost_accuracy = right - there


def _decided(
    pair: Pair, model: HostModel, places: list[int], classes: int, way: Way | None = None
) -> NDArray[np.int64]:
    answers = pair.answers(model, way, places)
    assert answers is not None  # noqa: S101
    return np.asarray(by_seed(answers[classes]).argmax(axis=1))


def _judged(
    pair: Pair,
    known: list[int],
    wanted: NDArray[np.int64],
    decided: NDArray[np.int64],
    classes: int,
    count: int,
) -> Iterator[Cause]:
    is_right = decided == wanted
    right = float(is_right.mean())
    won = _won(pair, known, wanted, is_right, classes) if right < _RIGHT else []
    better = [one for one in won if one.is_sure]
    confusion = np.zeros((count, count))
    np.add.at(confusion, (wanted, decided), 1)
    rows, columns = linear_sum_assignment(-confusion)
    renumbered = float(confusion[rows, columns].sum()) / len(known)
    is_filled = len(known) >= _FOR_EACH_CLASS * count
    if right < _NO_CLASSES and renumbered < _FEW and not better:
        pair.ruled_out["labels"] = {"right": right}  # embeddings, or labels of something else
        return
    # A renumbering has more freedom than a feed; with colours as classes BGR looks like one.
    least = max(0.5, renumbered - _BETTER_BY if is_filled else 0.0)
    better = [one for one in better if one.right >= least]
    hints = [one for one in won if one.is_hint and not one.is_sure]
    evidence = {"right": right, "labelled": len(known), "tried": len(won)}
    if is_filled and renumbered > right + _MORE_RENUMBERED:
        evidence["renumbered"] = renumbered
    if better:
        if renumbered < better[0].right - _BETTER_BY:
            evidence.pop("renumbered", None)
        strength = CORRECTED if right < 0.8 else MOST_LIKE
        yield _for_both(pair, better[0], strength, evidence)
    elif hints and right < 0.95 and not (right < _WRONG and renumbered > hints[0].right):
        yield _for_both(pair, hints[0], REMARK, evidence)
    elif right < _WRONG and "renumbered" in evidence and renumbered > _RENUMBERED:
        moved = {int(row): int(column) for row, column in zip(rows, columns, strict=True)}
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


def _for_both(pair: Pair, best: WonWay, strength: float, evidence: Mapping[str, object]) -> Cause:
    change = best.way.change(pair.original.spec)
    found = {"won": best.won, "lost": best.lost, "right_then": best.right, "way": change}
    return Cause(
        "preprocessing",
        "of-both",
        "corrected" if strength == CORRECTED else "indicated",
        strength,
        side="both",
        evidence={**evidence, **found},
        change=change,
        gain=40,
        is_remark=strength == REMARK,
    )


def _won(
    pair: Pair,
    known: list[int],
    wanted: NDArray[np.int64],
    is_right: NDArray[np.bool_],
    classes: int,
) -> list[WonWay]:
    """Return the ways in which the original is right on other seeds, the best first."""
    spec = pair.original.spec
    if not isinstance(spec, InputSpec):
        return []
    single, combined = ways_of(
        spec, pair.deployed.spec, pair.sizes, placed=pair.original.parts == 1
    )
    found: list[WonWay] = []

    def try_all(ways: Iterator[Way]) -> None:
        for way in ways:
            try:
                now = _decided(pair, pair.original, known, classes, way) == wanted
            except (ModelError, ValueError):
                continue
            won, lost = int((now & ~is_right).sum()), int((is_right & ~now).sum())
            found.append(WonWay(float(now.mean()), won, lost, way))

    try_all(iter(single))
    if is_right.mean() < _WRONG and not any(one.is_sure and one.right >= 0.5 for one in found):
        try_all(combined)
    return sorted(found, key=lambda one: -one.right)
