"""The inputs of a campaign's survey: how they are made, and made again."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice

from edgeflare.errors import StoreError
from edgeflare.store import Store, SurveyRecord
from edgeflare.survey.families import Family, families_for
from edgeflare.types import Sample

PARTNERS = 32
"""Number of inputs that others are mixed with."""


class SurveyInputs:
    """Makes the inputs of one campaign's survey.

    `families` are those named, or all for the campaign's kind of input; raises UsageError for an
    unknown name.
    """

    def __init__(self, store: Store, names: Sequence[str] = ()) -> None:
        self._store = store
        self.families: Mapping[str, Family] = families_for(
            "image" if store.sample_rate is None else "audio", names
        )

    @cached_property
    def partners(self) -> Sequence[Sample]:
        """The inputs that others are mixed with: the first of the campaign."""
        return tuple(islice(self._store.seed_samples(), PARTNERS))

    def sample(self, answer: SurveyRecord) -> Sample:
        """Return the input of an answer: as it is stored, else made again of its parameters.

        Raises StoreError where it can't be made again as it was.
        """
        if self._store.has_sample(answer.sample):
            return self._store.get_sample(answer.sample)
        what = f"the input {answer.number} of the survey from seed {answer.seed_id!r}"
        family = self.families.get(answer.family)
        if family is None:
            raise StoreError(
                f"{what} in {self._store.folder} can't be made again: there is no family "
                f"{answer.family!r}"
            )
        seed = self._store.get_sample(self._seeds[answer.seed_id])
        sample = family.apply(seed, answer.params, self.partners)
        if self._store.sample_digest(sample) != answer.sample:
            raise StoreError(
                f"{what} in {self._store.folder} can't be made again: the family "
                f"{answer.family!r} makes another input here than it did then"
            )
        return sample

    def words(self, answer: SurveyRecord) -> str:
        """Return what was done to the seed, in words."""
        family = self.families.get(answer.family)
        return answer.family if family is None else family.words(answer.params)

    @cached_property
    def _seeds(self) -> Mapping[str, str]:
        return {seed.id: seed.sample for seed in self._store.seeds()}
