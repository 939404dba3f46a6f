"""The search from every seed and, in a replicating fleet, the replay on all other devices."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from edgeflare.answers.metrics import is_finite, top_label
from edgeflare.answers.oracles import is_measured
from edgeflare.answers.parts import Margins
from edgeflare.campaign.events import Notice, Stage, Step
from edgeflare.campaign.priority import drift_order
from edgeflare.campaign.queries.stage import CampaignRun, QueryStage
from edgeflare.campaign.resolution import STRATEGY
from edgeflare.campaign.seeds import partner_samples, partners
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.status import (
    add_queries,
    all_searched,
    count_outcomes,
    expected_outcomes,
)
from edgeflare.campaign.workers.pool import WorkerPool
from edgeflare.campaign.workers.program import WorkerSettings, probed
from edgeflare.campaign.workers.search import RemoteSearchJob
from edgeflare.errors import DeviceAwayError
from edgeflare.metrics import l2, linf, snr_db
from edgeflare.scheduler import (
    Budget,
    Job,
    SearchJob,
    SearchJobResult,
    SearchSettings,
    SingleQueryJob,
    SingleQueryResult,
)
from edgeflare.store import CampaignState, OutcomeRecord, ReplayRecord, SeedRecord
from edgeflare.store.database import decoding
from edgeflare.strategies import build_strategy
from edgeflare.survey import PARTNERS
from edgeflare.types import TRIGGERS, Decision, KnownAnswers, Scores, Seed, Status, Strategy
from edgeflare.words import campaign as words


class SearchStage(QueryStage[SeedRecord, SearchJobResult]):
    """The search from every answered seed without an outcome.

    It returns how many have ended, and how many of them found most inputs below the margin floor.
    """

    name = "search"
    scope = "seed"
    is_limited = True

    def __init__(self, run: CampaignRun) -> None:
        super().__init__(run)
        self._kind = self._store.kind
        self._pool: WorkerPool | None = None
        self._is_left = False
        self._mostly_below = 0

    def pending(self, replica: str) -> Iterator[SeedRecord]:
        return self._store.pending_seeds(replica, self._order(replica))

    def begin(self) -> bool:
        search = self._config.search
        self._settings = SearchSettings(
            strategy_of(self._config),
            Budget(
                search.max_queries or None,
                search.timeout_s or None,
                search.max_host_queries or None,
            ),
            search.confirmations,
            search.seed,
            self._store,
            self._oracle,
        )
        self._digests = self._store.state.fingerprints
        self._by_distance = is_measured(dict(search))
        self._others = partners(self._store)
        self._known = {
            replica: self._known_answers(replica) if self._kind.is_scored else None
            for replica in self._replicas
        }
        self._pool = self._workers()
        self._before = self._so_far = self.shown(0)
        total = expected_outcomes(self._store)
        self._to_end = total if self._only is None else self._before.done + len(self._only)
        self._reporter(self.event())
        self.tick()
        return True

    def event(self) -> Stage:
        total, devices = expected_outcomes(self._store), self._fleet.described(self._config)
        if self._store.state.is_replay:
            return Stage("replay", f"on {devices}", total)
        return Stage("search", f"{self._config.search.strategy} on {devices}", total)

    def job(self, item: SeedRecord, replica: str) -> SearchJob:
        assert item.outputs is not None  # noqa: S101 - pending seeds are answered
        seed = Seed(
            item.id,
            self._store.get_sample(item.sample),
            item.outputs,
            label=item.label,
            others=self._others,
            margin_floor=self._oracle.floor,
            known=self._known[replica],
            rate=self._store.sample_rate,
            compares_scores=self._by_distance,
            row=self._rows.get(item.id),
            kind=self._kind,
        )
        if self._pool is None:
            return SearchJob(seed, self._settings)
        return RemoteSearchJob(seed, self._settings, pool=self._pool, replica=replica)

    def write(self, result: SearchJobResult, device: str) -> None:
        record = outcome_record(
            result,
            self._digests[device],
            device_name=device,
            replica=self._replica_of[device],
        )
        self._store.add_outcome(record, keep_first=self._only is not None)
        add_queries(self._store, CampaignState.measuring_queries, {device: result.lost_queries})
        self._mostly_below += result.mostly_below_floor
        before = self._so_far  # the stage's thread reads it: it is replaced, never changed
        self._so_far = Step(
            before.done + 1,
            before.found + (record.status is Status.FOUND),
            before.searched + record.searched,
            before.queries + record.search_queries,
            before.host_only_queries + record.host_only_queries,
        )

    def tick(self, under_way: Sequence[Job[SearchJobResult]] = ()) -> None:
        so_far, spent = self._so_far, [job.counters for job in under_way]
        queries = so_far.queries + sum(one.search for one in spent)
        self._reporter(
            so_far._replace(
                queries=queries,
                host_only_queries=so_far.host_only_queries + sum(one.host_only for one in spent),
                under_way=len(under_way),
                with_trigger=sum(
                    isinstance(job, SearchJob) and bool(job.front.points) for job in under_way
                ),
            )
        )
        if self._pool is not None and under_way:
            ended = so_far.done - self._before.done
            left = self._to_end - so_far.done - len(under_way)
            self._pool.consider(ended, left, queries - self._before.queries)

    @contextmanager
    def during(self) -> Iterator[None]:
        with _opencv_on_one_thread(), self._pool or nullcontext():
            yield

    def on_flush(self) -> None:
        if self._pool is not None:
            self._pool.flush()

    def remain(self) -> None:
        """Report it at the end."""
        self._is_left = True

    def end(self) -> tuple[int, int]:
        ended = self._so_far.done - self._before.done
        if self._only is None:
            self._report_floor(ended, self._mostly_below)
            if self._is_left:
                self.report_remaining()
        return ended, self._mostly_below

    def shown(self, done: int) -> Step:
        return Step(*count_outcomes(self._store))

    def collect(self, values: Sequence[Any], left: Sequence[str]) -> None:
        self._report_floor(*(sum(column) for column in zip((0, 0), *values, strict=True)))
        if not all_searched(self._store):
            self.report_remaining()

    def _workers(self) -> WorkerPool | None:
        """Return the processes that searches run in; None: they run in this one."""
        config, search = self._config, self._config.search
        left = expected_outcomes(self._store) - count_outcomes(self._store).done
        if self._only is not None:
            left = min(left, len(self._only))
        if config.workers == 0 or search.strategy == "none" or not left:
            return None
        oracle = {
            "name": search.oracle,
            "settings": dict(search),
            "task": self._run.sides[0].task,
            "labels_only": not self._kind.is_scored,
        }
        shared = WorkerSettings(
            self._run.original.settings,
            (search.strategy, search.options, search.operators),
            oracle,
            self._settings.budget,
            self._settings.campaign_seed,
            (self._store.samples_place, self._store.sample_rate),
            self._others.digests,
            self._known,
        )
        return WorkerPool(
            shared,
            None if config.workers is None else min(config.workers, left),
            partial(probed, self._run.original, self._others),
            self._reporter.queue_notice,
        )

    def _order(self, replica: str) -> Sequence[str] | None:
        """Return the ids of the seeds to search from, in order; None: all as they are stored."""
        if self._only is not None:
            return self._only
        by_drift = self._config.seeds.prioritise == "drift" and self._config.survey.enabled
        return drift_order(self._store, replica) if by_drift else None

    def _known_answers(self, replica: str) -> KnownAnswers | None:
        """Return both models' finite scores on the partners; None for other strategies."""
        if self._config.search.strategy != STRATEGY:
            return None
        wanted = partner_samples(self._store)
        seeds = self._store.seeds(replica)
        first = (
            list(islice(seeds, PARTNERS))
            if wanted is None
            else [seed for seed in seeds if seed.sample in wanted]
        )
        answers: dict[str, Sequence[Scores]] = {
            digest: [np.array(one, np.float64) for one in both]
            for digest, both in self._store.state.partner_answers.get(replica, {}).items()
        }
        for seed in first:
            both = () if seed.outputs is None else (seed.outputs.original, seed.outputs.deployed)
            usual = [one for one in both if isinstance(one, np.ndarray) and is_finite(one)]
            if len(usual) == 2:
                answers[seed.sample] = usual
        digests = wanted or [seed.sample for seed in first]
        found = [answers[digest] for digest in digests if digest in answers]
        if not found:
            return None
        with decoding(self._store.folder, "the fact 'partner answers'"):  # of unlike lengths
            original, deployed = (
                np.array(scores, np.float64) for scores in zip(*found, strict=True)
            )
        for array in (original, deployed):
            array.setflags(write=False)  # one for all searches
        return KnownAnswers(original, deployed)

    def _report_floor(self, ended: int, below: int) -> None:
        """Report where the margin floor excluded most inputs of most searches."""
        if 2 * below > ended:
            self._reporter(
                Notice(words.MOSTLY_BELOW_FLOOR.format(below, ended, self._oracle.floor))
            )

    def report_remaining(self) -> None:
        """Report why seeds remain: devices that dropped out, or limits. Raises DeviceAwayError."""
        done, total = count_outcomes(self._store).done, expected_outcomes(self._store)
        if self._run.has_retired:
            raise DeviceAwayError(
                f"{total - done} of {total} searches are left: {self._fleet.describe_unavailable()}"
            )
        self._reporter(Notice(words.SEARCHES_LEFT.format(total - done, total)))


class ExchangeStage(QueryStage[OutcomeRecord, SingleQueryResult[OutcomeRecord]]):
    """Every device's triggers are tried on every other device of a replicating fleet."""

    name = "exchange"

    def pending(self, replica: str) -> Iterator[OutcomeRecord]:
        """Yield the other devices' triggers that this one was not tried on."""
        (device,) = self._replicas[replica]
        for outcome in self._store.outcomes():
            key = (*outcome.place, device)
            if outcome.status in TRIGGERS and outcome.replica != replica and key not in self._tried:
                yield outcome

    def begin(self) -> bool:
        self._tried = {(*one.place, one.on_device) for one in self._store.replays()}
        self._total = sum(1 for replica in self._replicas for _ in self.pending(replica))
        if self._total:
            self._reporter(Stage("replay", words.EVERY_TRIGGER, self._total))
        return bool(self._total)

    def job(self, item: OutcomeRecord, replica: str) -> SingleQueryJob[OutcomeRecord]:
        sample = self._store.get_sample(item.trigger or "")
        return SingleQueryJob(item, sample, of="deployed", row=self._rows.get(item.seed_id))

    def write(self, result: SingleQueryResult[OutcomeRecord], device: str) -> None:
        """Store the record of a replay; without an answer where the device can't answer."""
        found = result.key
        assert found.original is not None  # noqa: S101 - a trigger has both models' answers
        assert found.trigger is not None  # noqa: S101
        deployed = result.outputs.deployed if result.outputs is not None else None
        if deployed is None:
            self._reporter.queue_notice(words.REPLAY_FAILED.format(result.detail))
        self._store.add_replay(
            ReplayRecord(
                seed_id=found.seed_id,
                replica=found.replica,
                on_device=device,
                trigger=found.trigger,
                deployed=np.empty(0) if deployed is None else deployed,
                deployed_label=top_label(deployed),
                decision=Decision.UNDECIDED
                if deployed is None
                else self._oracle.decide(found.original, deployed),
            )
        )

    def remaining(self) -> str:
        return words.REPLAYS_LEFT.format(self._total - self.done, self._total)


def strategy_of(config: CampaignConfig) -> Strategy:
    """Return the strategy that a campaign searches with. Raises UsageError."""
    search = config.search
    return build_strategy(search.strategy, search.options, search.operators)


@contextmanager
def _opencv_on_one_thread() -> Iterator[None]:
    """Keep OpenCV from threads of its own: the searches use all processors."""
    import cv2

    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


def outcome_record(
    result: SearchJobResult, device: str, *, device_name: str, replica: str
) -> OutcomeRecord:
    """Return the record of a search that has ended; `device` is the digest of its fingerprint."""
    original = result.outputs.original if result.outputs else None
    deployed = result.outputs.deployed if result.outputs else None
    kind, both = result.seed.kind, Margins(None, None)
    if original is not None and deployed is not None:
        both = kind.margins(original, deployed)
    seed, sample = result.seed.sample, result.sample
    return OutcomeRecord(
        seed_id=result.seed.id,
        status=result.status,
        chain_seed=result.chain_seed,
        seed_queries=result.counters.seed,
        search_queries=result.counters.search,
        confirmation_queries=result.counters.confirmation,
        host_only_queries=result.counters.host_only,
        round_trips=result.counters.round_trips,
        seconds=result.counters.seconds,
        device_seconds=result.counters.device_seconds,
        device=device,
        trigger=result.sample_digest,
        original=original,
        deployed=deployed,
        original_label=top_label(original),
        deployed_label=top_label(deployed),
        original_margin=both.original,
        deployed_margin=both.deployed if kind.is_scored else None,
        l2=None if sample is None else l2(seed, sample),
        linf=None if sample is None else linf(seed, sample),
        snr_db=None if sample is None else snr_db(seed, sample),
        front=result.front,
        mutations=result.mutations,
        confirmed=result.confirmed,
        detail=result.detail,
        device_name=device_name,
        replica=replica,
    )
