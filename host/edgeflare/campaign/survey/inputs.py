"""The inputs of a campaign's survey: how they are made, and made again."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from edgeflare.errors import StoreError
from edgeflare.store import Store, SurveyRecord
from edgeflare.survey import PARAMS_ERRORS, Family, families_for
from edgeflare.survey.proposals import CHAIN, Chain
from edgeflare.types import Sample


class SurveyInputs:
    """Makes the inputs of one campaign's survey.

    `families` are those named, or all for the campaign's kind of input; raises UsageError for an
    unknown name.
    """

    def __init__(self, store: Store, names: Sequence[str] = ()) -> None:
        self._store = store
        self.families = _families(store, names)

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
        known = all(step["family"] in self.families for step in answer.params["steps"])
        return Chain(self.families) if known else None

    @cached_property
    def _seeds(self) -> Mapping[str, str]:
        return {seed.id: seed.sample for seed in self._store.seeds()}


def _families(store: Store, names: Sequence[str]) -> Mapping[str, Family]:
    if store.sample_rate is not None:
        return families_for("audio", names, rate=store.sample_rate)
    first = next(iter(store.seed_samples()), None)
    return families_for("image", names, channels=None if first is None else first.shape[-1])
