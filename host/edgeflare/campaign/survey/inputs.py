"""The inputs of a campaign's survey: how they are made, and made again."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial

from edgeflare.errors import StoreError, UsageError
from edgeflare.store import Store, SurveyRecord
from edgeflare.survey import PARAMS_ERRORS, Family, families_for
from edgeflare.survey.proposals import CHAIN, Chain
from edgeflare.types import Sample

_FAMILIES = "families"
"""The fact that names the families that a survey began with."""


class SurveyInputs:
    """Makes the inputs of one campaign's survey.

    `families` are those that its survey began with; before it begins those of `names`, or all for
    its kind of input. Raises UsageError where one isn't installed. Without `names` (None), as for
    reports, they are those that can be loaded.
    """

    def __init__(self, store: Store, names: Sequence[str] | None = None) -> None:
        self._store = store
        self.families = _families(store, names)

    def keep_families(self) -> None:
        """Store the families that the survey begins with, for when it is resumed."""
        if self._store.fact(_FAMILIES) is None:
            self._store.set_fact(_FAMILIES, list(self.families))

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
        what = f"the input {answer.number} of the survey from seed {answer.seed_id!r}"
        family = self._family(answer)
        if family is None:
            raise StoreError(
                f"{what} in {self._store.folder} can't be made again: there is no family "
                f"{answer.family!r}"
            )
        try:
            sample = family.apply(self.seed(answer), answer.params, self.partners)
        except PARAMS_ERRORS as error:
            raise StoreError(
                f"{what} in {self._store.folder} can't be made again: the family "
                f"{answer.family!r} has other parameters here: {error}"
            ) from error
        if self._store.sample_digest(sample) != answer.sample:
            raise StoreError(
                f"{what} in {self._store.folder} can't be made again: the family "
                f"{answer.family!r} makes another input here than it did then"
            )
        return sample

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
        if answer.family != CHAIN:
            return self.families.get(answer.family)
        known = all(name in self.families for name in family_names(answer))
        return Chain(self.families) if known else None

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


def _families(store: Store, names: Sequence[str] | None) -> Mapping[str, Family]:
    first = None if store.sample_rate else next(iter(store.seed_samples()), None)
    make = partial(
        families_for,
        "audio" if store.sample_rate else "image",
        channels=None if first is None else first.shape[-1],
        rate=store.sample_rate,
    )
    if names is None:
        try:
            return make()
        except UsageError:  # a user's operator that can't be loaded
            return make(users=False)
    begun = store.fact(_FAMILIES)
    try:
        return make(names if begun is None else begun)
    except UsageError as error:
        if begun is None:
            raise
        raise UsageError(
            f"{error}; the survey of {store.folder} began with other families: install the "
            "operators that it had then"
        ) from error
