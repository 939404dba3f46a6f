"""How two detectors' answers differ, in words."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from edgeflare._internal.text import number_text
from edgeflare.answers.detections.matching import (
    DIFFERENCE_KINDS,
    Difference,
    DifferenceKind,
    differences,
)
from edgeflare.answers.parts import Name
from edgeflare.types import Detections

KIND_WORDS: Mapping[DifferenceKind, str] = {
    "lost": "lost",
    "ghost": "ghost",
    "class": "another class",
    "shift": "shifted",
}
"""The kinds of differences of detections; `edgeflare.detections.Difference` tells what each is."""

KIND_VERBS: Mapping[DifferenceKind, str] = {
    "lost": "are lost",
    "ghost": "are ghosts",
    "class": "become another class",
    "shift": "shift",
}
"""The same after a number of objects."""

_CLASS = re.compile(r"\bclass ([0-9]+)\b")
_MOST = 3
_DIGITS = (2, 3, 4, 5, 6)


def with_names(text: str, name: Name) -> str:
    """Return a text of this module, or of `edgeflare.detections.summary`, with classes' names."""
    return _CLASS.sub(lambda found: class_words(int(found[1]), name), text)


def class_words(label: int, name: Name = str) -> str:
    """Return a class's name, or ``class 3`` where it has none."""
    named = name(label)
    return f"class {named}" if named == str(label) else named


def differences_words(original: Detections, deployed: Detections, name: Name = str) -> str:
    """Return the differences of two detectors' answers in words, those with the largest margins.

    What is more than three is counted.
    """
    found = sorted(differences(original, deployed), key=lambda one: -one.margin)
    shown = [difference_words(one, original, deployed, name) for one in found[:_MOST]]
    if len(found) > _MOST:
        shown.append(f"{len(found) - _MOST} more")
    return ", ".join(shown) or "no difference"


def difference_words(
    one: Difference, original: Detections, deployed: Detections, name: Name = str
) -> str:
    """Return one difference as ``lost person (0.62 against 0.47)``: the scores of both models.

    A model without even a candidate there has none. Of a shift it is the overlap of both boxes.
    """
    kind, label = KIND_WORDS[one.kind], class_words(one.label, name)
    if one.kind == "shift":
        return f"{kind} {label} (IoU {number_text(one.iou)})"
    if one.kind == "class" and one.deployed_label is not None:
        label = f"({label} -> {class_words(one.deployed_label, name)})"
    return f"{kind} {label} ({score_words(one, original, deployed)})"


def score_words(one: Difference, original: Detections, deployed: Detections) -> str:
    """Return both models' scores of an object, in as many digits as it takes to differ.

    And in as many as it takes for none to be rounded across the confidence, six at most.
    """
    if not original.rules.located and one.original is None and one.deployed is None:
        return "none"
    scores = [
        None if place is None else float(answer.scores[place])
        for place, answer in ((one.original, original), (one.deployed, deployed))
    ]

    def decides(score: float | None, text: str) -> bool:
        confidence = original.rules.confidence
        return score is None or (float(text) >= confidence) == (score >= confidence)

    texts: list[str] = []
    for digits in _DIGITS:
        texts = ["none" if score is None else f"{score:.{digits}f}" for score in scores]
        if texts[0] != texts[1] and all(map(decides, scores, texts)):
            break
    return " against ".join(texts)


def kinds_words(found: Iterable[Difference], name: Name = str, most: int = 2) -> str:
    """Return what differs, the most frequent first: ``lost person (2), ghost dog``."""
    counts = Counter(
        (one.kind, one.label, one.deployed_label if one.kind == "class" else None) for one in found
    )
    shown = []
    for (kind, label, other), count in counts.most_common(most):
        text = f"{KIND_WORDS[kind]} {class_words(label, name)}"
        if other is not None:
            text = f"{class_words(label, name)} -> {class_words(other, name)}"
        shown.append(text + f" ({count})" * (count > 1))
    if len(counts) > most:
        shown.append(f"{len(counts) - most} more")
    return ", ".join(shown)


def kinds_text(kinds: Mapping[str, int]) -> str:
    """Return counts by kind: ``2 lost, 11 ghost, 3 shifted``; kinds that don't occur are left out."""
    texts = [f"{kinds[kind]:,} {KIND_WORDS[kind]}" for kind in DIFFERENCE_KINDS if kinds[kind]]
    return ", ".join(texts) or "no difference"


def pair_key(kind: str, label: int) -> str:
    """Return the page's key of differences of a kind in a class, like ``lost:0``."""
    return f"{kind}:{label}"
