"""Detections in reports: key figures, and the tables of differences by class and kind."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from edgeflare._internal.text import counted, percent_text
from edgeflare.answers.detections.figures import (
    ClassDifferences,
    DetectionFigures,
    DifferenceCounts,
)
from edgeflare.answers.detections.formats.options import DetectorOptions
from edgeflare.answers.detections.matching import DIFFERENCE_KINDS
from edgeflare.answers.detections.words import (
    KIND_MEANINGS,
    KIND_WORDS,
    class_words,
    kinds_text,
    pair_key,
)
from edgeflare.answers.kind import Name
from edgeflare.document import Block, Heading, KeyFigure, Text, shade, table_of

_MOST_CLASSES = 40


def setting_figures(settings: Mapping[str, Any], models: Mapping[str, Any]) -> Iterable[KeyFigure]:
    """Yield how the models' outputs become detections, and which of them are of the same object.

    `settings` is the campaign's table "detection". Of several labels it is the least score alone.
    """
    if not settings:
        return
    confidence = f"confidence {settings['confidence']:g}"
    stated = {
        which: DetectorOptions.model_construct(**model["output"]["detector"])
        for which, model in models.items()
        if model["output"].get("detector")
    }
    if not stated:
        yield KeyFigure("labels", confidence)
        return
    kinds = {which: one.kind for which, one in stated.items()}
    alike = len(set(kinds.values())) == 1
    parts = [kinds["original"]] if alike else [f"{which} {kind}" for which, kind in kinds.items()]
    parts.append(confidence)
    if any(one.suppresses for one in stated.values()):
        parts.append(f"suppression {settings['nms']:g}")
    parts += [
        f"same object from IoU {settings['match_iou']:g}",
        f"shifted below {settings['shift_iou']:g}",
    ]
    yield KeyFigure("detections", ", ".join(parts))


def key_figures(detection: DetectionFigures) -> Iterable[KeyFigure]:
    """Yield the natural differences of detectors, and those on the triggers."""
    seeds, triggers = detection.seeds, detection.triggers
    yield KeyFigure(
        "seeds that differ as they are",
        f"{seeds.differing:,} of {seeds.inputs:,}",
        f"{kinds_text(seeds.kinds)}; of {counted(seeds.original, 'detection')} of the original",
        main=True,
    )
    if triggers.inputs:
        yield KeyFigure(
            "differences on triggers",
            f"{sum(triggers.kinds.values()):,}",
            f"{kinds_text(triggers.kinds)}; on {counted(triggers.inputs, 'trigger')}",
            main=True,
        )


def difference_blocks(detection: DetectionFigures, name: Name, most: int) -> list[Block]:
    """Return the differences by class and kind, on the triggers and on the seeds."""
    blocks: list[Block] = []
    for title, counts in (
        ("Differences on triggers, by class and kind", detection.triggers),
        ("Differences on the seeds as they are, by class and kind", detection.seeds),
    ):
        if counts.classes:
            blocks += [Heading(title), _table(counts, name, most), Text(_inputs_text(counts))]
    return blocks


def _table(counts: DifferenceCounts, name: Name, most: int) -> Block:
    kinds = [kind for kind in DIFFERENCE_KINDS if counts.kinds[kind]]
    header = ["class", *(KIND_WORDS[kind] for kind in kinds), "original detects", "share lost"]

    def row(one: ClassDifferences) -> list[str]:
        share = one.kinds["lost"] / one.original if one.original else None
        figures = [f"{one.kinds[kind]:,}" if one.kinds[kind] else "" for kind in kinds]
        return [class_words(one.label, name), *figures, f"{one.original:,}", percent_text(share)]

    rows = [row(one) for one in counts.classes[:most]]
    rest = counts.classes[most:]
    if rest:
        sums = [f"{sum(one.kinds[kind] for one in rest):,}" for kind in kinds]
        detected = f"{sum(one.original for one in rest):,}"
        rows.append([counted(len(rest), "more class", "more classes"), *sums, detected, ""])
    return table_of(header, rows)


def _inputs_text(counts: DifferenceCounts) -> str:
    """Return how many inputs have a difference, and of which kinds."""
    return (
        f"{counts.differing:,} of {counted(counts.inputs, 'input')} "
        f"{'differs' if counts.differing == 1 else 'differ'}; inputs by kind: {kinds_text(counts.inputs_by_kind)}"
    )


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


def page_tables(
    detection: DetectionFigures, name: Name, *, is_replay: bool, is_located: bool
) -> dict[str, Any]:
    """Return the values of ``report_differences.html.j2``.

    Without places a label can't be another class nor shift.
    """
    on = "inputs that deviate now" if is_replay else "triggers"
    tables = [_page_table(f"On the {on}", detection.triggers, name, linked=True)]
    if not is_replay:
        tables.append(_page_table("On the seeds as they are", detection.seeds, name, linked=False))
    legend = [
        (kind, KIND_WORDS[kind], KIND_MEANINGS[kind])
        for kind in DIFFERENCE_KINDS
        if is_located or kind in ("lost", "ghost")
    ]
    return {"tables": tables, "legend": legend}


def _page_table(
    title: str, counts: DifferenceCounts, name: Name, *, linked: bool
) -> DifferenceTable:
    kinds = [kind for kind in DIFFERENCE_KINDS if counts.kinds[kind]]
    most = max((one.kinds[kind] for one in counts.classes for kind in kinds), default=1)
    rows = []
    for one in counts.classes[:_MOST_CLASSES]:
        cells = [
            DifferenceCell(
                one.kinds[kind],
                pair_key(kind, one.label),
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
    words = f"{_inputs_text(counts)}." if counts.differing else _alike(counts)
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
