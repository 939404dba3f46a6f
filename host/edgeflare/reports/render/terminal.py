"""A campaign's report for a terminal."""

from collections.abc import Sequence
from functools import partial

from edgeflare.analysis.campaign_verdict import campaign_verdict
from edgeflare.analysis.class_names import class_namer
from edgeflare.analysis.outcome_stats import TriggerFigures
from edgeflare.analysis.summary import Summary
from edgeflare.answers.detections.words import with_names
from edgeflare.answers.oracles import is_measured
from edgeflare.document import Block, Name, Text, Tone, section_blocks
from edgeflare.reports.campaign import (
    DIFFERENCE,
    TriggerLine,
    answers_heading,
    limits_list,
    triggers_table,
)
from edgeflare.reports.replay import replay_counts
from edgeflare.reports.sections.campaign import report_sections
from edgeflare.store import open_store
from edgeflare.words.findings import answer_words, text_parts
from edgeflare.words.verdict import evidence, unusable_sentences, verdict_text, verdict_words

_STEPS = 3
_LEAST_ROOM = 20
_OTHER_COLUMNS = 40
"""Columns of a terminal needed next to a trigger's seed and steps."""


def summary_document(summary: Summary, *, width: int | None = None) -> list[Block]:
    """Return the document for a terminal of `width` columns; None: with every step to a trigger."""
    with open_store(summary.folder) as store:
        name = class_namer(store)
        triggers = partial(_triggers, summary, width, name)
        sections = report_sections(summary, store, name, triggers=triggers, brief=True)
        blocks = [
            *section_blocks(one for one in sections if one.brief),
            *limits_list(summary.limits),
        ]
        if summary.replay is not None:
            unusable = [Text(sentence, "bad") for sentence in unusable_sentences(summary.unusable)]
            return [*unusable, *replay_counts(summary.replay), *blocks]
        result = campaign_verdict(store, summary, summary.limits)
    tone: Tone = "strong" if result.tone == "neutral" else result.tone
    first = [Text(verdict_text(result), tone), *map(Text, evidence(summary))]
    return [*first, *blocks, Text(verdict_words(result)[0], tone)]


def _triggers(summary: Summary, width: int | None, name: Name) -> Sequence[Block]:
    lines = [_trigger_line(trigger, width, name) for trigger in summary.triggers]
    if not is_measured(summary.search) or summary.kind.is_measured:
        lines = [line._replace(disagreement=None) for line in lines]
    heading = answers_heading(summary)
    shown = any(line.steps for line in lines) or heading == DIFFERENCE
    return triggers_table(lines, summary.found, heading) if shown else []


def _trigger_line(one: TriggerFigures, width: int | None, name: Name) -> TriggerLine:
    texts = text_parts(one.original_text, one.deployed_text)
    labels = (one.original_label, one.deployed_label)
    answers = " -> ".join(answer_words(*both) for both in zip(labels, texts, strict=True))
    if one.difference is not None:
        answers = with_names(one.difference, name)
    steps = _steps(one, width)
    return TriggerLine(one.seed_text, answers, "", steps, disagreement=one.disagreement)


def _steps(one: TriggerFigures, width: int | None) -> str:
    """Return as many of the last steps as fit on two lines of `width` columns, all if None."""
    if width is None:
        return one.steps(len(one.words))
    room = 2 * max(_LEAST_ROOM, width - len(one.seed_id) - _OTHER_COLUMNS)
    texts = [one.steps(most) for most in range(_STEPS, 0, -1)]
    return next((text for text in texts if len(text) <= room), texts[-1])
