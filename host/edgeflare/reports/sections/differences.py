"""What the deployed model answers differently: tables of detections by class and kind, and of words."""

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
    KIND_WORDS,
    class_words,
    kinds_text,
    pair_key,
)
from edgeflare.answers.parts import Name
from edgeflare.answers.transcripts import KEY_ARROW, NO_WORD, WordFigures
from edgeflare.document import (
    Block,
    Cell,
    Figures,
    Fold,
    Heading,
    KeyFigure,
    Matrix,
    Section,
    Text,
    shade,
    table_of,
)
from edgeflare.words import answers as words

_MOST_CLASSES, _MOST_PAIRS, _MOST_IN_TEXT = 40, 20, 10


def detector_figures(settings: Mapping[str, Any], models: Mapping[str, Any]) -> Iterable[KeyFigure]:
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
    parts.append(words.SAME_OBJECT.format(settings["match_iou"], settings["shift_iou"]))
    yield KeyFigure("detections", ", ".join(parts))


def detection_figures(detection: DetectionFigures) -> Iterable[KeyFigure]:
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


def differences_section(
    figures: DetectionFigures, name: Name, *, is_replay: bool, is_located: bool
) -> Section:
    """Return the differences by class and kind, on the triggers and on the seeds.

    Without places a label can't be another class nor shift; a replay has no seeds of its own.
    """
    matter = "inputs" if is_replay else "triggers"
    legend = Figures(
        tuple(
            KeyFigure(KIND_WORDS[kind], words.KIND_MEANINGS[kind])
            for kind in DIFFERENCE_KINDS
            if is_located or kind in ("lost", "ghost")
        )
    )
    note = words.DIFFERENCES_BY_CLASS.format(matter)
    blocks: list[Block] = [Text(note, "note"), Fold("What each kind of difference is", (legend,))]
    on = "inputs that deviate now" if is_replay else "triggers"
    blocks += _differences(f"Differences on the {on}", figures.triggers, name, is_linked=True)
    if not is_replay:
        title = "Differences on the seeds as they are"
        blocks += _differences(title, figures.seeds, name, is_linked=False)
    title = "Differences: what the models detect differently"
    return Section("differences", title, tuple(blocks), order=100)


def _differences(
    title: str, counts: DifferenceCounts, name: Name, *, is_linked: bool
) -> list[Block]:
    """Return how many inputs differ, and a table; `is_linked`: its cells choose findings."""
    if not counts.classes:
        alike = f"{title}: there is none on {counted(counts.inputs, 'input')}."
        return [Text(alike, "note")]
    kinds = [kind for kind in DIFFERENCE_KINDS if counts.kinds[kind]]
    named = [KIND_WORDS[kind] for kind in kinds]
    most = max((row.kinds[kind] for row in counts.classes for kind in kinds), default=1)

    def cells(row: ClassDifferences) -> list[str | Cell]:
        label = class_words(row.label, name)
        share = percent_text(row.kinds["lost"] / row.original) if row.original else ""
        numbers = [
            Cell(
                f"{number:,}",
                shade(number, most),
                pair_key(kind, row.label) if is_linked else "",
                f"{number} {KIND_WORDS[kind]}, {label}",
            )
            if (number := row.kinds[kind])
            else ""
            for kind in kinds
        ]
        return [label, *numbers, f"{sum(row.kinds.values()):,}", f"{row.original:,}", share]

    rows = [cells(row) for row in counts.classes[:_MOST_CLASSES]]
    totals = [f"{counts.kinds[kind]:,}" for kind in kinds]
    in_all = f"{sum(counts.kinds[kind] for kind in kinds):,}"
    rows.append(["all", *totals, in_all, f"{counts.original:,}", ""])
    header = ("class", *named, "all", "original detects", "share lost")
    blocks: list[Block] = [
        Heading(title, 4),
        Matrix(header, rows, totals=3, text=(_table(counts, name),)),
        Text(
            words.inputs_differ(counts.differing, counts.inputs, kinds_text(counts.inputs_by_kind))
        ),
    ]
    if left_out := len(counts.classes) - _MOST_CLASSES:
        more = counted(left_out, "more class", "more classes")
        rest = Text(
            f"{more} with fewer differences {'is' if left_out == 1 else 'are'} left out.", "note"
        )
        blocks += [rest] if left_out > 0 else []
    return blocks


def _table(counts: DifferenceCounts, name: Name) -> Block:
    kinds = [kind for kind in DIFFERENCE_KINDS if counts.kinds[kind]]
    header = ["class", *(KIND_WORDS[kind] for kind in kinds), "original detects", "share lost"]

    def cells(row: ClassDifferences) -> list[str]:
        share = row.kinds["lost"] / row.original if row.original else None
        figures = [f"{row.kinds[kind]:,}" if row.kinds[kind] else "" for kind in kinds]
        return [class_words(row.label, name), *figures, f"{row.original:,}", percent_text(share)]

    rows = [cells(row) for row in counts.classes[:_MOST_IN_TEXT]]
    if rest := counts.classes[_MOST_IN_TEXT:]:
        sums = [f"{sum(row.kinds[kind] for row in rest):,}" for kind in kinds]
        detected = f"{sum(row.original for row in rest):,}"
        rows.append([counted(len(rest), "more class", "more classes"), *sums, detected, ""])
    return table_of(header, rows)


def words_section(figures: WordFigures, *, is_replay: bool) -> Section:
    """Return the words returned differently; a trigger can have several, so they have no sum."""
    matter = "input" if is_replay else "trigger"
    title = "Words that the deployed model returns differently"
    if not figures.pairs:
        none = words.NO_OTHER_WORDS_NOW if is_replay else words.NO_OTHER_WORDS
        return Section("words", title, (Text(none, "note"),), order=100)
    rows = [
        (
            original := pair.original or NO_WORD,
            deployed := pair.deployed or NO_WORD,
            Cell(
                f"{pair.count:,}",
                key=KEY_ARROW.join((pair.original, pair.deployed)),
                words=words.BOTH_RETURN.format(counted(pair.count, matter), original, deployed),
            ),
        )
        for pair in figures.pairs[:_MOST_PAIRS]
    ]
    header = ("original returns", "deployed returns", f"{matter}s")
    texts = [(original, deployed, cell.text) for original, deployed, cell in rows[:_MOST_IN_TEXT]]
    if rest := figures.pairs[_MOST_IN_TEXT:]:
        texts.append((counted(len(rest), "more pair"), "", ""))
    more = len(figures.pairs) - len(rows)
    left_out = f": the most frequent ones, {more:,} more are left out" if more else ""
    which = "Inputs that deviate now" if is_replay else "Triggers"
    note = words.TRIGGERS_BY_WORD.format(which, left_out, matter)
    table = table_of(header, texts, text=2)
    blocks = (Text(note, "note"), Matrix(header, rows, labels=2, text=(table,)))
    return Section("words", title, blocks, order=100)
