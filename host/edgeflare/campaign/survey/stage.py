"""The survey: what both models answer far from the seeds, before anything is searched."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgeflare.answers import AnswerKind
from edgeflare.campaign.events import Stage, Step
from edgeflare.campaign.queries.stage import QueryStage
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.scheduler import SurveyAnswer, SurveyJob, SurveyResult, chain_seed
from edgeflare.store import SeedRecord, Store, SurveyedSeed, SurveyRecord
from edgeflare.store.records import SurveyPhase
from edgeflare.survey.sampling import SurveyPlan, survey
from edgeflare.words import campaign as words

_PURPOSE = "survey"
"""What the random numbers of a survey are drawn for; those of a search are independent of them."""


class SurveyStage(QueryStage[SeedRecord, SurveyResult[SeedRecord]]):
    """The survey from every seed that both models answered."""

    name = "survey"
    scope = "seed"
    is_limited = may_remain = True

    def pending(self, replica: str) -> Sequence[SeedRecord]:
        done = self._store.surveyed_seed_ids(replica)
        return [
            seed
            for seed in self._seeds(replica)
            if seed.outputs is not None and seed.id not in done
        ]

    def begin(self) -> bool:
        if not (left := self.count()):
            return False
        self._kind = self._store.kind
        self._inputs = SurveyInputs.begin(self._store, self._config.survey.families)
        self._total = self._every_seed()
        self.done = self._total - left
        self._reporter(self.event())
        self.tick()
        return True

    def event(self) -> Stage:
        where = words.FAR_FROM_SEEDS.format(self._fleet.described(self._config))
        return Stage("survey", where, self._every_seed())

    def job(self, item: SeedRecord, replica: str) -> SurveyJob[SeedRecord]:
        config, inputs = self._config, self._inputs
        sample = self._store.get_sample(item.sample)
        number = chain_seed(config.search.seed, item.id, _PURPOSE)

        def plan() -> SurveyPlan:
            rng = np.random.default_rng(number)
            return survey(sample, rng, config.survey.sampling, inputs.families, inputs.partners)

        return SurveyJob(
            item,
            plan,
            self._oracle,
            config.search.confirmations,
            self._store,
            config.survey.queries,
            config.survey.sampling.sure,
            held_bytes=(2 * config.survey.queries + 1) * sample.nbytes,  # drawn, chosen, seed
            row=self._rows.get(item.id),
        )

    def write(self, result: SurveyResult[SeedRecord], device: str) -> None:
        records, cost = survey_records(
            result,
            self._store,
            replica=self._replica_of[device],
            device_name=device,
            kind=self._kind,
        )
        self._store.add_survey(records, [cost], keep_first=self._only is not None)

    def remaining(self) -> str:
        return words.NOT_SURVEYED.format(self._total - self.done, self._total)

    def shown(self, done: int) -> Step:
        return Step(min(self._store.seed_count(), self._store.survey_counts("survey").seeds))


def survey_records(
    result: SurveyResult[SeedRecord],
    store: Store,
    *,
    replica: str,
    device_name: str,
    kind: AnswerKind[Any],
    phase: SurveyPhase = "survey",
    round: int = 0,  # noqa: A002
    first: int = 0,
) -> tuple[list[SurveyRecord], SurveyedSeed]:
    """Return the records of a finished job, numbered from `first`, and of what it cost.

    `kind`: of the campaign's answers.
    """
    spent = result.counters
    cost = SurveyedSeed(
        seed_id=result.key.id,
        survey_queries=spent.survey,
        confirmation_queries=spent.confirmation,
        host_only_queries=spent.host_only,
        device_seconds=spent.device_seconds,
        device_name=device_name,
        detail=result.detail,
        replica=replica,
        phase=phase,
        round=round,
    )
    return [
        _record(answer, number, store, cost, kind)
        for number, answer in enumerate(result.answers, start=first)
    ], cost


def _record(
    answer: SurveyAnswer, number: int, store: Store, cost: SurveyedSeed, kind: AnswerKind[Any]
) -> SurveyRecord:
    one = answer.input
    is_answered = one.deployed is not None
    sure = kind.margins(one.original, one.deployed if is_answered else one.original)
    return SurveyRecord(
        seed_id=cost.seed_id,
        number=number,
        family=one.drawn.family,
        severity=one.drawn.severity,
        params=one.drawn.params,
        sample=store.sample_digest(one.sample),
        original=one.original,
        deployed=one.deployed,
        decision=answer.decision,
        original_margin=sure.original,
        deployed_margin=sure.deployed if kind.is_scored and is_answered else None,
        total_variation=kind.total_variation(one.original, one.deployed) if is_answered else None,
        confident_deviation=answer.is_confident,
        confirmed=answer.confirmed,
        device_name=cost.device_name,
        detail=answer.detail,
        replica=cost.replica,
        phase=cost.phase,
    )
