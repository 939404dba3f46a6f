"""The survey: what both models answer far from the seeds, before anything is searched."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from edgeflare._internal.text import names_text
from edgeflare.answers import AnswerKind
from edgeflare.campaign.events import Stage, Step
from edgeflare.campaign.fleet import CampaignStage
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.devices import DeviceState
from edgeflare.errors import DeviceAwayError
from edgeflare.models import AnswerReader
from edgeflare.scheduler import Feed, SurveyAnswer, SurveyJob, SurveyResult, chain_seed
from edgeflare.store import SeedRecord, Store, SurveyedSeed, SurveyRecord
from edgeflare.store.survey import SurveyPhase
from edgeflare.survey.sampling import SurveyPlan, survey

_PURPOSE = "survey"
"""What the random numbers of a survey are drawn for; those of a search are independent of them."""


class SurveyStage(CampaignStage):
    """The survey from every seed that both models answered; `reader` reads the deployed outputs."""

    def survey(self, reader: AnswerReader) -> None:
        """Survey every seed that is not surveyed yet. Raises what the scheduler raises."""
        pending = {replica: self._pending(replica) for replica in self._replicas}
        left = sum(map(len, pending.values()))
        if not left:
            return
        inputs = SurveyInputs.begin(self._store, self._config.survey.families)
        kind = self._store.kind
        total = self._store.seed_count() * len(self._replicas)
        done = total - left
        self._reporter(
            Stage("survey", f"far from the seeds, on {names_text(self._config.devices)}", total)
        )
        self._reporter(Step(done))

        def add(result: SurveyResult[SeedRecord], name: str) -> None:
            nonlocal done
            records, cost = survey_records(
                result,
                self._store,
                replica=self._replica_of[name],
                device_name=name,
                kind=kind,
            )
            self._store.add_survey(records, [cost], keep_first=self._only is not None)
            done += 1

        scheduler = self._scheduler(
            self._by_device(
                {replica: Feed(self._jobs(seeds, inputs)) for replica, seeds in pending.items()}
            ),
            reader,
            limited=True,
        )
        try:
            scheduler.run(add, lambda: self._reporter(Step(done)))
        finally:
            self._reporter(Step(done))
        if scheduler.left and any(one.state is DeviceState.RETIRED for one in self._fleet):
            raise DeviceAwayError(
                f"{total - done} of {total} seeds are not surveyed: "
                f"{self._fleet.describe_unavailable()}"
            )

    def _pending(self, replica: str) -> list[SeedRecord]:
        done = self._store.surveyed_seed_ids(replica)
        return [
            seed
            for seed in self._seeds(replica)
            if seed.outputs is not None and seed.id not in done
        ]

    def pending(self) -> list[str]:
        """Return the ids of the seeds that the devices together have not surveyed."""
        return [seed.id for seed in self._pending("")]

    def _jobs(
        self, seeds: Sequence[SeedRecord], inputs: SurveyInputs
    ) -> Iterator[SurveyJob[SeedRecord]]:
        for seed in seeds:
            yield self._job(seed, inputs)

    def _job(self, seed: SeedRecord, inputs: SurveyInputs) -> SurveyJob[SeedRecord]:
        config = self._config
        sample = self._store.get_sample(seed.sample)
        number = chain_seed(config.search.seed, seed.id, _PURPOSE)

        def plan() -> SurveyPlan:
            rng = np.random.default_rng(number)
            return survey(sample, rng, config.survey.sampling, inputs.families, inputs.partners)

        return SurveyJob(
            seed,
            plan,
            self._oracle,
            config.search.confirmations,
            self._store,
            config.survey.queries,
            config.survey.sampling.sure,
            held_bytes=(2 * config.survey.queries + 1) * sample.nbytes,  # drawn, chosen, seed
            row=self._rows.get(seed.id),
        )


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
