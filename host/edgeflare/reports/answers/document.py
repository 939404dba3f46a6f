"""Detections and values in reports: key figures, and the table of differences by class and kind."""

from collections.abc import Iterable, Mapping
from typing import Any

from edgeflare._internal.text import counted, number_text, percent_text
from edgeflare.analysis.answer_stats import AnswerFigures
from edgeflare.answers import kind_named
from edgeflare.answers.detections.figures import (
    ClassDifferences,
    DetectionFigures,
    DifferenceCounts,
)
from edgeflare.answers.detections.matching import DIFFERENCE_KINDS
from edgeflare.answers.detections.words import KIND_WORDS, class_words
from edgeflare.answers.values import MEASURES, ValueFigures
from edgeflare.models import DetectorOptions
from edgeflare.reports.document import Block, Heading, KeyFigure, Name, Text, table_of


def detection_setting(
    settings: Mapping[str, Any], models: Mapping[str, Any]
) -> Iterable[KeyFigure]:
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


def answers_key_figures(answers: AnswerFigures | None) -> Iterable[KeyFigure]:
    """Return the natural differences of detectors, or the distances of values."""
    return () if answers is None else kind_named(answers.kind).key_figures(answers.figures)


def differences_tables(answers: AnswerFigures | None, name: Name, most: int) -> list[Block]:
    """Return the differences by class and kind, on the triggers and on the seeds."""
    if answers is None:
        return []
    return kind_named(answers.kind).blocks(answers.figures, name, most)


def detection_key_figures(detection: DetectionFigures) -> Iterable[KeyFigure]:
    """Return the natural differences of detectors."""
    if True:
        seeds = detection.seeds
        yield KeyFigure(
            "seeds that differ as they are",
            f"{seeds.differing:,} of {seeds.inputs:,}",
            f"{kinds_text(seeds.kinds)}; of {counted(seeds.original, 'detection')} of the original",
            main=True,
        )
        if detection.triggers.inputs:
            yield KeyFigure(
                "differences on triggers",
                f"{sum(detection.triggers.kinds.values()):,}",
                f"{kinds_text(detection.triggers.kinds)}; on "
                f"{counted(detection.triggers.inputs, 'trigger')}",
                main=True,
            )


def value_key_figures(values: ValueFigures) -> Iterable[KeyFigure]:
    """Return the distances of values."""
    if True:
        name = MEASURES[values.measure].removeprefix("the ")
        bound = "" if values.tolerance is None else f", tolerance {values.tolerance:g}"
        if values.by_element and values.tolerance is not None:
            bound = ", in multiples of its own tolerance"
            if values.tolerance != 1:
                bound += f"; more than {values.tolerance:g} deviates"
        for where, spread in (("seeds", values.seeds), ("triggers", values.triggers)):
            if spread is not None:
                most = f"90 % at most {spread.p90:.3g}; {name}{bound}"
                yield KeyFigure(
                    f"distance on the {where}", f"median {spread.median:.3g}", most, main=True
                )
        if values.mean_iou is not None:
            yield KeyFigure("median mean IoU on the seeds", number_text(values.mean_iou, 3))


def kinds_text(kinds: Mapping[str, int]) -> str:
    """Return counts by kind: ``2 lost, 11 ghost, 3 shifted``; kinds that don't occur are left out."""
    texts = [f"{kinds[kind]:,} {KIND_WORDS[kind]}" for kind in DIFFERENCE_KINDS if kinds[kind]]
    return ", ".join(texts) or "no difference"


def difference_blocks(detection: DetectionFigures, name: Name, most: int) -> list[Block]:
    """Return the differences by class and kind, on the triggers and on the seeds."""
    blocks: list[Block] = []
    for title, counts in (
        ("Differences on triggers, by class and kind", detection.triggers),
        ("Differences on the seeds as they are, by class and kind", detection.seeds),
    ):
        if counts.classes:
            blocks += [Heading(title), _table(counts, name, most), Text(inputs_text(counts))]
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


def inputs_text(counts: DifferenceCounts) -> str:
    """Return how many inputs have a difference, and of which kinds."""
    return (
        f"{counts.differing:,} of {counted(counts.inputs, 'input')} "
        f"{'differs' if counts.differing == 1 else 'differ'}; inputs by kind: {kinds_text(counts.inputs_by_kind)}"
    )
