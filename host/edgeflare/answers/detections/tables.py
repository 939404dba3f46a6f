"""Detections in reports: key figures, and the tables of differences by class and kind."""

from collections.abc import Iterable, Mapping
from typing import Any

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
from edgeflare.answers.parts import Name
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

    def cells(row: ClassDifferences) -> list[str]:
        share = row.kinds["lost"] / row.original if row.original else None
        figures = [f"{row.kinds[kind]:,}" if row.kinds[kind] else "" for kind in kinds]
        return [class_words(row.label, name), *figures, f"{row.original:,}", percent_text(share)]

    rows = [cells(row) for row in counts.classes[:most]]
    if rest := counts.classes[most:]:
        sums = [f"{sum(row.kinds[kind] for row in rest):,}" for kind in kinds]
        detected = f"{sum(row.original for row in rest):,}"
        rows.append([counted(len(rest), "more class", "more classes"), *sums, detected, ""])
    return table_of(header, rows)


def _inputs_text(counts: DifferenceCounts) -> str:
    """Return how many inputs have a difference, and of which kinds."""
    return (
        f"{counts.differing:,} of {counted(counts.inputs, 'input')} "
        f"{'differs' if counts.differing == 1 else 'differ'}; inputs by kind: {kinds_text(counts.inputs_by_kind)}"
    )


def page_tables(
    detection: DetectionFigures, name: Name, *, is_replay: bool, is_located: bool
) -> dict[str, Any]:
    """Return the values of ``report_differences.html.j2``.

    Without places a label can't be another class nor shift.
    """
    on = "inputs that deviate now" if is_replay else "triggers"
    tables = [_page_table(f"On the {on}", detection.triggers, name, is_linked=True)]
    if not is_replay:
        tables.append(
            _page_table("On the seeds as they are", detection.seeds, name, is_linked=False)
        )
    legend = [
        (kind, KIND_WORDS[kind], KIND_MEANINGS[kind])
        for kind in DIFFERENCE_KINDS
        if is_located or kind in ("lost", "ghost")
    ]
    return {"tables": tables, "legend": legend}


def _page_table(
    title: str, counts: DifferenceCounts, name: Name, *, is_linked: bool
) -> dict[str, Any]:
    """Return a table of the page; `is_linked`: its cells filter the gallery.

    A row is a class, a cell for each kind, all its differences, the original's detections and the
    share lost; a cell is a number, the page's key, the kind in words and a shade, None without.
    """
    kinds = [kind for kind in DIFFERENCE_KINDS if counts.kinds[kind]]
    most = max((row.kinds[kind] for row in counts.classes for kind in kinds), default=1)
    rows = []
    for row in counts.classes[:_MOST_CLASSES]:
        cells = [
            (number, pair_key(kind, row.label), KIND_WORDS[kind], shade(number, most))
            if (number := row.kinds[kind])
            else None
            for kind in kinds
        ]
        share = percent_text(row.kinds["lost"] / row.original) if row.original else ""
        label, total = class_words(row.label, name), sum(row.kinds.values())
        rows.append((label, cells, total, row.original, share))
    alike = f"There is no difference on {counted(counts.inputs, 'input')}."
    return {
        "title": title,
        "words": f"{_inputs_text(counts)}." if counts.differing else alike,
        "linked": is_linked,
        "kinds": [KIND_WORDS[kind] for kind in kinds],
        "rows": rows,
        "totals": [counts.kinds[kind] for kind in kinds],
        "left_out": max(0, len(counts.classes) - _MOST_CLASSES),
        "original": counts.original,
    }
