"""A trigger corpus, and what became of it, for people and for machines."""

from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from edgeflare.analysis import CorpusAddition, CorpusSummary
from edgeflare.cli.tables import plain_table, print_json
from edgeflare.store import CorpusRemoved

_PAIRS = 10


def print_additions(corpus: Path, additions: Sequence[CorpusAddition], as_json: bool) -> None:
    """Print what became of the triggers of some campaigns; nothing where there are none."""
    if not additions:
        return
    entries = additions[-1].entries
    if as_json:
        print_json(
            {
                "corpus": str(corpus),
                "entries": entries,
                "campaigns": [addition.to_json() for addition in additions],
            }
        )
        return
    table = plain_table("campaign", "new", "replaced", "known", "near duplicates", "noted")
    for one in additions:
        figures = (one.new, one.replaced, one.known, one.near, one.noted)
        table.add_row(escape(one.folder), *map(str, figures))
    console = Console()
    console.print(table)
    console.print(f"{escape(str(corpus))} has {_count(entries, 'trigger')} now")


def print_corpus(summary: CorpusSummary, as_json: bool) -> None:
    """Print what a corpus has."""
    if as_json:
        print_json(summary.to_json())
        return
    console = Console()
    table = plain_table("", "", header=False)
    for name, text in _lines(summary):
        table.add_row(name, escape(text))
    console.print(table)
    if summary.targets:
        table = plain_table("model", "device", "deviate", "agree", "never looked at", "last look")
        for target in summary.targets:
            figures = (target.deviating, target.agreeing, target.unseen)
            table.add_row(
                escape(target.model),
                escape(target.device),
                *map(str, figures),
                _moment(target.looked_at),
            )
        console.print(table)
    if summary.pairs:
        table = plain_table("original", "deployed", "triggers")
        for pair in islice(summary.pairs, _PAIRS):
            table.add_row(*map(str, pair))
        if len(summary.pairs) > _PAIRS:
            rest = summary.pairs[_PAIRS:]
            table.add_row(f"{len(rest)} more pairs", "", str(sum(pair.entries for pair in rest)))
        console.print(table)


def print_removed(removed: CorpusRemoved, as_json: bool, *, dry_run: bool) -> None:
    """Print what was removed, or would be."""
    if as_json:
        print_json({**removed._asdict(), "dry_run": dry_run})
        return
    text = (
        f"{'would remove' if dry_run else 'removed'} {_count(removed.entries, 'trigger')} and "
        f"{_count(removed.samples, 'sample file')} ({_bytes(removed.bytes)})"
    )
    if removed.kept:
        text += (
            f"; {removed.kept} that another model showed, too, {'stay' if dry_run else 'stayed'}"
        )
    Console().print(text)


def _lines(summary: CorpusSummary) -> list[tuple[str, str]]:
    found = (
        f"{_count(summary.sightings, 'time')} in {_count(summary.campaigns, 'campaign')}; "
        f"{_count(summary.near, 'near duplicate')} refused"
    )
    lines = [
        ("corpus", summary.folder),
        ("triggers", f"{summary.entries} from {_count(summary.seeds, 'seed input')}"),
        ("found", found),
        ("kept", f"up to {summary.per_pair} for one seed input and class pair"),
    ]
    if summary.shape is not None:
        shape = " x ".join(map(str, summary.shape))
        if summary.rate is not None:
            shape = f"audio at {summary.rate} Hz"
        lines.append(("inputs", f"{shape}, {summary.classes} classes"))
    for name, models in (
        ("shown by", summary.models),
        ("original", {digest[:12]: count for digest, count in summary.originals.items()}),
    ):
        if models:
            lines.append((name, ", ".join(f"{one} ({count})" for one, count in models.items())))
    if summary.found_first is not None and summary.found_last is not None:
        age = (datetime.now(timezone.utc) - summary.found_first).days
        lines.append(
            (
                "age",
                f"first found {_moment(summary.found_first)} ({_count(age, 'day')} ago), last {_moment(summary.found_last)}",
            )
        )
    lines.append(("on disk", _bytes(summary.size)))
    return lines


def _moment(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
