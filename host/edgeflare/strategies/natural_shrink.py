"""Shrinks natural inputs in the parameters of what made them: "JPEG quality 41", not 12.

An input of the survey, or of natural corruptions alone, would be natural no more were pixels taken
back. So a step of several is left out, and each parameter is moved towards the value that changes
least, all together and then one after the other, while the models still deviate.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgeflare.answers.oracles import margins
from edgeflare.errors import UsageError
from edgeflare.metrics import l2
from edgeflare.strategies.operators import operators_named
from edgeflare.survey import PARAMS_ERRORS, Family, families_for
from edgeflare.survey.family import CorruptionFamily
from edgeflare.types import Answer, Ask, Decision, Outcome, Sample, Search, Seed
from edgeflare.words.search import ANOTHER_HERE
from edgeflare_mutators import Corruption, kind_of

Steps = tuple[tuple[str, Mapping[str, Any]], ...]
"""Names of families or corruptions, in the order in which they are applied, with their parameters."""
_BISECTIONS = 5


def steps_in(mutations: Sequence[Mapping[str, Any]]) -> Steps:
    """Return the steps that an `Outcome` has as its mutations."""
    return tuple((str(one["operator"]), one["params"]) for one in mutations)


class NaturalChange(NamedTuple):
    """What made an input: its steps, and the margin that the original must have on a weaker one.

    `of_survey`: the steps are families of the survey, else natural corruptions of a search.
    """

    steps: Steps
    least_margin: float
    of_survey: bool

    def families(self, sample: Sample, rate: int | None) -> Mapping[str, Family]:
        """Return the families of the steps by name. Raises UsageError for one that is not here."""
        names = [name for name, _ in self.steps]
        if self.of_survey:
            kind = kind_of(sample)
            channels = sample.shape[-1] if kind == "image" else None
            return families_for(kind, names, channels=channels, rate=rate)
        return {
            name: CorruptionFamily(name, "plugin", one, rate)
            for name, one in operators_named(names).items()
            if isinstance(one, Corruption)
        }

    def words(self, families: Mapping[str, Family]) -> str:
        """Return the steps in words, such as "JPEG quality 41"."""
        return " + ".join(families[name].words(params) for name, params in self.steps)


def shrink_natural(
    seed: Seed, trigger: Sample, change: NaturalChange, partners: Sequence[Sample], budget: int
) -> Search:
    """Search the weakest change that still deviates; ask the device at most `budget` times."""
    try:
        search = _Weakening(seed, change, partners, budget)
    except UsageError as error:  # a corruption that is no longer installed
        return Outcome(None, reason=str(error))
    again = search.made(change.steps)
    if again is None or not np.array_equal(again, trigger):
        return Outcome(None, reason=ANOTHER_HERE)
    search.tried.add(trigger.tobytes())
    yield from search.run()
    return search.best or Outcome(trigger)


class _Weakening:
    def __init__(
        self, seed: Seed, change: NaturalChange, partners: Sequence[Sample], budget: int
    ) -> None:
        self._seed = seed
        self._families = change.families(seed.sample, seed.rate)
        self._partners = partners
        self._least_margin = change.least_margin
        self._steps = change.steps
        self._left = budget
        self.tried: set[bytes] = set()
        self.best: Outcome | None = None

    def made(self, steps: Steps) -> Sample | None:
        """Return the input that steps make of the seed input; None for parameters out of range."""
        sample = self._seed.sample
        try:
            for name, params in steps:
                sample = self._families[name].apply(sample, params, self._partners)
        except PARAMS_ERRORS:
            return None
        return sample

    def run(self) -> Generator[Ask, Answer, None]:
        """Leave steps out, then weaken all parameters together, then each, until none can be."""
        place = 0
        while len(self._steps) > 1 and place < len(self._steps):
            fewer = self._steps[:place] + self._steps[place + 1 :]
            place += not (yield from self._deviates(fewer))
        every = [
            (number, name)
            for number, (family, _) in enumerate(self._steps)
            for name, _ in self._families[family].neutral
        ]
        if every:
            yield from self._weaken(every)
        weakened = len(every) > 1
        while weakened:
            weakened = False
            for one in every:
                weakened = (yield from self._weaken([one])) or weakened

    def _weaken(self, which: Sequence[tuple[int, str]]) -> Generator[Ask, Answer, bool]:
        """Bisect the share of parameters' distances to what changes least; tell if one is less."""
        start, low, high = self._steps, 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            weaker = list(start)
            for number, name in which:
                family, params = weaker[number]
                weaker[number] = family, self._families[family].weaker(params, name, middle)
            if (yield from self._deviates(tuple(weaker))):
                high = middle
            else:
                low = middle
        return high < 1.0

    def _deviates(self, steps: Steps) -> Generator[Ask, Answer, bool]:
        """Whether the models deviate on what steps make, nearer than now; it is the best one then.

        The device is asked only where the original is sure enough, and once about each input.
        """
        sample = self.made(steps)
        now = self.made(self._steps)
        assert now is not None  # noqa: S101 - it was made before
        is_new = sample is not None and sample.tobytes() not in self.tried
        if sample is None or not is_new or self._left == 0:
            return False
        if not 0 < l2(self._seed.sample, sample) <= l2(self._seed.sample, now):
            return False
        if self._seed.kind.is_decided_by_label(self._seed):
            answer = yield Ask((sample,), of="original", best=self.best)
            scores = answer.outputs[0].original
            margin = 0.0 if scores is None else margins(scores, scores).original
            if margin is None or margin < max(self._least_margin, self._seed.margin_floor):
                return False
        self.tried.add(sample.tobytes())
        self._left -= 1
        answer = yield Ask((sample,), best=self.best)
        if answer.outputs[0].decision is not Decision.DEVIATION:
            return False
        self._steps = steps
        mutations = [{"operator": name, "params": dict(params)} for name, params in steps]
        self.best = Outcome(sample, mutations)
        return True
