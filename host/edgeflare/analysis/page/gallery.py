"""The findings of a campaign as the compact data that the page's gallery is made of."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from edgeflare.analysis.findings import Finding
from edgeflare.analysis.formats.sentences import STEPS_SHOWN
from edgeflare.analysis.heard import Heard, WordChange, heard
from edgeflare.analysis.rows import has_input
from edgeflare.answers import text_of
from edgeflare.search.mutation_path import joined_words
from edgeflare.types import Output, Scores, Transcript

TOP_CLASSES = 5
MOST_SHOWN = 20_000
"""So many findings the gallery shows at most, the most severe of each group first."""

COLUMNS = (
    "seed",
    "device",
    "status",
    "cause",
    "original",
    "deployed",
    "label",
    "original_margin",
    "deployed_margin",
    "severity",
    "l2",
    "linf",
    "queries",
    "seconds",
    "confirmed",
    "words",
    "detail",
    "scores",
    "snr_db",
    "disagreement",
    "heard",
    "replayed",
    "command",
)
"""What a row of the data has, in this order; `SHOWN_COLUMNS` follow. Of an input of a replay ``replayed`` has
its state, its kind, its seed's id and what became of it in words; null for another finding. Of speech recognisers
``heard`` has the words that differ by pairs, the stretches of both texts, each with whether it differs, and both
models' texts on the seed where that is another input; null of classes."""

SHOWN_COLUMNS = (
    *("seed_picture", "trigger_picture", "difference_picture", "amplification"),
    *("seed_sound", "trigger_sound", "sound_seconds"),
)

STATUS_WORDS = {
    "found": "found by the search",
    "seed-deviates": "the seed input itself",
    "unstable": "unstable: it did not repeat",
    "nonfinite": "NaN or infinity in an output",
    "failed": "a model could not answer",
}


class Card(NamedTuple):
    """A finding in the gallery: its row of data, its group, and the digests of its pictures' samples.

    Cards of a lower `rank` come first, whatever their severity. `pairs` are what it is found by: the pair of
    labels, or every pair of words that differ.
    """

    row: list[Any]
    group: tuple[str, str, str]
    severity: float
    seed: str
    trigger: str | None
    rank: int = 0
    pairs: tuple[str, ...] = ("none",)


@dataclass
class Facets:
    """What the gallery can be filtered by, each with its number of findings; `state` is that of a replay."""

    pair: Counter[str] = field(default_factory=Counter)
    device: Counter[str] = field(default_factory=Counter)
    cause: Counter[str] = field(default_factory=Counter)
    status: Counter[str] = field(default_factory=Counter)
    state: Counter[str] = field(default_factory=Counter)

    def add(self, card: Card) -> None:
        """Count a card."""
        _, device, status = card.group
        self.pair.update(card.pairs)
        self.device[device] += 1
        self.status[status] += 1
        self.cause[card.row[COLUMNS.index("cause")]] += 1
        replayed = card.row[COLUMNS.index("replayed")]
        if replayed is not None:
            self.state[replayed[0]] += 1


def found_card(finding: Finding) -> Card | None:
    """Return the card of an outcome that has an input to show."""
    return card(finding) if has_input(finding.outcome) else None


def card(finding: Finding) -> Card:
    """Return a finding's card."""
    seed, outcome = finding.seed, finding.outcome
    severity = _number(outcome.severity)
    device = outcome.device_name or outcome.replica
    row: list[Any] = [
        seed.id,
        device,
        outcome.status.value,
        finding.cause,
        outcome.original_label,
        outcome.deployed_label,
        seed.label,
        _number(outcome.original_margin),
        _number(outcome.deployed_margin),
        severity,
        _number(outcome.l2),
        outcome.linf,
        [outcome.seed_queries, outcome.search_queries, outcome.confirmation_queries],
        _number(outcome.seconds),
        outcome.confirmed,
        joined_words(outcome.mutations, STEPS_SHOWN),
        outcome.detail,
        _top(outcome.original, outcome.deployed),
        _number(outcome.snr_db),
        _number(outcome.disagreement),
        None,
        None,
        finding.command,
    ]
    pairs: tuple[str, ...] = (pair_key(outcome.original_label, outcome.deployed_label),)
    both = heard(outcome.original, outcome.deployed)
    if both is not None:
        row[COLUMNS.index("heard")] = _texts(both, finding)
        pairs = tuple(dict.fromkeys(map(change_key, both.changes))) or pairs
    return Card(
        row,
        (pairs[0], device, outcome.status.value),
        -1.0 if severity is None else severity,
        seed.sample,
        outcome.trigger,
        pairs=pairs,
    )


def pair_key(original: int | None, deployed: int | None) -> str:
    """Return how the page calls a pair of labels, like ``4-9``; "none" where a model gave no label."""
    return "none" if original is None or deployed is None else f"{original}-{deployed}"


def change_key(change: WordChange) -> str:
    """Return how the page calls a word and what was heard instead, like ``no→go``."""
    return f"{change.original}→{change.deployed}"


def by_importance(cards: Sequence[Card]) -> list[int]:
    """Return the cards' numbers: the most severe of each group, then the second of each, and so on.

    A group are those of one pair of labels, or first words that differ, device and status.
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


def _texts(both: Heard, finding: Finding) -> dict[str, Any]:
    """Return the words that differ, both texts in stretches, and both models' texts on the seed."""
    texts = None
    if finding.outcome.trigger not in (None, finding.seed.sample) and finding.seed.outputs:
        texts = [text_of(output) for output in finding.seed.outputs[:2]]
    return {
        "changes": [list(change) for change in both.changes],
        "original": [[part.text, int(part.differs)] for part in both.original],
        "deployed": [[part.text, int(part.differs)] for part in both.deployed],
        "seed": texts,
    }


def _top(original: Output | None, deployed: Output | None) -> list[list[Any]]:
    """Return (class, original's score, deployed's score) for the top classes of either, the first first."""
    if isinstance(original, Transcript) or isinstance(deployed, Transcript):
        return []
    known = [scores for scores in (original, deployed) if scores is not None]
    chosen: dict[int, float] = {}
    for scores in known:
        for number in _largest(scores):
            chosen[number] = max(
                (float(one[number]) for one in known if math.isfinite(one[number])), default=0.0
            )
    order = sorted(chosen, key=lambda number: (-chosen[number], number))
    return [[number, _score(original, number), _score(deployed, number)] for number in order]


def _largest(scores: Scores) -> Iterable[int]:
    ranked = (-scores).argsort(kind="stable")[:TOP_CLASSES]  # NaN comes last
    return (int(number) for number in ranked)


def _score(scores: Scores | None, number: int) -> float | str | None:
    """Return a score, "NaN", "inf" or "-inf" where it is none, None where the model was not asked."""
    if scores is None:
        return None
    value = float(scores[number])
    if math.isfinite(value):
        return round(value, 5)
    return "NaN" if math.isnan(value) else str(value)


def _number(value: float | None) -> float | None:
    """Return a number in five digits; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")
