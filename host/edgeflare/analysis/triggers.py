"""What was done to the seeds of the triggering inputs, gathered as outcomes pass by."""

from bisect import insort
from collections import Counter
from dataclasses import dataclass
from typing import Any

from edgeflare._internal.files import natural_key
from edgeflare.answers import text_of
from edgeflare.search.mutation_path import changing, corruption_names, last_words, step_words
from edgeflare.store import OutcomeRecord

_SHOWN = 10


@dataclass(frozen=True)
class TriggerFigures:
    """A triggering input: its seed, the device that searched for itself ("": a pool), both models' labels
    (class indices) or, of speech recognisers, their texts, and the steps from the seed to it in words, without those that
    change nothing; none where it was not found by mutations. `disagreement` is how far both answers are apart, see `edgeflare.distances`."""

    seed_id: str
    replica: str
    original_label: int | None
    deployed_label: int | None
    words: tuple[str, ...]
    original_text: str | None = None
    deployed_text: str | None = None
    disagreement: float | None = None

    def steps(self, most: int) -> str:
        """Return the last `most` of the steps as one text, and how many are before them; "" for none."""
        return last_words(self.words, most)


class TriggersSeen:
    """Takes the outcomes with a triggering input one by one; of them only the first few are kept."""

    def __init__(self) -> None:
        self._first: list[tuple[Any, OutcomeRecord]] = []
        self._corruptions: Counter[str] = Counter()

    def add(self, outcome: OutcomeRecord) -> None:
        """Take an outcome."""
        self._corruptions.update(corruption_names(outcome.mutations))
        insort(
            self._first,
            ((natural_key(outcome.seed_id), outcome.replica), outcome),
            key=lambda one: one[0],
        )
        del self._first[_SHOWN:]

    def first(self) -> tuple[TriggerFigures, ...]:
        """Return the first of them by their seeds' names, the numbers in names in their order."""
        return tuple(
            TriggerFigures(
                one.seed_id,
                one.replica,
                one.original_label,
                one.deployed_label,
                tuple(step_words(changing(one.mutations))),
                text_of(one.original),
                text_of(one.deployed),
                one.disagreement,
            )
            for _, one in self._first
        )

    def corruptions(self) -> dict[str, int]:
        """Return on how many triggering inputs each natural corruption was used, the most frequent first."""
        return dict(sorted(self._corruptions.items(), key=lambda one: (-one[1], one[0])))
