"""The search from every seed and, in a replicating fleet, the replay on all other devices."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from edgeflare._internal.text import names_text
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.metrics import is_finite, top_label
from edgeflare.answers.oracles import is_measured
from edgeflare.answers.parts import Margins
from edgeflare.campaign.events import Notice, Stage, Step
from edgeflare.campaign.fleet import CampaignStage
from edgeflare.campaign.priority import drift_order
from edgeflare.campaign.resolution import STRATEGY
from edgeflare.campaign.seeds import partner_samples, partners
from edgeflare.campaign.status import add_queries, count_outcomes, expected_outcomes
from edgeflare.campaign.workers.pool import WorkerPool
from edgeflare.campaign.workers.program import WorkerSettings, probed
from edgeflare.campaign.workers.search import RemoteSearchJob
from edgeflare.devices import DeviceState
from edgeflare.errors import DeviceAwayError
from edgeflare.metrics import l2, linf, snr_db
from edgeflare.models import AnswerReader
from edgeflare.scheduler import (
    Budget,
    Feed,
    Job,
    SearchJob,
    SearchJobResult,
    SearchSettings,
    SingleQueryJob,
    SingleQueryResult,
)
from edgeflare.store import CampaignState, OutcomeRecord, ReplayRecord, Store
from edgeflare.store.database import decoding
from edgeflare.store.samples import LazySamples
from edgeflare.survey import PARTNERS
from edgeflare.types import TRIGGERS, Decision, KnownAnswers, Scores, Seed, Status, Strategy, Task


class SearchStage(CampaignStage):
    """The search from every seed; `reader` makes answers of the deployed model's outputs."""

    def search(self, strategy: Strategy, reader: AnswerReader, task: Task) -> "FloorCounts":
        """Search from every seed without an outcome; `task` is that of the models.

        Returns how many searches ended. Raises what the scheduler raises.
        """
        config = self._config
        settings = SearchSettings(
            strategy,
            Budget(
                config.search.max_queries or None,
                config.search.timeout_s or None,
                config.search.max_host_queries or None,
            ),
            config.search.confirmations,
            config.search.seed,
            self._store,
            self._oracle,
        )
        digests = self._store.state.fingerprints
        kind = self._store.kind
        others = partners(self._store)
        known = {
            replica: self._known(replica) if kind.is_scored else None for replica in self._replicas
        }
        pool = self._workers(settings, kind, task, others, known)
        feeds = {
            replica: Feed(self._jobs(replica, settings, kind, others, known[replica], pool))
            for replica in self._replicas
        }
        scheduler = self._scheduler(
            self._by_device(feeds),
            reader,
            limited=True,
            on_flush=(lambda: None) if pool is None else pool.flush,
        )
        tally = _Tally(self._store)

        def add(result: SearchJobResult, name: str) -> None:
            record = outcome_record(
                result, digests[name], device_name=name, replica=self._replica_of[name]
            )
            self._store.add_outcome(record, keep_first=self._only is not None)
            add_queries(self._store, CampaignState.measuring_queries, {name: result.lost_queries})
            tally.add(record, mostly_below_floor=result.mostly_below_floor)

        names = names_text(config.devices)
        total = expected_outcomes(self._store)
        to_end = total if self._only is None else tally.done + len(self._only)
        replayed = self._store.state.is_replay
        self._reporter(
            Stage("replay", f"on {names}", total)
            if replayed
            else Stage("search", f"{config.search.strategy} on {names}", total)
        )
        self._reporter(tally.step())

        def tick() -> None:
            under_way = scheduler.under_way
            self._reporter(tally.step(under_way))
            if pool is not None:
                left = to_end - tally.done - len(under_way)
                pool.consider(tally.ended, left, tally.asked(under_way))

        try:
            with _opencv_on_one_thread(), pool or nullcontext():
                scheduler.run(add, tick)
        finally:
            self._reporter(tally.step())
        counts = FloorCounts(tally.ended, tally.mostly_below_floor)
        if self._only is None:
            self.report_floor(counts)
            if scheduler.left:
                self.report_remaining()
        return counts

    def pending(self) -> list[str]:
        """Return the ids of the answered seeds without an outcome, in the order to search from."""
        return [seed.id for seed in self._store.pending_seeds("", self._order(""))]

    def replay(self, reader: AnswerReader) -> None:
        """Try every device's triggers on every other device. Raises what the scheduler raises."""
        done = {(one.seed_id, one.replica, one.on_device) for one in self._store.replays()}
        counts = {name: sum(1 for _ in self._replays(name, done)) for name in self._replica_of}
        total = sum(counts.values())
        if not total:
            return
        self._reporter(Stage("replay", "every triggering input on every device", total))
        finished = 0

        def add(answered: SingleQueryResult[OutcomeRecord], name: str) -> None:
            nonlocal finished
            finished += 1
            self._store.add_replay(self._replayed(answered, name))

        feeds = {
            name: Feed(
                SingleQueryJob(
                    found,
                    self._store.get_sample(found.trigger or ""),
                    of="deployed",
                    row=self._rows.get(found.seed_id),
                )
                for found in self._replays(name, done)
            )
            for name in self._replica_of
        }
        scheduler = self._scheduler(feeds, reader)
        scheduler.run(add, lambda: self._reporter(Step(finished)))
        self._reporter(Step(finished))
        if scheduler.left:
            raise DeviceAwayError(
                f"{total - finished} of {total} replays are left: "
                f"{self._fleet.describe_unavailable()}"
            )

    def _replayed(self, answered: SingleQueryResult[OutcomeRecord], name: str) -> ReplayRecord:
        """Return the record of a replay; without an answer where the device can't answer."""
        found = answered.key
        assert found.original is not None  # noqa: S101 - a trigger has both models' answers
        assert found.trigger is not None  # noqa: S101
        deployed = answered.outputs.deployed if answered.outputs is not None else None
        if deployed is None:
            self._reporter.queue_notice(f"a replay failed: {answered.detail}")
        return ReplayRecord(
            seed_id=found.seed_id,
            replica=found.replica,
            on_device=name,
            trigger=found.trigger,
            deployed=np.empty(0) if deployed is None else deployed,
            deployed_label=top_label(deployed),
            decision=Decision.UNDECIDED
            if deployed is None
            else self._oracle.decide(found.original, deployed),
        )

    def _replays(self, name: str, done: set[tuple[str, str, str]]) -> Iterator[OutcomeRecord]:
        """Give the other devices' triggers that this one was not tried on."""
        own = self._replica_of[name]
        for outcome in self._store.outcomes():
            key = (outcome.seed_id, outcome.replica, name)
            if outcome.status in TRIGGERS and outcome.replica != own and key not in done:
                yield outcome

    def _workers(
        self,
        settings: SearchSettings,
        kind: AnswerKind[Any],
        task: Task,
        others: LazySamples,
        known: Mapping[str, KnownAnswers | None],
    ) -> WorkerPool | None:
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
            "task": task,
            "labels_only": not kind.is_scored,
        }
        shared = WorkerSettings(
            self._original.settings,
            (search.strategy, search.options, search.operators),
            oracle,
            settings.budget,
            settings.campaign_seed,
            (self._store.samples_place, self._store.sample_rate),
            others.digests,
            known,
        )
        return WorkerPool(
            shared,
            None if config.workers is None else min(config.workers, left),
            partial(probed, self._original, others),
            self._reporter.queue_notice,
        )

    def _jobs(
        self,
        replica: str,
        settings: SearchSettings,
        kind: AnswerKind[Any],
        others: LazySamples,
        known: KnownAnswers | None,
        pool: WorkerPool | None,
    ) -> Iterator[SearchJob]:
        by_distance = is_measured(dict(self._config.search))
        for record in self._store.pending_seeds(replica, self._order(replica)):
            assert record.outputs is not None  # noqa: S101 - pending seeds are answered
            seed = Seed(
                record.id,
                self._store.get_sample(record.sample),
                record.outputs,
                label=record.label,
                others=others,
                margin_floor=settings.oracle.floor,
                known=known,
                rate=self._store.sample_rate,
                compares_scores=by_distance,
                row=self._rows.get(record.id),
                kind=kind,
            )
            if pool is None:
                yield SearchJob(seed, settings)
            else:
                yield RemoteSearchJob(seed, settings, pool=pool, replica=replica)

    def _order(self, replica: str) -> Sequence[str] | None:
        """Return the ids of the seeds to search from, in order; None: all as they are stored."""
        if self._only is not None:
            return self._only
        by_drift = self._config.seeds.prioritise == "drift" and self._config.survey.enabled
        return drift_order(self._store, replica) if by_drift else None

    def _known(self, replica: str) -> KnownAnswers | None:
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

    def report_floor(self, counts: "FloorCounts") -> None:
        """Report where the margin floor excluded most inputs of most searches."""
        ended, below = counts
        if 2 * below > ended:
            self._reporter(
                Notice(
                    f"{below} of {ended} searches found nothing, with "
                    f"most of their inputs below the margin floor of {self._oracle.floor:g}, which the "
                    "device was not asked about; a lower --margin-floor lets them count"
                )
            )

    def report_remaining(self) -> None:
        """Report why seeds remain: devices that dropped out, or limits. Raises DeviceAwayError."""
        done, total = count_outcomes(self._store).done, expected_outcomes(self._store)
        if any(one.state is DeviceState.RETIRED for one in self._fleet):
            raise DeviceAwayError(
                f"{total - done} of {total} searches are left: {self._fleet.describe_unavailable()}"
            )
        self._reporter(
            Notice(
                f"the query limit is reached: {total - done} of {total} searches are left; "
                "`edgeflare resume` with a larger one goes on"
            )
        )


class FloorCounts(NamedTuple):
    """How many searches ended, and how many of them found most inputs below the margin floor."""

    ended: int
    mostly_below: int


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


class _Tally:
    """Counts outcomes from where the store is; added to in another thread than it is read in.

    `ended` and `mostly_below_floor` count those of this run alone.
    """

    def __init__(self, store: Store) -> None:
        before = count_outcomes(store)
        self.done = before.done
        self._found = before.found
        self._searched = before.searched
        self._queries = before.queries
        self._host_only_queries = 0
        self.ended = self.mostly_below_floor = 0
        self._asked = 0
        self._lock = threading.Lock()

    def add(self, record: OutcomeRecord, *, mostly_below_floor: bool) -> None:
        with self._lock:
            self.ended += 1
            self.mostly_below_floor += mostly_below_floor
            self.done += 1
            self._found += record.status is Status.FOUND
            self._searched += record.searched
            self._queries += record.search_queries
            self._host_only_queries += record.host_only_queries
            self._asked += record.search_queries

    def asked(self, under_way: Sequence[Job[SearchJobResult]]) -> int:
        """Return the number of search queries of this run."""
        with self._lock:
            return self._asked + sum(job.counters.search for job in under_way)

    def step(self, under_way: Sequence[Job[SearchJobResult]] = ()) -> Step:
        spent = [job.counters for job in under_way]
        with self._lock:
            return Step(
                self.done,
                self._found,
                self._searched,
                self._queries + sum(one.search for one in spent),
                self._host_only_queries + sum(one.host_only for one in spent),
                len(under_way),
                sum(isinstance(job, SearchJob) and bool(job.front.points) for job in under_way),
            )


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
