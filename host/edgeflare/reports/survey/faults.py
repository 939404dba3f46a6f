"""The faults that a pursuit found, in sentences and tables, for a terminal, Markdown and HTML."""

from collections.abc import Iterable
from itertools import islice

from edgeflare._internal.text import counted, percent_text
from edgeflare.analysis.faults import Fault, FaultFigures
from edgeflare.document import Block, Column, Item, KeyFigure, Listing, Name, Table, Text
from edgeflare.words.faults import fault_title, fault_words

_MOST_NAMES = 3


def faults_key_figures(faults: FaultFigures | None) -> Iterable[KeyFigure]:
    """Yield how many faults there are, and the first one's words; nothing without one."""
    if faults is None or not faults.faults:
        return
    first = faults.faults[0]
    yield KeyFigure("faults found", f"{len(faults.faults):,}", first.words, main=True)


def faults_list(faults: FaultFigures, name: Name = str) -> list[Block]:
    """Return a sentence for each fault, a table of them, and what they cost."""
    items = tuple(Item(fault_words(one), "bad", f"{fault_title(one)}:") for one in faults.faults)
    columns = (
        Column("fault", 0, fault_title, text=True),
        Column("deviating inputs", 0, lambda one: f"{one.inputs:,}"),
        Column("seeds", 0, lambda one: f"{one.seeds:,}"),
        Column("precision", 0, lambda one: percent_text(one.precision)),
        Column("recall", 0, lambda one: percent_text(one.recall)),
        Column("original -> deployed", 1, lambda one: _pairs(one, name), text=True, optional=True),
        Column("made by", 2, _families, text=True),
    )
    queries = faults.queries
    device = queries["pursuit"] + queries["check"]
    cost = (
        f"Going after the survey's deviations took "
        f"{counted(device, 'device query', 'device queries')}, {queries['check']:,} of them to "
        f"check descriptions, and {queries['confirmation']:,} to confirm; original alone "
        f"{queries['host_only']:,}"
    )
    blocks: list[Block] = []
    if items:
        blocks += [Listing(items), Table(columns, faults.faults)]
    if faults.unlisted:
        verb = "belongs" if faults.unlisted == 1 else "belong"
        blocks.append(
            Text(
                f"{counted(faults.unlisted, 'confident deviation')} of "
                f"{counted(faults.unlisted_seeds, 'seed')} {verb} to no fault: no condition on "
                "them was confirmed by fresh inputs (survey and pursuit together)"
            )
        )
    return [*blocks, Text(cost, "muted")]


def _pairs(one: Fault, name: Name) -> str:
    known = [pair for pair in one.pairs if pair.original is not None]
    shown = [
        f"{name(pair.original)} -> {'NaN' if pair.deployed is None else name(pair.deployed)}"
        for pair in known[:_MOST_NAMES]
    ]
    return ", ".join([*shown, *(["..."] if len(known) > _MOST_NAMES else [])])


def _families(one: Fault) -> str:
    shown = islice((f"{name} ({count:,})" for name, count in one.families.items()), _MOST_NAMES)
    return ", ".join(shown)
