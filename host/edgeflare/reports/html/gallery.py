"""The findings of a campaign, or a replay's inputs, as the compact data of the page's gallery."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from edgeflare._internal.text import margin_text, number_text
from edgeflare.analysis.findings import Finding, has_input
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.answers import AnswerKind, common_kind, kind_of_answer
from edgeflare.answers.detections.words import with_names
from edgeflare.answers.parts import Card as ShownAnswers
from edgeflare.answers.parts import Picture
from edgeflare.campaign.replay.results import ReplayedInput, ReplayState, stored_replay
from edgeflare.document import Column, Name, Table
from edgeflare.errors import StoreError
from edgeflare.reports.campaign import STEPS_SHOWN
from edgeflare.reports.html.media import Media
from edgeflare.reports.media import indexed_png, png
from edgeflare.reports.replay import replayed_words
from edgeflare.reports.sections.details import SearchFigures
from edgeflare.reports.sections.pairs import pair_key
from edgeflare.store import Store, open_store
from edgeflare.strategies.operators import describe_last_mutations
from edgeflare.types import TRIGGERS, Output, Sample, Status

_MOST_SOURCES = 100
MOST_SHOWN = 20_000
"""Largest number of findings in the gallery, the most severe of each group first."""

STATUS_WORDS = {
    "found": "found by the search",
    "seed-deviates": "the seed input itself",
    "unstable": "unstable: it did not repeat",
    "nonfinite": "NaN or infinity in an output",
    "failed": "a model could not answer",
}


@dataclass(slots=True)
class Row:
    """A finding in the page's data, in which each field is a list of its values by this name.

    ``report.js`` reads them so. `original`, `deployed` and `label` are classes, `words` the last
    mutations, `scores` those of both models' top classes (class, original's score, deployed's
    score). Each of `transcripts`, `difference`, `detections` and `values` is None of answers that
    don't have it, see `edgeflare.answers.parts.Card`, and so is `replayed` but of an input of a replay: its
    state, kind, seed, and what became of it in words. The fields of `Shown` follow in the data, for
    the findings that the gallery shows.
    """

    seed: str
    device: str
    status: str
    cause: str
    original: int | None
    deployed: int | None
    label: int | None
    original_margin: float | None
    deployed_margin: float | None
    severity: float | None
    l2: float | None
    linf: float | None
    search_queries: int
    confirmation_queries: int
    seconds: float | None
    confirmed: int
    words: str
    detail: str
    scores: Sequence[list[Any]]
    snr_db: float | None
    disagreement: float | None
    transcripts: dict[str, Any] | None
    difference: str | None
    detections: dict[str, Any] | None
    values: dict[str, Any] | None
    command: str
    replayed: dict[str, str] | None = None


STATE_WORDS: dict[ReplayState, str] = {
    "new": "new",
    "still": "still deviates",
    "nonfinite": "NaN or infinity",
    "unstable": "unstable",
    "failed": "no answer",
    "fixed": "fixed",
}
"""The states that have cards, in their order on the page; what agrees as before is only counted."""


class Card(NamedTuple):
    """A finding in the gallery: its row, its group, and the digests of its pictures'
    samples.

    Cards of a lower `rank` come first, whatever their severity. `pairs` are what it is found by:
    the pair of labels, every pair of words that differ, or every kind and class of detections that
    do. `maps` are pictures of both models' maps and of their difference.
    """

    row: Row
    group: tuple[str, str, str]
    severity: float
    seed: str
    trigger: str | None
    rank: int = 0
    pairs: tuple[str, ...] = ("none",)
    maps: tuple[Media, ...] = ()


def found_card(finding: Finding) -> Card | None:
    """Return the card of an outcome that has an input to show."""
    return card(finding) if has_input(finding.outcome) else None


def card(finding: Finding) -> Card:
    """Return a finding's card."""
    seed, outcome = finding.seed, finding.outcome
    severity = _number(outcome.severity)
    device = outcome.device_or_replica
    other = outcome.trigger not in (None, seed.sample) and seed.outputs is not None
    answers = _shown_answers(
        outcome.original, outcome.deployed, seed.outputs[:2] if other and seed.outputs else ()
    )
    row = Row(
        seed=seed.id,
        device=device,
        status=outcome.status.value,
        cause=finding.cause,
        original=outcome.original_label,
        deployed=outcome.deployed_label,
        label=seed.label,
        original_margin=_number(outcome.original_margin),
        deployed_margin=_number(outcome.deployed_margin),
        severity=severity,
        l2=_number(outcome.l2),
        linf=outcome.linf,
        search_queries=outcome.search_queries,
        confirmation_queries=outcome.confirmation_queries,
        seconds=_number(outcome.seconds),
        confirmed=outcome.confirmed,
        words=describe_last_mutations(outcome.mutations, STEPS_SHOWN),
        detail=outcome.detail,
        scores=answers.scores,
        snr_db=_number(outcome.snr_db),
        disagreement=_number(outcome.disagreement),
        transcripts=answers.transcripts,
        difference=answers.difference,
        detections=answers.detections,
        values=answers.values,
        command=finding.command,
    )
    pairs = answers.pairs or (pair_key(outcome.original_label, outcome.deployed_label),)
    return Card(
        row,
        (pairs[0], device, outcome.status.value),
        -1.0 if severity is None else severity,
        seed.sample,
        outcome.trigger,
        pairs=pairs,
        maps=tuple(map(_media, answers.maps)),
    )


def _shown_answers(
    original: Output | None, deployed: Output | None, seed: Sequence[Output | None]
) -> ShownAnswers:
    """Return what a card shows of both answers; `seed` are those to the seed, if it is another."""
    if original is not None and deployed is not None:
        return common_kind(original, deployed).card(original, deployed, seed)
    answer = deployed if original is None else original
    if answer is None:
        return ShownAnswers()
    return ShownAnswers(scores=kind_of_answer(answer).top_scores(original, deployed))


def _media(picture: Picture) -> Media:
    pixels, palette = picture
    data = png(pixels[:, :, None]) if palette is None else indexed_png(pixels, palette)
    return Media(data, "image/png", "png")


def by_importance(cards: Sequence[Card]) -> list[int]:
    """Return the cards' numbers: the most severe of each group, then the second of each, and so on.

    A group are those of one pair of labels, first words that differ or first kind and class,
    device and status.
    """
    groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number in sorted(range(len(cards)), key=lambda number: -cards[number].severity):
        groups[cards[number].group].append(number)
    ranked = [
        (cards[number].rank, rank, -cards[number].severity, number)
        for numbers in groups.values()
        for rank, number in enumerate(numbers)
    ]
    return [number for *_, number in sorted(ranked)]


def _number(value: float | None) -> float | None:
    """Return a number in five digits; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")


_FACETS = ("pair", "device", "cause", "status", "state")


@dataclass
class Collected:
    """The findings as cards, what they are filtered by, and the figures of all searches.

    `facets` are the gallery's filters with their numbers of findings; "state" is that of a replay.
    `worst` is the most severe trigger of all, with its severity.
    """

    cards: list[Card] = field(default_factory=list)
    facets: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in _FACETS}
    )
    worst: tuple[float, Finding] | None = None
    searches: SearchFigures = field(default_factory=SearchFigures)

    def add(self, card: Card) -> None:
        """Add a card."""
        self.cards.append(card)
        _, device, status = card.group
        state = [card.row.replayed["state"]] if card.row.replayed else []
        values = card.pairs, [device], [card.row.cause], [status], state
        for name, value in zip(_FACETS, values, strict=True):
            self.facets[name].update(value)


def collect(
    results: Iterable[Finding],
    card: Callable[[Finding], Card | None] = found_card,
    *,
    by_disagreement: bool = False,
) -> Collected:
    """Gather what the page shows; the outcomes come in the order of the seeds. `card` makes the
    cards.

    The severest are those with the largest margins, or `by_disagreement` those furthest apart.
    """
    collected = Collected()
    for one in results:
        made = card(one)
        if one.outcome.status in TRIGGERS:
            _add_trigger(collected, one, made, by_disagreement)
        else:
            collected.searches.add_end(one.outcome)
        if made is not None and by_disagreement:
            apart = made.row.disagreement
            made = made._replace(severity=-1.0 if apart is None else apart)
        if made is not None:
            collected.add(made)
    return collected


def _add_trigger(
    collected: Collected, one: Finding, card: Card | None, by_disagreement: bool
) -> None:
    outcome = one.outcome
    is_told = card is not None and (card.row.transcripts, card.row.difference) != (None, None)
    if outcome.original_label is not None and outcome.deployed_label is not None:
        is_told = True
        collected.searches.pairs[outcome.original_label, outcome.deployed_label] += 1
    severe = outcome.disagreement if by_disagreement else outcome.severity
    severity = -1.0 if severe is None else severe
    worst = collected.worst
    if is_told and (worst is None or severity > worst[0]):
        collected.worst = severity, one
    if outcome.status is Status.FOUND:
        collected.searches.add_found(outcome)


MOST_PAIRS = 500
"""Number of pairs of labels to filter by, the most frequent ones."""

_MOST_LISTED = 20


def facets_of(
    collected: Collected, kind: AnswerKind[Any], name: Name
) -> dict[str, list[tuple[str, str, int]]]:
    """Return the choices of each filter: value, words and count, the most frequent first."""
    facets = {
        name_: [(value, value, count) for value, count in counts.most_common()]
        for name_, counts in collected.facets.items()
    }
    facets["pair"] = [
        (
            value,
            kind.report_words.unpaired if value == "none" else kind.pair_words(value, name),
            count,
        )
        for value, _, count in facets["pair"][:MOST_PAIRS]
    ]
    facets["status"] = [
        (value, STATUS_WORDS.get(value, value), count) for value, _, count in facets["status"]
    ]
    facets["state"] = [
        (state, words_, collected.facets["state"][state])
        for state, words_ in STATE_WORDS.items()
        if collected.facets["state"][state]
    ]
    facets["device"] = [(value, value or "unknown", count) for value, _, count in facets["device"]]
    return facets


def listed(collected: Collected, name: Name, *, replayed: bool) -> Table:
    """Return the severest findings, for readers without scripts."""

    def answer(model: str) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            if row.difference is not None:
                return ""
            if row.transcripts:
                return "".join(part for part, _ in row.transcripts[model])
            return name(getattr(row, model))

        return text

    def state(row: Row) -> str:
        return row.replayed["words"] if row.replayed else STATUS_WORDS.get(row.status, row.status)

    columns = (
        Column("input" if replayed else "seed", 0, lambda row: row.seed, text=True),
        Column(
            "difference",
            0,
            lambda row: with_names(row.difference or "", name),
            text=True,
            optional=True,
        ),
        Column("original", 0, answer("original"), text=True, optional=True),
        Column("deployed", 0, answer("deployed"), text=True, optional=True),
        Column("state" if replayed else "status", 0, state, text=True),
        Column("device", 0, lambda row: row.device, text=True, optional=True),
        Column("smaller margin", 0, lambda row: margin_text(row.severity)),
        Column("L2", 0, lambda row: number_text(row.l2)),
        Column("to reproduce", 0, lambda row: row.command, text=True),
    )
    ranked = sorted(collected.cards, key=lambda card: (card.rank, -card.severity))
    return Table(columns, [card.row for card in ranked[:_MOST_LISTED]])


class ReplayCards:
    """Makes the cards of a replay; `store` is the replay's, `name` returns a class's name.

    `seeds` is the campaign that the inputs were found in, None where it is not there any more.
    """

    def __init__(
        self,
        store: Store,
        summary: ReplaySummary,
        seeds: Store | None,
        name: Name,
    ) -> None:
        self._store = store
        self._seeds = seeds
        self._name = name
        self._inputs = {one.place: one for one in summary.inputs}
        wanted = {one.seed_id for one in summary.inputs if one.kind == "trigger"}
        self._samples = (
            {one.id: one.sample for one in seeds.seeds() if one.id in wanted} if seeds else {}
        )

    def card(self, finding: Finding) -> Card | None:
        """Return the card of an input, None for one that agrees as before."""
        one = self._inputs.get(finding.outcome.place)
        if one is None or one.state not in STATE_WORDS:
            return None
        made = card(_now(finding, one))
        made.row.replayed = {
            "state": one.state,
            "kind": one.kind,
            "seed": one.seed_id,
            "words": replayed_words(one, self._name),
        }
        for answers in (made.row.transcripts, made.row.detections):
            if answers is not None:
                answers["seed"] = None  # what is a seed in a replay's folder is the input itself
        pair, device, _ = made.group
        seed = self._samples.get(one.seed_id, one.sample) if one.kind == "trigger" else one.sample
        return made._replace(
            group=(pair, device, one.state),
            rank=list(STATE_WORDS).index(one.state),
            seed=seed,
            trigger=one.sample,
        )

    def read(self, digest: str) -> Sample:
        """Return a sample of the replay, or of the campaign. Raises StoreError."""
        try:
            return self._store.get_sample(digest)
        except StoreError:
            if self._seeds is None:
                raise
            return self._seeds.get_sample(digest)


@contextmanager
def seeds_of(store: Store) -> Iterator[Store | None]:
    """Open a replay's campaign and the replays in between; None for a corpus or if deleted."""
    with ExitStack() as stack:
        yield _found_in(store, stack)


def _found_in(store: Store, stack: ExitStack) -> Store | None:
    for _ in range(_MOST_SOURCES):
        source = stored_replay(store).source
        if source.kind == "corpus":
            return None
        try:
            store = stack.enter_context(open_store(Path(source.folder)))
        except StoreError:
            return None
        if store.id != source.campaign:
            return None
        if not store.state.is_replay:
            return store
    return None


def _now(finding: Finding, one: ReplayedInput) -> Finding:
    """Return a finding with both models' present answers and its search's distance."""
    outcome = finding.outcome
    original, deployed = outcome.original, outcome.deployed
    if deployed is None and finding.seed.outputs is not None:
        original, deployed = finding.seed.outputs.original, finding.seed.outputs.deployed
    present = replace(
        outcome,
        original=original,
        deployed=deployed,
        original_label=one.original_label,
        deployed_label=one.deployed_label,
        device_name=one.device,
        l2=one.l2 if one.kind == "trigger" else None,
        linf=None,
        snr_db=None,
    )
    return replace(finding, outcome=present)
