"""Which classes the deployed model takes for which: a matrix for a page, a table for a text."""

from collections.abc import Mapping, Sequence

from edgeflare._internal.text import counted
from edgeflare.analysis.outcome_stats import LabelPair
from edgeflare.document import Block, Cell, Matrix, Name, Section, Text, shade, table_of

_MOST_CLASSES = 40
_MOST_PAIRS = 20
_SHORT_NAME = 3


def pair_key(original: int | None, deployed: int | None) -> str:
    """Return the page's key of a pair of labels, like ``4-9``; "none" without a label."""
    return "none" if original is None or deployed is None else f"{original}-{deployed}"


def pairs_section(
    text: Sequence[Block],
    counts: Mapping[tuple[int, int], int],
    name: Name,
    *,
    is_replay: bool = False,
) -> Section:
    """Return the pairs of classes, the original's first.

    `counts` are those of all findings that the gallery shows, for a page; `text` is what a
    text has instead. `name` returns a class's name.
    """
    title = "Pairs of labels: what the original says, and what the deployed model says"
    if not counts:
        none = "No input deviates now." if is_replay else "There is no trigger with labels."
        return Section("pairs", title, (Text(none, "note"),), order=100)
    matter = "input" if is_replay else "trigger"
    matters = "Inputs that deviate now" if is_replay else "Triggers"
    most = max(counts.values())

    def cell(original: int, deployed: int) -> Cell | str:
        count = counts.get((original, deployed))
        if count is None:
            return ""
        words = (
            f"{counted(count, matter)}: the original says {name(original)}, the deployed model "
            f"{name(deployed)}"
        )
        return Cell(f"{count:,}", shade(count, most), pair_key(original, deployed), words)

    rows = sorted({original for original, _ in counts})
    columns = sorted({deployed for _, deployed in counts})
    if max(len(rows), len(columns)) > _MOST_CLASSES:
        ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))
        left_out = len(ranked) - _MOST_PAIRS
        more = f" (and {left_out:,} more)" if left_out > 0 else ""
        note = f"There are too many classes for a matrix; the most frequent pairs are{more}:"
        lines = [(name(one), name(other), cell(one, other)) for one, other in ranked[:_MOST_PAIRS]]
        headings = ("original says", "deployed says", f"{matter}s")
        block = Matrix(headings, lines, labels=2, text=tuple(text))
        return Section("pairs", title, (Text(note, "note"), block), order=100)
    note = (
        f"{matters} by what the original says (row) and what the deployed model says (column). A "
        f"number shows its {matter}s below."
    )
    sums = {one: sum(counts.get((one, other), 0) for other in columns) for one in rows}
    totals = [sum(counts.get((one, other), 0) for one in rows) for other in columns]
    cells: list[list[str | Cell]] = [
        [name(one), *(cell(one, other) for other in columns), f"{sums[one]:,}"] for one in rows
    ]
    cells.append(["all", *(f"{total:,}" for total in totals), f"{sum(totals):,}"])
    names = [name(other) for other in columns]
    long_names = any(len(one) > _SHORT_NAME for one in names)
    header = ("original \\ deployed", *names, "all")
    block = Matrix(header, cells, totals=1, long_names=long_names, text=tuple(text))
    return Section("pairs", title, (Text(note, "note"), block), order=100)


def pairs_table(pairs: Sequence[LabelPair], name: Name, most: int) -> list[Block]:
    """Return the `most` frequent pairs, of those from the most frequent on, and how many more."""
    rows = [(name(pair.original), name(pair.deployed), f"{pair.count:,}") for pair in pairs]
    if rest := pairs[most:]:
        count = f"{sum(pair.count for pair in rest):,}"
        rows[most:] = [(counted(len(rest), "more pair"), "", count)]
    return [table_of(["original says", "deployed says", "triggers"], rows, text=2)] if rows else []
