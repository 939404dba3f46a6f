"""The page's table of detections' differences, by class and kind."""

from typing import Any, NamedTuple

from edgeflare._internal.text import counted, percent_text
from edgeflare.answers.detections.figures import DetectionFigures, DifferenceCounts
from edgeflare.answers.detections.matching import DIFFERENCE_KINDS
from edgeflare.answers.detections.words import KIND_MEANINGS, KIND_WORDS, class_words
from edgeflare.reports.answers.document import inputs_text
from edgeflare.reports.document import Name
from edgeflare.reports.html.answers import difference_key
from edgeflare.reports.html.gallery import shade

_MOST_CLASSES = 40


class DifferenceCell(NamedTuple):
    """The differences of one kind in a class: the page's key, the kind in words, a shade 1 to 5."""

    number: int
    key: str
    kind: str
    shade: int


class DifferenceRow(NamedTuple):
    """A class: a cell for each kind, None without a difference, and its detections."""

    label: str
    cells: list[DifferenceCell | None]
    total: int
    original: int
    lost: str


class DifferenceTable(NamedTuple):
    """A table of a page; `linked` are cells that filter the gallery."""

    title: str
    words: str
    linked: bool
    kinds: list[str]
    rows: list[DifferenceRow]
    totals: list[int]
    left_out: int
    counts: DifferenceCounts


def differences_context(
    detection: DetectionFigures | None, name: Name, *, replay: bool, boxes: bool
) -> dict[str, Any] | None:
    """Return the values of ``report_differences.html.j2``; None of other models.

    Without `boxes`, of models of several labels, a label can't be another class nor shift.
    """
    if detection is None:
        return None
    on = "inputs that deviate now" if replay else "triggers"
    tables = [_table(f"On the {on}", detection.triggers, name, linked=True)]
    if not replay:
        tables.append(_table("On the seeds as they are", detection.seeds, name, linked=False))
    legend = [
        (kind, KIND_WORDS[kind], KIND_MEANINGS[kind])
        for kind in DIFFERENCE_KINDS
        if boxes or kind in ("lost", "ghost")
    ]
    return {"tables": tables, "legend": legend}


def _table(title: str, counts: DifferenceCounts, name: Name, *, linked: bool) -> DifferenceTable:
    kinds = [kind for kind in DIFFERENCE_KINDS if counts.kinds[kind]]
    most = max((one.kinds[kind] for one in counts.classes for kind in kinds), default=1)
    rows = []
    for one in counts.classes[:_MOST_CLASSES]:
        cells = [
            DifferenceCell(
                one.kinds[kind],
                difference_key(kind, one.label),
                KIND_WORDS[kind],
                shade(one.kinds[kind], most),
            )
            if one.kinds[kind]
            else None
            for kind in kinds
        ]
        share = percent_text(one.kinds["lost"] / one.original) if one.original else ""
        total = sum(one.kinds.values())
        rows.append(DifferenceRow(class_words(one.label, name), cells, total, one.original, share))
    words = f"{inputs_text(counts)}." if counts.differing else _alike(counts)
    return DifferenceTable(
        title,
        words,
        linked,
        [KIND_WORDS[kind] for kind in kinds],
        rows,
        [counts.kinds[kind] for kind in kinds],
        max(0, len(counts.classes) - _MOST_CLASSES),
        counts,
    )


def _alike(counts: DifferenceCounts) -> str:
    return f"There is no difference on {counted(counts.inputs, 'input')}."
