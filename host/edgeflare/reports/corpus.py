"""A trigger corpus: what it has, and what was added or removed."""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from edgeflare._internal.text import counted, size_text
from edgeflare.analysis.corpus import CorpusAddition, CorpusSummary
from edgeflare.reports.campaign import MOST_SHOWN
from edgeflare.reports.document import Block, Column, Figures, KeyFigure, Table, Text, table_of
from edgeflare.store.corpus.records import CorpusRemoved


def additions_document(corpus: Path, additions: Sequence[CorpusAddition]) -> list[Block]:
    """Return what became of the triggers of each campaign that was added; at least one."""
    columns = (
        Column("campaign", 0, lambda one: one.folder, text=True),
        *(_count_column(name) for name in ("new", "replaced", "known")),
        Column("near duplicates", 0, lambda one: f"{one.near:,}"),
        _count_column("noted"),
    )
    entries = counted(additions[-1].entries, "trigger")
    return [Table(columns, additions), Text(f"{corpus} has {entries} now")]


def _count_column(name: str) -> Column:
    return Column(name, 0, lambda one: f"{getattr(one, name):,}")


def removed_document(removed: CorpusRemoved, *, dry_run: bool) -> list[Block]:
    """Return what was removed; `dry_run`: what would be."""
    text = (
        f"{'would remove' if dry_run else 'removed'} {counted(removed.entries, 'trigger')} and "
        f"{counted(removed.samples, 'sample file')} ({size_text(removed.bytes)})"
    )
    if removed.kept:
        stay = "stay" if dry_run else "stayed"
        text += f"; {removed.kept:,} that another model showed, too, {stay}"
    return [Text(text)]


def corpus_document(summary: CorpusSummary) -> list[Block]:
    """Return figures of a corpus, each model's last answers, and the pairs of classes."""
    targets = (
        Column("model", 0, lambda one: one.model, text=True),
        Column("device", 0, lambda one: one.device, text=True),
        Column("deviate", 0, lambda one: f"{one.deviating:,}"),
        Column("agree", 0, lambda one: f"{one.agreeing:,}"),
        Column("never looked at", 1, lambda one: f"{one.unseen:,}"),
        Column("last look", 0, lambda one: _moment(one.looked_at), text=True),
    )
    pairs = [tuple(map(str, pair)) for pair in summary.pairs[:MOST_SHOWN]]
    if rest := summary.pairs[MOST_SHOWN:]:
        count = sum(pair.entries for pair in rest)
        pairs.append((counted(len(rest), "more pair"), "", str(count)))
    return [
        Figures(tuple(_figures(summary))),
        Table(targets, summary.targets),
        table_of(["original", "deployed", "triggers"], pairs, text=2),
    ]


def _figures(summary: CorpusSummary) -> list[KeyFigure]:
    seeds, times = counted(summary.seeds, "seed input"), counted(summary.sightings, "time")
    campaigns, near = (
        counted(summary.campaigns, "campaign"),
        counted(summary.near, "near duplicate"),
    )
    rows = [
        KeyFigure("corpus", summary.folder),
        KeyFigure("triggers", f"{summary.entries:,} from {seeds}"),
        KeyFigure("found", f"{times} in {campaigns}; {near} refused"),
        KeyFigure("kept", f"up to {summary.per_pair} for one seed input and class pair"),
    ]
    if summary.shape is not None:
        shape = " x ".join(map(str, summary.shape))
        if summary.rate is not None:
            shape = f"audio at {summary.rate} Hz"
        rows.append(KeyFigure("inputs", f"{shape}, {summary.classes} classes"))
    originals = {digest[:12]: count for digest, count in summary.originals.items()}
    for name, models in (("shown by", summary.models), ("original", originals)):
        if models:
            text = ", ".join(f"{one} ({count:,})" for one, count in models.items())
            rows.append(KeyFigure(name, text))
    if summary.found_first is not None and summary.found_last is not None:
        days = counted((datetime.now(timezone.utc) - summary.found_first).days, "day")
        first, last = _moment(summary.found_first), _moment(summary.found_last)
        rows.append(KeyFigure("age", f"first found {first} ({days} ago), last {last}"))
    return [*rows, KeyFigure("on disk", size_text(summary.size))]


def _moment(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
