"""The inputs of a campaign's survey: how they are made, and made again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from edgeflare.errors import StoreError, UsageError
from edgeflare.store import Store, SurveyRecord
from edgeflare.store.state import StoredFault
from edgeflare.survey import PARAMS_ERRORS, Family, families_for
from edgeflare.survey.proposals import CHAIN, Chain
from edgeflare.types import Sample
from edgeflare.words.campaign import NEARLY_EVERYWHERE


class SurveyInputs:
    """Makes the inputs of one campaign's survey.

    `families` are those stored by `begin`, of those that can be loaded here.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.families = _families(store, loadable=True)

    @classmethod
    def begin(cls, store: Store, names: Sequence[str]) -> "SurveyInputs":
        """Return the inputs of a survey that asks: of the families it began with.

        Those are stored: the named ones, or all for the campaign's kind of input. Raises UsageError
        for an unknown name, and where one that it began with can't be loaded any more.
        """
        stored = store.state.families
        if stored is None:
            store.state.families = list(_families(store, names))
        else:
            try:
                _families(store, stored)
            except UsageError as error:
                raise UsageError(
                    f"the survey of {store.folder} can't go on with the families that it began "
                    f"with: {error}; install the distribution that it had then, and resume it"
                ) from error
        return cls(store)

    @cached_property
    def partners(self) -> Sequence[Sample]:
        """The inputs that others are mixed with: the first of the source, whatever its limit."""
        from edgeflare.campaign.seeds import partners  # imports OpenCV, which reports don't need

        return tuple(partners(self._store))

    def sample(self, answer: SurveyRecord) -> Sample:
        """Return the input of an answer: as it is stored, else made again of its parameters.

        Raises StoreError where it can't be made again as it was.
        """
        if self._store.has_sample(answer.sample):
            return self._store.get_sample(answer.sample)
        return self.make(answer)

    def make(self, answer: SurveyRecord) -> Sample:
        """Return the input of an answer, made again of its parameters.

        Raises StoreError where it can't be made again as it was.
        """
        family, name = self._family(answer), answer.family
        if family is None:
            raise self._not_made(answer, f"there is no family {name!r}")
        try:
            sample = family.apply(self.seed(answer), answer.params, self.partners)
        except PARAMS_ERRORS as error:
            raise self._not_made(
                answer, f"the family {name!r} has other parameters here: {error}"
            ) from error
        if self._store.sample_digest(sample) != answer.sample:
            raise self._not_made(
                answer, f"the family {name!r} makes another input here than it did then"
            )
        return sample

    def _not_made(self, answer: SurveyRecord, why: str) -> StoreError:
        return StoreError(
            f"the input {answer.number} of the survey from seed {answer.seed_id!r} in "
            f"{self._store.folder} can't be made again: {why}"
        )

    def seed(self, answer: SurveyRecord) -> Sample:
        """Return the sample of the seed that an input was made from."""
        return self._store.get_sample(self.seed_digest(answer))

    def seed_digest(self, answer: SurveyRecord) -> str:
        """Return the digest of the seed that an input was made from."""
        return self._seeds[answer.seed_id]

    def words(self, answer: SurveyRecord) -> str:
        """Return what was done to the seed, in words; the family's name where it has none."""
        family = self._family(answer)
        if family is None:
            return answer.family
        try:
            return family.words(answer.params)
        except PARAMS_ERRORS:
            return answer.family

    def _family(self, answer: SurveyRecord) -> Family | Chain | None:
        if answer.family == CHAIN:
            return Chain(self.families)
        return self.families.get(answer.family)

    @cached_property
    def _seeds(self) -> Mapping[str, str]:
        return {seed.id: seed.sample for seed in self._store.seeds()}


def family_names(answer: SurveyRecord) -> list[str]:
    """Return the families that made an input one after the other, each once."""
    if answer.family != CHAIN:
        return [answer.family]
    try:
        return list(dict.fromkeys(str(step["family"]) for step in answer.params["steps"]))
    except PARAMS_ERRORS:  # a damaged row
        return [CHAIN]


def _families(
    store: Store, names: Sequence[str] = (), *, loadable: bool = False
) -> Mapping[str, Family]:
    """Return the named families, or all; `loadable`: those of the store that can be loaded."""
    rate = store.sample_rate
    find = partial(
        families_for,
        "image" if rate is None else "audio",
        channels=None if rate is not None else _channels(store),
        rate=rate,
    )
    if not loadable:
        return find(names)
    found = find(skip_broken=True)
    stored = store.state.families
    return found if stored is None else {name: found[name] for name in stored if name in found}


def _channels(store: Store) -> int | None:
    """Return the channels of the seeds, which are those that the original takes; None without any.

    They are read from the database, so that figures need no sample.
    """
    known: Any = store.models.get("original", {}).get("input")
    if isinstance(known, dict) and isinstance(channels := known.get("channels"), int):
        return channels
    first = next(iter(store.seed_samples()), None)
    return None if first is None else int(first.shape[-1])


_FEWEST = 5
"""Number of different fresh inputs within a condition that must deviate, for a fault."""
_FEWEST_SEEDS = 2
"""Number of seeds that these must be made from."""


_NEARLY_ALL = 0.75
"""A condition within which so many of a pursuit's inputs lie tells nothing. Half of the inputs of
its rounds and checks lie outside by design, so that it holds for about 0.9 of the survey's."""


def confirmed_faults(
    store: Store,
) -> Iterator[tuple[str, int, StoredFault, Sequence[SurveyRecord]]]:
    """Yield the faults of which enough fresh inputs deviate; equal inputs count once.

    Each has its replica, its number, which counts from 1 for each replica anew, what is stored, and
    its deviating inputs. Where its condition holds for nearly all inputs, the words say so, and it
    has no `thresholds`.
    """
    stored = store.state.faults or {}
    for replica, found in sorted(stored.items()):
        records = {one.key: one for one in store.survey(replica, deviating=True)}
        number = 0
        for entry in found:
            members = [records[key] for key in entry.inputs if key in records]
            fresh = {member.sample: member.seed_id for member in members if member.phase == "check"}
            many = len(fresh) >= _FEWEST and len({*fresh.values()}) >= _FEWEST_SEEDS
            if entry.words and entry.checked is not None and many:
                number += 1
                yield replica, number, _told(entry, found[0]), members


def _told(entry: StoredFault, first: StoredFault) -> StoredFault:
    """Return a fault without a condition that tells nothing; the first one's counts are of all."""
    if entry.seen is None or first.seen is None:
        return entry
    asked = first.seen.inside + first.seen.outside
    if entry.seen.inside < _NEARLY_ALL * asked:
        return entry
    words = NEARLY_EVERYWHERE.format(entry.seen.inside, asked)
    return replace(entry, words=words, thresholds=())
