"""Which classes the original confuses, and what deployment changed, as sentences and tables."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from edgeflare._internal.text import (
    NOTHING,
    counted,
    number_text,
    p_text,
    p_value_text,
    percent_text,
)
from edgeflare.document import (
    Block,
    Cell,
    Column,
    Example,
    Examples,
    Fold,
    Heading,
    Item,
    Listing,
    Matrix,
    Name,
    Table,
    Text,
)
from edgeflare.errors import StoreError
from edgeflare.store import Store
from edgeflare_whitebox import (
    LEVEL,
    BiasChange,
    ChangeInterval,
    ClassChange,
    ClassesFound,
    MeasureEvaluation,
    PairChange,
    PairDetection,
    SuspectPair,
)
from edgeflare_whitebox.classes.campaign import ClassesSettings, find_classes
from edgeflare_whitebox.stored import Inspection

_SAID = 3
"""Changes of each kind that are told in a sentence, at most."""
_ROWS = 15
"""Rows of a table, at most."""
_FEW = 5
"""Rows of a table of changes of which less are significant."""
_DRAWN = 8
"""Seeds whose answers moved that are drawn, at most."""
_SHADES = 5
_Change = TypeVar("_Change", PairChange, BiasChange)


def classes_document(found: ClassesFound, name: Name) -> list[Block]:
    """Return what deployment changed, strongest evidence first, and what the original confuses.

    `name` gives the names of the classes.
    """
    title = (
        f"{counted(found.inputs, 'seed')} of {found.classes:,} classes"
        f"{'' if found.labelled else ', without labels'}"
    )
    if not found.finished:
        title += "; the campaign wasn't finished then: those that it had"
    return [
        Text(title),
        *(Text(one, "strong") for one in verdicts(found, name)),
        *_changes(found, name),
        *_original(found, name),
        Listing(tuple(Item(one) for one in (*_how(found), *found.notices))),
    ]


def verdicts(found: ClassesFound, name: Name) -> list[str]:
    """Return what deployment changed beyond chance, a sentence each, or that nothing is seen."""
    lines = [
        f"Class {name(one.label)} is decided for {one.deployed:,} times where the original does so "
        f"{one.original:,} times ({p_text(one.adjusted_p)}): {one.moved:,} of "
        f"{counted(found.moved, 'moved answer')} {'is' if found.moved == 1 else 'are'} to or away from it."
        for one in found.changes
        if one.is_significant
    ][:_SAID]
    if not lines and found.changes and found.changes[0].in_pairs:
        lines = [_first_in_pairs(found, name)]
    lines += [_pair_words(one, found, name) for one in found.pairs if one.is_significant][:_SAID]
    lines += [
        f"Of classes {name(one.first)} and {name(one.second)} one is confused with other classes more often than "
        f"the other: by {percent_text(one.deployed)} of the seeds on average, by the original "
        f"{percent_text(one.original)} ({p_text(one.adjusted_p)})."
        for one in found.biases
        if one.is_significant
    ][:_SAID]
    if lines:
        return lines
    pairs = (
        f", and of {counted(found.tested_pairs, 'pair')} of classes" if found.tested_pairs else ""
    )
    classes = counted(len(found.changes), "class", "classes")
    tested = f"decisions for {classes}{pairs}"
    return [
        f"The deployed model treats no class differently from the original, beyond chance (tested: {tested})."
    ]


def _first_in_pairs(found: ClassesFound, name: Name) -> str:
    label = found.changes[0].label
    changed = [one for one in found.pairs if one.is_significant]
    own = sum(label in (one.label, one.said) for one in changed)
    return (
        f"Class {name(label)} changed most: it is in {own:,} of {counted(len(changed), 'pair')} of classes "
        "that deployment changed."
    )


def _pair_words(one: PairChange, found: ClassesFound, name: Name) -> str:
    inputs = f"Of {counted(one.inputs, 'seed')} {_group(one, found, name)}"
    if one.leak_p is None or one.adjusted_p < LEVEL:
        return (
            f"{inputs} the deployed model takes {one.deployed:,} for {name(one.said)}, the original "
            f"{one.original:,} ({p_text(one.adjusted_p)})."
        )
    return (
        f"{inputs} the deployed model gives {name(one.said)} a probability of "
        f"{percent_text(one.deployed_leak)} on average, the original {percent_text(one.original_leak)} "
        f"({p_text(one.leak_p)})."
    )


def _group(one: PairChange, found: ClassesFound, name: Name) -> str:
    if found.labelled:
        return f"of class {name(one.label)}"
    return f"that either model takes for {name(one.label)}"


def _changes(found: ClassesFound, name: Name) -> Iterator[Block]:
    examples = {one.place: one.id for one in found.examples}
    rows = [one for one in found.changes if one.original or one.deployed or one.inputs][:_ROWS]
    more = len(found.changes) - len(rows)
    yield Table(
        (
            Column("class", 0, lambda one: name(one.label), text=True),
            Column("original", 0, lambda one: f"{one.original:,}"),
            Column("deployed", 0, lambda one: f"{one.deployed:,}"),
            Column("change of the share", 4, lambda one: _interval(one.change)),
            Column("p", 0, lambda one: p_value_text(one.adjusted_p)),
            Column("moved answers", 5, lambda one: f"{one.moved:,}"),
            Column("labelled so", 1, lambda one: _count(one.inputs), optional=True),
            Column("original right", 3, _recall("original_recall"), optional=True),
            Column("deployed right", 3, _recall("deployed_recall"), optional=True),
        ),
        rows,
        "How often each model decides for a class: changed ones first, then by moved answers"
        + (f"; {more:,} more are in the JSON" if more > 0 else ""),
        "class-changes",
    )
    yield Table(
        (
            Column("class", 0, lambda one: name(one.label), text=True),
            Column("taken for", 0, lambda one: name(one.said), text=True),
            Column("seeds", 4, lambda one: f"{one.inputs:,}"),
            Column("original", 0, lambda one: f"{one.original:,}"),
            Column("deployed", 0, lambda one: f"{one.deployed:,}"),
            Column("change of the share", 3, lambda one: _interval(one.change)),
            Column("p", 0, lambda one: p_value_text(one.adjusted_p)),
            Column("original leak", 5, lambda one: percent_text(one.original_leak, 2)),
            Column("deployed leak", 5, lambda one: percent_text(one.deployed_leak, 2)),
            Column("change of leak", 2, lambda one: _interval(one.leak_change)),
            Column("p of leak", 0, lambda one: p_value_text(one.leak_p)),
            Column(
                "such as",
                1,
                lambda one: next((examples[at] for at in one.examples if at in examples), ""),
                text=True,
                optional=True,
            ),
        ),
        _strongest(found.pairs),
        "Pairs of classes that deployment changed, strongest evidence first"
        if any(one.is_significant for one in found.pairs)
        else "Pairs of classes with changed answers, none beyond chance",
        "pair-changes",
    )
    yield Table(
        (
            Column("classes", 0, lambda one: _two(one, name), text=True),
            Column("original", 0, lambda one: number_text(one.original, 4)),
            Column("deployed", 0, lambda one: number_text(one.deployed, 4)),
            Column("change", 1, lambda one: _interval(one.change, 4)),
            Column("p", 0, lambda one: p_value_text(one.adjusted_p)),
        ),
        _strongest([one for one in found.biases if one.original != one.deployed]),
        "How unequally two classes are confused with third ones (average confusion disparity)",
        "bias-changes",
    )


def _original(found: ClassesFound, name: Name) -> Iterator[Block]:
    if not found.suspects and not found.evaluations:
        return
    yield Heading("What the original may confuse")
    if found.suspects and found.suspects[0].leak is not None:
        first = found.suspects[0]
        words = (
            f"Most likely, of the {found.enough:,} classes with inputs enough, {name(first.first)} and "
            f"{name(first.second)}: where it decides for one of them, the "
            f"other has a probability of {percent_text(first.leak, 2)} on average"
        )
        if first.confusion is not None:
            words += f"; it takes {percent_text(first.confusion)} of the seeds labelled with one for the other"
        yield Text(f"{words}.", "strong")
    yield Table(
        (
            Column("classes", 0, lambda one: _two(one, name), text=True),
            Column("leak", 0, lambda one: percent_text(one.leak, 2)),
            Column(
                "deployed leak", 5, lambda one: percent_text(one.deployed_leak, 2), optional=True
            ),
            Column("NAPVD", 0, lambda one: number_text(one.distance, 3)),
            Column("bias", 1, lambda one: number_text(one.bias, 3)),
            Column("confused", 0, lambda one: percent_text(one.confusion), optional=True),
            Column("deployed", 1, lambda one: percent_text(one.deployed_confusion), optional=True),
            Column("flagged by", 4, _flagged, text=True),
        ),
        found.suspects[:_ROWS],
        f"{counted(len(found.suspects), 'pair')} of classes stand out, the largest leak first",
        "suspect-pairs",
    )
    yield Table(
        (
            Column("measure", 0, lambda one: one.measure, text=True),
            Column("pairs", 2, lambda one: f"{one.pairs:,}"),
            Column("Spearman", 0, lambda one: number_text(one.correlation, 3)),
            Column("flagged: true", 0, lambda one: _true(one.by_deviation), text=True),
            Column("precision", 3, lambda one: percent_text(one.by_deviation.precision)),
            Column("recall", 3, lambda one: percent_text(one.by_deviation.recall)),
            Column("top 1 %: true", 2, lambda one: _true(one.top), text=True),
            Column("AUCEC", 4, _area),
            Column("at best", 1, lambda one: number_text(one.cost.optimal if one.cost else None)),
        ),
        found.evaluations,
        "How well each measure finds what the labels show (random order has AUCEC 0.50)",
        "measure-evaluations",
    )


def _how(found: ClassesFound) -> Iterator[str]:
    """Yield how it was measured."""
    if found.pairs or found.tested_pairs:
        yield (
            "p is that of a difference this large if the models could change places, adjusted for all "
            "tests; it is 1 where so few answers moved that no outcome could be significant"
        )
    if found.suspects:
        source = "the seeds" if found.profile is None else found.profile
        yield (
            "Leak: the mean probability of a class where the model decides for the other one, which its "
            "answers alone tell. NAPVD: how far the classes are apart by which units they activate, "
            f"{counted(found.profiled, 'profiling input')}: {source}; small where they may be confused"
        )


def _strongest(changes: Sequence[_Change]) -> Sequence[_Change]:
    """Return the significant changes, which come first, or some others where they are few."""
    significant = sum(one.is_significant for one in changes)
    return changes[: min(_ROWS, max(_FEW, significant))]


def _interval(change: ChangeInterval | None, digits: int | None = None) -> str:
    if change is None:
        return NOTHING
    if digits is not None:
        return f"{number_text(change.low, digits)} to {number_text(change.high, digits)}"
    return f"{percent_text(change.low)} to {percent_text(change.high)}"


def _recall(which: str) -> Callable[[ClassChange], str]:
    return lambda one: percent_text(getattr(one, which))


def _count(count: int | None) -> str:
    return NOTHING if count is None else f"{count:,}"


def _two(one: SuspectPair | BiasChange, name: Name) -> str:
    return f"{name(one.first)}, {name(one.second)}"


def _flagged(one: SuspectPair) -> str:
    by = [words for words, said in (("leak", one.by_leak), ("NAPVD", one.by_distance)) if said]
    return " and ".join(by) or NOTHING


def _true(found: PairDetection) -> str:
    flagged = found.true_positives + found.false_positives
    return f"{found.true_positives:,} of {flagged:,}"


def _area(one: MeasureEvaluation) -> str:
    return number_text(one.cost.area if one.cost else None)


def _decisions(found: ClassesFound, name: Name) -> Iterator[Block]:
    """Yield how often the deployed model takes each class for each, beside what the original does."""
    table = found.decisions
    if not table.classes:
        return
    changes = [
        [after - before for before, after in zip(*rows, strict=True)]
        for rows in zip(table.original, table.deployed, strict=True)
    ]
    most = max(abs(one) for row in changes for one in row)
    left_out = len(found.changes) - len(table.classes)
    rows: list[Sequence[str | Cell]] = [
        (
            name(label),
            *(Cell(_cell(*one), _shade(one[1], most)) for one in zip(counts, row, strict=True)),
        )
        for label, counts, row in zip(table.classes, table.deployed, changes, strict=True)
    ]
    words = Text(
        f"Seeds by {'label' if found.labelled else 'what the original decides'} (row) and by what the "
        "deployed model decides (column); in brackets, and by colour, how many more or fewer than the "
        "original"
        + (
            f". The classes of the strongest changes, {left_out:,} more are left out"
            if left_out > 0
            else ""
        ),
        "note",
    )
    corner = f"{'label' if found.labelled else 'original'} \\ deployed"
    matrix = Matrix((corner, *map(name, table.classes)), rows, long_names=True)
    yield Fold("Decisions of the deployed model", (words, matrix), is_open=True)


def _cell(count: int, change: int) -> str:
    return f"{count:,} ({change:+,})" if change else f"{count:,}" if count else ""


def _shade(change: int, most: int) -> int:
    return -(-_SHADES * abs(change) // most) if change else 0


def _moved(store: Store, found: ClassesFound, name: Name) -> Iterator[Block]:
    """Yield a seed of each of the first pairs."""
    examples = {one.place: one for one in found.examples}
    first = dict.fromkeys(place for pair in found.pairs for place in pair.examples[:1])
    drawn = [examples[place] for place in first if place in examples][:_DRAWN]

    def make() -> Sequence[Example]:
        from edgeflare.reports.media import small_panel

        made = []
        for one in drawn:
            words = f"{name(one.original)} → {name(one.deployed)}"
            if one.label is not None:
                words += f", labelled {name(one.label)}"
            try:
                sample = store.get_sample(one.sample)
                picture = small_panel(sample, sample, store.sample_rate)
            except StoreError:  # its file is gone
                continue
            seen = f"seed {one.id}"
            made.append(Example(words, one.id, picture=picture, alternative=seen, deviates=False))
        return made

    if drawn:
        about = (
            "One of each of the pairs above, with what the original and the deployed model decide."
        )
        blocks = (Text(about, "note"), Examples(make))
        yield Fold("Seeds whose answers moved", blocks, is_open=True)


def _blocks(result: ClassesFound, names: Name, store: Store | None) -> Iterator[Block]:
    yield from classes_document(result, names)
    yield from _decisions(result, names)
    if store is not None:
        yield from _moved(store, result, names)


class Classes(Inspection[ClassesSettings, ClassesFound]):
    """``inspect classes``."""

    name = "classes"
    about = "Find classes that the original confuses, and those that deployment treats otherwise; no device is asked."
    settings, result = ClassesSettings, ClassesFound
    title, order = "Classes: confusion and bias", 120
    compute = staticmethod(find_classes)
    blocks = staticmethod(_blocks)


CLASSES = Classes()
