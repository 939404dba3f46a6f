"""Going after the deviations that a survey saw: rounds on the devices, and the faults found."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from edgeflare.answers.metrics import top_label
from edgeflare.answers.oracles import certainty
from edgeflare.answers.parts import Margins
from edgeflare.campaign.events import Stage, Step
from edgeflare.campaign.queries.stage import QueryStage
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.campaign.survey.stage import survey_records
from edgeflare.errors import InferenceFailedError, StoreError
from edgeflare.models import OriginalModel
from edgeflare.scheduler import Job, SurveyJob, SurveyResult, chain_seed
from edgeflare.store import SeedRecord, Store, SurveyRecord
from edgeflare.store.records import SurveyKey
from edgeflare.store.samples import LazySamples
from edgeflare.store.state import FaultThreshold, StoredFault
from edgeflare.survey import Drawn
from edgeflare.survey.features import FeatureSet
from edgeflare.survey.proposals import Derivation, Inputs
from edgeflare.survey.pursuit import (
    Answered,
    PursuitResult,
    Reply,
    Request,
    Round,
    Screen,
    Screened,
    pursue,
)
from edgeflare.survey.sampling import Surveyed, SurveyPlan, asked
from edgeflare.types import Output, Query, Sample, with_row
from edgeflare.words import campaign as words

_PURPOSE = "pursuit"
_UNUSABLE = Screened(-1.0, None)
_Inputs: TypeAlias = tuple[SeedRecord, list[Surveyed]]
"""The inputs of one seed that are not answered."""


class PursuitStage(QueryStage[_Inputs, SurveyResult[SeedRecord]]):
    """The pursuits after a finished survey, of which every replica has its own.

    A round of all of them is asked at once, and the next one begins when it is answered; the faults
    that a pursuit finds are stored at its end.
    """

    name = "pursuit"
    is_limited = may_remain = True

    def begin(self) -> bool:
        if self._config.survey.pursuit == 0:
            return False
        self._kind = self._store.kind
        ended = self._store.state.faults or {}
        pursuits = (
            _Pursuit(replica, self._store, self._run.original, self._config)
            for replica in self._replicas
            if replica not in ended and self._is_surveyed(replica)
        )
        self._active = {pursuit.replica: pursuit for pursuit in pursuits if pursuit.answered}
        if not self._active:
            return False
        self._reporter(Stage("pursuit", words.AFTER_SURVEY))
        return self.again()

    def again(self) -> bool:
        """Go on to each pursuit's next round; store the faults of those that have ended."""
        for pursuit in self._active.values():
            pursuit.proceed()
        for replica, pursuit in tuple(self._active.items()):
            if pursuit.faults is not None:
                ended = self._store.state.faults or {}
                self._store.state.faults = {**ended, replica: pursuit.faults}
                del self._active[replica]
        return bool(self._active)

    def pending(self, replica: str) -> Iterator[_Inputs]:
        pursuit = self._active.get(replica)
        return iter(()) if pursuit is None else pursuit.open_inputs()

    def job(self, item: _Inputs, replica: str) -> SurveyJob[SeedRecord]:
        seed, inputs = item
        return SurveyJob(
            seed,
            partial(_plan, inputs),
            self._oracle,
            self._config.search.confirmations,
            self._store,
            len(inputs),
            self._config.survey.sampling.sure,
            held_bytes=sum(one.sample.nbytes for one in inputs),
            row=self._rows.get(seed.id),
        )

    def write(self, result: SurveyResult[SeedRecord], device: str) -> None:
        pursuit = self._active[self._replica_of[device]]
        records, cost = survey_records(
            result,
            self._store,
            replica=pursuit.replica,
            device_name=device,
            kind=self._kind,
            phase=pursuit.round.phase,
            round=pursuit.number,
            first=pursuit.first_numbers[result.key.id],
        )
        cost = replace(cost, host_only_queries=pursuit.take_screened(result.key.id))
        self._store.add_survey(records, [cost])
        pursuit.add(records)

    def tick(self, under_way: Sequence[Job[Any]] = ()) -> None:
        self._reporter(Step(sum(pursuit.queries for pursuit in self._active.values())))

    def remaining(self) -> str:
        return words.PURSUIT_UNFINISHED

    def _is_surveyed(self, replica: str) -> bool:
        """Whether the survey of every seed is finished, and has an answer."""
        if next(self._store.survey(replica, "survey"), None) is None:
            return False
        done = self._store.surveyed_seed_ids(replica)
        return all(seed.outputs is None or seed.id in done for seed in self._store.seeds(replica))


def _plan(inputs: Sequence[Surveyed]) -> SurveyPlan:
    """Ask the deployed model about inputs whose original answers are known."""
    answered: list[Surveyed] = []
    for one in inputs:
        answered += ((yield from asked(one)),)
    return answered


class _Pursuit:
    """One replica's pursuit: from stored answers as far as they go, then from new ones.

    `answered`: the surveyed inputs that it begins with. `round` is the one that is open, `number`
    its place; `first_numbers`: of each of its seeds the `number` of the first of its records.
    """

    round: Round
    number: int
    first_numbers: dict[str, int]

    def __init__(
        self, replica: str, store: Store, original: OriginalModel, config: CampaignConfig
    ) -> None:
        self.replica = replica
        self.faults: list[StoredFault] | None = None
        self._store = store
        self._rows = store.state.seed_rows
        self._original = original
        self._made = SurveyInputs.begin(store, config.survey.families)
        self._seeds = [seed for seed in store.seeds(replica) if seed.outputs is not None]
        self._places = {seed.id: place for place, seed in enumerate(self._seeds)}
        stored = list(store.survey(replica))
        self._known = {one.key: one for one in stored if one.phase != "survey"}
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._screened = 0
        self.number = -1
        self.queries = 0
        classes = store.kind.class_count(stored[0].original)
        samples = LazySamples(store.get_sample, [seed.sample for seed in self._seeds])
        self._features = FeatureSet(samples[0].shape, store.sample_rate, classes)
        self._asked: list[SurveyKey] = []
        self.answered: list[Answered] = []
        for one in stored:
            if one.phase == "survey" and one.deployed is not None:
                self.answered.append(self._as_answered(one))
                self._asked.append(one.key)
        self._run = pursue(
            self.answered,
            Inputs(samples, self._made.families, self._made.partners),
            self._features,
            config.survey.pursuit_queries(len(self._seeds)),
            config.survey.sure,
            np.random.default_rng(chain_seed(config.search.seed, "", _PURPOSE)),
        )
        self._replies: Sequence[Any] | None = None

    def proceed(self) -> None:
        """Go on to the next round with unanswered inputs, or to the end."""
        while self.faults is None:
            try:
                request: Request = (
                    next(self._run) if self._replies is None else self._run.send(self._replies)
                )
            except StopIteration as stop:
                self.faults = [self._fault(one) for one in stop.value]
                return
            if isinstance(request, Screen):
                self._replies = self._screen(request)
                continue
            self._open(request)
            if next(self.open_inputs(), None) is not None:
                return
            self._close()

    def open_inputs(self) -> Iterator[_Inputs]:
        """Yield the round's inputs that are not answered, those of one seed together."""
        inputs: defaultdict[str, list[Surveyed]] = defaultdict(list)
        for key, made, sample, original in zip(
            self._keys, self.round.inputs, self.round.samples, self.round.originals, strict=True
        ):
            if key not in self._known:
                assert original is not None  # noqa: S101 - it was screened
                drawn = Drawn(made.family, made.severity, made.params)
                inputs[key[0]].append(Surveyed(drawn, sample, original, None))
        for seed_id, some in inputs.items():
            yield self._seeds[self._places[seed_id]], some

    def add(self, records: Sequence[SurveyRecord]) -> None:
        """Add answers of the round; where they are the last ones, the round is closed."""
        self._known.update({record.key: record for record in records})
        if all(key in self._known for key in self._keys):
            self._close()

    def take_screened(self, seed_id: str) -> int:
        """Return how many inputs the original was given for the round, to count at this seed.

        All of them at the seed of the round's first input, whichever is answered first: 0 at others.
        """
        if seed_id != self._keys[0][0]:
            return 0
        count, self._screened = self._screened, 0
        return count

    def _open(self, request: Round) -> None:
        self.round = request
        self.number += 1
        self.first_numbers = {}
        self._keys: list[SurveyKey] = []
        for made, sample in zip(request.inputs, request.samples, strict=True):
            seed_id = self._seeds[made.seed].id
            number = self._numbers[seed_id, request.phase]
            self._numbers[seed_id, request.phase] += 1
            self.first_numbers.setdefault(seed_id, number)
            key = (seed_id, request.phase, number)
            self._check_stored(key, sample)
            self._keys.append(key)
        if self._keys and self._keys[0] in self._known:
            self._screened = 0  # counted when this answer was stored

    def _check_stored(self, key: SurveyKey, sample: Sample) -> None:
        """Raise StoreError where an answer is stored to another input than this."""
        known = self._known.get(key)
        if known is not None and known.sample != self._store.sample_digest(sample):
            raise StoreError(
                f"{self._store.folder}: the stored answers of the pursuit are to other inputs than "
                f"it asks about now (input {key[2]} of seed {key[0]!r}): a family of the survey or "
                "edgeflare changed since; go back to the version that the campaign began with and "
                "resume it, or start a new campaign"
            )

    def _close(self) -> None:
        """Make the replies to the round of its records."""
        records = [self._known[key] for key in self._keys]
        self.queries += len(records)
        self._asked += [record.key for record in records if record.deployed is not None]
        self._replies = [None if record.deployed is None else _reply(record) for record in records]

    def _screen(self, request: Screen) -> list[Screened]:
        self._screened += len(request.samples)
        asked = [
            with_row(sample, self._rows.get(self._seeds[place].id))
            for sample, place in zip(request.samples, request.seeds, strict=True)
        ]
        return [
            _UNUSABLE
            if output is None
            else Screened(certainty(output) or 0.0, top_label(output), output)
            for output in self._answered(asked)
        ]

    def _answered(self, samples: Sequence[Query]) -> list[Output | None]:
        """Return the original's answers; None where it can't answer."""
        try:
            return list(self._original.scores(samples))
        except InferenceFailedError:
            if len(samples) == 1:
                return [None]
        return [answer for sample in samples for answer in self._answered([sample])]

    def _as_answered(self, one: SurveyRecord) -> Answered:
        made = Derivation(self._places[one.seed_id], one.family, one.severity, one.params)
        features = self._features.of(self._made.make(one), top_label(one.original))
        return Answered(made, features, *_reply(one), one.original)

    def _fault(self, one: PursuitResult) -> StoredFault:
        thresholds = one.condition.thresholds if one.condition else ()
        features = self._features.features
        return StoredFault(
            words=one.condition.words(features) if one.condition else "",
            thresholds=[
                FaultThreshold(
                    features[two.feature].name, two.below, two.at, features[two.feature].label
                )
                for two in thresholds
            ],
            repeats=one.repeats,
            checked=one.checked,
            seen=one.seen,
            inputs=[self._asked[place] for place in one.members],
        )


def _reply(one: SurveyRecord) -> Reply:
    """Return what an answer amounts to; its severity is that of the margins that are known."""
    severity = Margins(one.original_margin, one.deployed_margin).smaller or 0.0
    return Reply(one.confident_deviation, severity, one.total_variation or 0.0)
