"""Recipes for the deployed model: which to ship instead, in a table and a chart."""

from collections.abc import Iterator
from pathlib import Path

from edgeflare._internal.files import write_whole
from edgeflare._internal.text import (
    NOTHING,
    margin_text,
    number_text,
    p_text,
    percent_text,
    size_text,
)
from edgeflare.analysis.base import Analysis, RunContext
from edgeflare.answers.detections.words import kinds_text
from edgeflare.campaign.events import BatchProgress
from edgeflare.document import Block, Column, Item, Listing, Section, Table, Text
from edgeflare.repair import (
    LATENCY_SLACK_S,
    LATENCY_TOLERANCE,
    PRESENT,
    SIZE_TOLERANCE,
    RecipeFigures,
    RecipesFound,
    RecipesSettings,
    recipes_campaign,
)
from edgeflare.repair.recipes import MARKER
from edgeflare.reports.charts import Dot, scatter_chart, standalone
from edgeflare.store import Store
from edgeflare.words.causes import layer_words
from edgeflare.words.repair import in_float_words

_NEARLY = 0.1
"""A smaller candidate that deviates by at most this share more than the winner is named beside it."""

_SEARCH_COLUMNS = (
    Column("found", 1, lambda one: f"{one.found:,} of {one.searched:,}"),
    Column("queries", 3, lambda one: number_text(one.queries, 1)),
)


def recipes_document(found: RecipesFound) -> list[Block]:
    """Return the verdict, a table of the candidates, and what is to be known of them."""
    of_objects = any(candidate.objects for candidate in found.candidates)
    measure = "disagreement (an object's scores)" if of_objects else "disagreement"
    about = (
        f"{found.seeds} seeds that all have finished; {measure} by a new search on the same "
        f"budget, with its interval of {percent_text(found.level, 0)}; *: nothing else is smaller "
        "and deviates less; natural: seeds that deviate as they are"
    )
    if of_objects:
        about += (
            "; objects: those that differ on the seeds, of the original's detections; queries: to "
            "the first trigger of those found"
        )
    columns = (
        Column("recipe", 0, lambda one: f"{one.name} *" if one.is_front else one.name, text=True),
        Column("objects", 0, _objects, optional=True),
        Column("disagreement", 0, _disagreement),
        Column("size", 0, lambda one: size_text(one.size)),
        Column("ms", 4, _milliseconds),
        Column("accuracy", 2, _accuracy, optional=True),
        Column("natural", 1, lambda one: f"{one.natural:,}"),
        *(_SEARCH_COLUMNS if of_objects else ()),
        Column("confident deviations", 5, lambda one: percent_text(one.confident), optional=True),
    )
    kinds = (
        Item(
            f"{candidate.name}, objects that differ on the seeds: {kinds_text(candidate.objects.kinds)}"
        )
        for candidate in found.candidates
        if candidate.objects
    )
    in_float = (
        Item(
            f"{candidate.name} has in float: {'; '.join(map(layer_words, in_float_words(candidate.in_float)))}"
        )
        for candidate in found.candidates
        if candidate.in_float
    )
    failed = (Item(f"{name} is left out: {why}") for name, why in found.failed.items())
    notes = (Item(notice, "warn", "note:") for notice in found.notices)
    return [
        *(Text(one, "strong") for one in _verdict(found)),
        Table(columns, found.candidates, f"{about}:"),
        Listing((*kinds, *in_float, *failed, *notes)),
    ]


def _verdict(found: RecipesFound) -> Iterator[str]:
    """Yield what to ship, and what it costs."""
    present = found.present
    least = found.least
    bound = (
        f"at most its size (+ {percent_text(SIZE_TOLERANCE, 0)}) and its time "
        f"(+ {percent_text(LATENCY_TOLERANCE, 0)}, or {1000 * LATENCY_SLACK_S:g} ms)"
    )
    if present.latency_s is None:
        bound = f"at most its size (+ {percent_text(SIZE_TOLERANCE, 0)}; times are not known)"
    if found.winner is None or found.p is None:
        more = ", without more objects that differ on the seeds" if present.objects else ""
        yield f"Keep the model {PRESENT}: no recipe of {bound} deviates less in a new search{more}."
        if least.name != PRESENT:
            yield _dearer(present, least)
        return
    winner = found.candidate(found.winner)
    p = p_text(found.p)
    if found.is_clear:
        sure = f" ({p}, adjusted for the number of recipes)"
        yield (
            f"Ship {winner.name}, which deviates least of {bound}: {_change(present, winner, sure)}."
        )
    else:
        yield (
            f"{winner.name} has the least of {bound}: {_change(present, winner)}; but {found.seeds} "
            f"seeds don't tell it from the model {PRESENT} ({p}, adjusted for the number of "
            "recipes): search from more."
        )
    costs = [f"{size_text(winner.size)} in place of {size_text(present.size)}"]
    if winner.latency_s is not None and present.latency_s is not None:
        costs.append(_time(present, winner))
    if winner.accuracy is not None and present.accuracy is not None:
        costs.append(f"accuracy {_accuracy(winner)} in place of {_accuracy(present)}")
    costs.append(f"natural deviations {winner.natural} in place of {present.natural}")
    yield f"It has {', '.join(costs)}."
    if least.name != winner.name:
        yield _dearer(present, least)
    most = winner.disagreement.value * (1 + _NEARLY)
    near = [
        candidate
        for candidate in found.candidates
        if candidate.size < winner.size
        and candidate.disagreement.value <= most
        and candidate is not present
    ]
    if near:
        words = (
            f"{one.name} ({margin_text(one.disagreement.value)}, {size_text(one.size)}, "
            f"{_milliseconds(one)} ms)"
            for one in near
        )
        yield f"Smaller, and deviating at most {percent_text(_NEARLY, 0)} more: {', '.join(words)}."


def _dearer(present: RecipeFigures, least: RecipeFigures) -> str:
    """Return what deviates least of any size and time, and what that costs."""
    costs = [f"{size_text(least.size)} in place of {size_text(present.size)}"]
    if least.latency_s is not None and present.latency_s is not None:
        costs.append(_time(present, least))
    return (
        f"Of any size and time the least is {least.name}: {_change(present, least)}, at "
        f"{' and '.join(costs)}."
    )


def _time(present: RecipeFigures, other: RecipeFigures) -> str:
    return f"{_milliseconds(other)} ms a query in place of {_milliseconds(present)}"


def _change(present: RecipeFigures, other: RecipeFigures, sure: str = "") -> str:
    """Return how a candidate compares with the present model; `sure` follows the disagreement."""
    before, after = present.disagreement.value, other.disagreement.value
    words = f"disagreement {margin_text(after)} in place of {margin_text(before)}"
    words += f", {percent_text(after / before, 0)} of it" if before else ""
    words += sure
    if other.objects is None or present.objects is None:
        return words
    return f"{words}, and {_objects(other)} objects that differ in place of {_objects(present)}"


def _disagreement(one: RecipeFigures) -> str:
    known = one.disagreement
    return f"{margin_text(known.value)} [{margin_text(known.low)}, {margin_text(known.high)}]"


def _objects(one: RecipeFigures) -> str:
    known = one.objects
    if known is None:
        return NOTHING
    return f"{known.count:,} of {known.original:,} ({percent_text(known.share)})"


def _milliseconds(one: RecipeFigures) -> str:
    return NOTHING if one.latency_s is None else f"{1000 * one.latency_s:.3g}"


def _accuracy(one: RecipeFigures) -> str:
    return NOTHING if one.accuracy is None else percent_text(one.accuracy.rate)


def write_front(found: RecipesFound, path: Path) -> None:
    """Write a chart of all candidates by size and disagreement, with the front. Raises OSError."""
    kilobyte = 1000
    dots = [
        Dot(
            candidate.name,
            candidate.size / kilobyte,
            candidate.disagreement.value,
            candidate.is_front,
            candidate.name == PRESENT,
        )
        for candidate in found.candidates
    ]
    chart = scatter_chart(
        "Candidates by size and disagreement", dots, across="size in kB", upright="disagreement"
    )
    write_whole(path, standalone(chart).encode())


class _Recipes(Analysis[RecipesSettings, RecipesFound]):
    name = "recipes"
    about = "Quantise the original in other ways, search each anew, and name the one to ship."
    settings, result = RecipesSettings, RecipesFound
    each = "candidate"

    def run(self, campaign: Store, settings: RecipesSettings, context: RunContext) -> RecipesFound:
        stated = settings.model_dump(exclude={"recipe"})
        return recipes_campaign(
            campaign.folder,
            only=settings.recipe,
            progress=context.batch,
            **stated,
            **context.reach,
        )

    def go_on(self, last: BatchProgress) -> str:
        folders = (last.folder, *last.folder.parents)
        folder = next(one for one in folders if (one / MARKER).exists())
        return f"the same command goes on with what is in {folder}"

    def write(self, result: RecipesFound, settings: RecipesSettings) -> None:
        del settings
        write_front(result, _front(result))

    def advice(self, result: RecipesFound) -> str:
        front = f"Size against disagreement: {_front(result)}"
        return front + (f"\n{result.winner} as a script: {result.script}" if result.script else "")

    def sections(self, result: RecipesFound) -> Iterator[Section]:  # type: ignore[override]
        title = "Other quantisations of the original"
        yield Section("repair-recipes", title, (*recipes_document(result),))


def _front(found: RecipesFound) -> Path:
    return Path(found.folder) / "pareto.svg"


RECIPES = _Recipes()
