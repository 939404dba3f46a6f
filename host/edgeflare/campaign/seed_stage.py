"""The queries of both models on every seed of the store."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.metrics import class_scores, is_finite
from edgeflare.answers.oracles import Oracle
from edgeflare.campaign.events import Stage, Step
from edgeflare.campaign.fleet import CampaignStage
from edgeflare.campaign.pair.health import (
    SEEDS_REPEATED,
    count_constant,
    is_other_answer,
)
from edgeflare.campaign.pair.model_pair import (
    RawOriginal,
    class_names_notice,
    readers,
    stored_reader,
)
from edgeflare.campaign.priority import FIRST_SEEDS
from edgeflare.campaign.provenance import model_identity
from edgeflare.campaign.seeds import partner_samples
from edgeflare.campaign.status import add_queries, queries_before
from edgeflare.errors import DeviceAwayError, InferenceFailedError, UsageError
from edgeflare.models import AnswerReader, RawOutput
from edgeflare.scheduler import (
    Feed,
    Original,
    Scheduler,
    SingleQueryJob,
    SingleQueryResult,
    chain_seed,
)
from edgeflare.store import CampaignState, OutcomeRecord, SeedAnswer, SeedRecord, Store
from edgeflare.store.state import AnswerCounts, AnswersChecked
from edgeflare.types import Decision, Output, Query, Status

_HOPELESS = 3
"""Number of consecutive failures from the first seed on after which a device is given up."""


class OutputReaders(NamedTuple):
    """How raw outputs become answers, and the seconds of the first seeds' queries."""

    original: AnswerReader
    deployed: AnswerReader
    seconds: Sequence[float] = ()
    host_seconds: Sequence[float] = ()


class SeedStage(CampaignStage):
    """Queries both models on every seed that has no answers; each seed is inferred alone."""

    def check_limits(self) -> None:
        """Raise UsageError where the query limits leave too little for the unanswered seeds."""
        fleet, spent = self._config.fleet, queries_before(self._store)
        wanted = {replica: len(list(self._unanswered(replica))) for replica in self._replicas}
        total = fleet.total_queries
        if total is not None:
            _check_limit(
                "total_queries", total, sum(wanted.values()), max(0, total - spent.total())
            )
        each = fleet.device_queries
        if each is None:
            return
        for replica, names in self._replicas.items():
            left = sum(max(0, each - spent[name]) for name in names)
            _check_limit("device_queries", each, wanted[replica], left)

    def detect_outputs(self, sides: tuple[ModelInterface, ModelInterface]) -> OutputReaders:
        """Return how outputs become answers: as stored, else as detected on the first seeds.

        Those come from the devices of the first replica; they are stored. Raises StoreError where
        what is stored is damaged.
        """
        replica, names = next(iter(self._replicas.items()))
        models = self._store.models
        if models:
            original, deployed = (
                stored_reader(side, models[which]["output"], self._store.folder)
                for side, which in zip(sides, ("original", "deployed"), strict=True)
            )
            return OutputReaders(original, deployed)
        timed = _Timed(RawOriginal(self._original))
        answers = self._first_answers(names, timed)
        raws = tuple(
            [getattr(answer.outputs, which) for answer in answers]
            for which in ("original", "deployed")
        )
        (original, deployed), doubts = readers(self._config, sides, (raws[0], raws[1]))
        count = class_names_notice(self._config, self._store.state.class_names, original)
        for doubt in [*doubts, *([count] if count else [])]:
            self._reporter.notice(doubt)
        self._store.set_models(
            model_identity(self._config.original, sides[0], original, self._original.in_effect),
            model_identity(
                self._config.deployed,
                sides[1],
                deployed,
                self._fleet.sessions[0].model.runtime,
            ),
        )
        self._store.add_seed_answers(
            [_scored(answer, original, deployed, self._oracle) for answer in answers],
            replica,
        )
        seconds = [answer.seconds for answer in answers]
        return OutputReaders(original, deployed, seconds, timed.seconds)

    def answer(self, read: OutputReaders) -> None:
        """Ask about the other seeds.

        Seeds that a device can't answer on get an outcome that says so. Raises
        InferenceFailedError where it can't answer on any.
        """
        self._original.read_with(read.original)
        buffers = {
            replica: _AnswerBuffer(self._store, replica, self._config.search.seed)
            for replica in self._replicas
        }
        total = self._store.seed_count() * len(self._replicas)
        done = sum(self._count_answered(replica) for replica in self._replicas)
        self._reporter(Stage("seed queries", "both models", total))
        self._reporter(Step(done))
        feeds = {
            replica: Feed[SingleQueryResult[SeedRecord]](
                map(self._query, self._unanswered(replica))
            )
            for replica in self._replicas
        }

        def add(answered: SingleQueryResult[SeedRecord], name: str) -> None:
            nonlocal done
            done += 1
            buffers[self._replica_of[name]].add(answered, name)

        scheduler = self._scheduler(self._by_device(feeds), read.deployed)
        try:
            scheduler.run(add, lambda: self._reporter(Step(done)))
        finally:
            # an interrupted campaign keeps what was answered: a resumed one asks about the rest
            for buffer in buffers.values():
                buffer.flush()
        self._reporter(Step(done))
        if scheduler.left:
            raise DeviceAwayError(
                "seeds are left that the models have not answered: "
                f"{self._fleet.describe_unavailable()}"
            )
        for replica, buffer in buffers.items():
            if (
                self._only is None
                and buffer.failure is not None
                and not self._count_answered(replica)
            ):
                raise InferenceFailedError(buffer.failure)

    def pending(self) -> list[str]:
        """Return the ids of the seeds that the devices together have not answered."""
        return [seed.id for seed in self._unanswered("")]

    def check_answered(self) -> None:
        """Raise InferenceFailedError where the devices together could answer on no seed."""
        if self._count_answered(""):
            return
        for outcome in self._store.outcomes():
            raise InferenceFailedError(outcome.detail)

    def answer_partners(self, read: OutputReaders) -> bool:
        """Ask both models about the partners that are no seeds, and store their scores.

        Not where the models have inputs for each seed: only seeds have those. These queries count
        as measurements. False where the query limits don't leave as many. Raises DeviceAwayError.
        """
        if self._rows:
            return True
        others = set(partner_samples(self._store) or ()) - {
            seed.sample for seed in self._store.seeds()
        }
        known = self._store.state.partner_answers
        for replica, names in self._replicas.items():
            if not others or replica in known:
                continue
            if not self._limits_leave(names, len(others)):
                return False
            found: dict[str, tuple[list[float], list[float]]] = {}
            queries: Counter[str] = Counter()

            def add(
                answered: SingleQueryResult[str],
                name: str,
                found: dict[str, tuple[list[float], list[float]]] = found,
                queries: Counter[str] = queries,
            ) -> None:
                queries[name] += 1
                original, deployed = (answered.outputs or (None, None))[:2]
                if original is None or deployed is None:
                    return
                if is_finite(original) and is_finite(deployed):
                    found[answered.key] = (
                        class_scores(original).tolist(),
                        class_scores(deployed).tolist(),
                    )

            jobs = (SingleQueryJob(one, self._store.get_sample(one)) for one in sorted(others))
            feed: Feed[SingleQueryResult[str]] = Feed(jobs)
            scheduler = self._scheduler(dict.fromkeys(names, feed), read.deployed, limited=True)
            self._measure(scheduler, add, queries)
            known = {**known, replica: found}
            self._store.state.partner_answers = known
        return True

    def check_answers(self, read: OutputReaders) -> None:
        """Store whether the answers to the seeds are constant, and whether they repeat."""
        for replica, names in self._replicas.items():
            known = self._store.state.answers_checked
            if replica not in known:
                constant = AnswerCounts(
                    deployed=count_constant(self._store, replica, "deployed"),
                    original=count_constant(self._store, replica, "original"),
                )
                about = AnswersChecked(self._repeated(replica, names, read), constant)
                self._store.state.answers_checked = {**known, replica: about}

    def _repeated(self, replica: str, names: Sequence[str], read: OutputReaders) -> AnswerCounts:
        """Ask both models about the first answered seeds again; count the seeds and other answers.

        These queries count as measurements. None are asked where the query limits don't leave as
        many, nor where devices may differ: another one may have answered before; nor in a replay, most
        of whose inputs deviate and are confirmed anyway.
        """
        counts: AnswerCounts = {"seeds": 0, "deployed": 0, "original": 0}
        answered = (seed for seed in self._store.seeds(replica) if seed.outputs is not None)
        first = list(islice(answered, SEEDS_REPEATED))
        is_replay = self._store.state.is_replay
        is_mixed = self._config.fleet.allow_mixed
        if is_replay or is_mixed or not self._limits_leave(names, len(first)):
            return counts
        queries: Counter[str] = Counter()

        def add(result: SingleQueryResult[SeedRecord], name: str) -> None:
            queries[name] += 1
            now, before = result.outputs, result.key.outputs
            if now is not None and before is not None:
                counts["seeds"] += 1
                counts["original"] += _is_other(before.original, now.original)
                counts["deployed"] += _is_other(before.deployed, now.deployed)

        feed: Feed[SingleQueryResult[SeedRecord]] = Feed(map(self._query, first))
        scheduler = self._scheduler(dict.fromkeys(names, feed), read.deployed)
        self._measure(scheduler, add, queries)
        return counts

    def _measure(
        self,
        scheduler: Scheduler[SingleQueryResult[Any]],
        add: Callable[[SingleQueryResult[Any], str], None],
        queries: Mapping[str, int],
    ) -> None:
        """Ask what is to be measured; raise DeviceAwayError where inputs are left."""
        try:
            scheduler.run(add, lambda: None)
        finally:
            # of an interrupted part, too: the devices have answered them
            add_queries(self._store, CampaignState.measuring_queries, queries)
        if scheduler.left:
            raise DeviceAwayError(
                "inputs are left that the models have not answered: "
                f"{self._fleet.describe_unavailable()}"
            )

    def _first_answers(
        self, names: Sequence[str], original: Original
    ) -> list[SingleQueryResult[SeedRecord]]:
        """Return both models' raw outputs on the first seeds."""
        first = list(islice(self._store.seeds(), FIRST_SEEDS))
        found: dict[str, SingleQueryResult[SeedRecord]] = {}
        failures: list[str] = []
        queries: Counter[str] = Counter()
        feed: Feed[SingleQueryResult[SeedRecord]] = Feed(map(self._query, first))
        self._reporter(Stage("seed queries", "both models", self._store.seed_count()))

        def add(answered: SingleQueryResult[SeedRecord], name: str) -> None:
            queries[name] += 1
            if answered.outputs is not None:
                found[answered.key.id] = answered
                return
            failures.append(answered.detail)
            if len(failures) >= _HOPELESS and not found:
                raise InferenceFailedError(answered.detail)

        scheduler = self._scheduler(
            dict.fromkeys(names, feed), None, original=original, oracle=_NoOracle()
        )
        try:
            scheduler.run(add, lambda: self._reporter(Step(len(found))))
        finally:
            add_queries(self._store, CampaignState.seed_queries, queries)
        if not found:
            raise InferenceFailedError(failures[0])
        return [found[seed.id] for seed in first if seed.id in found]

    def _query(self, seed: SeedRecord) -> SingleQueryJob[SeedRecord]:
        row = self._rows.get(seed.id)
        return SingleQueryJob(seed, self._store.get_sample(seed.sample), row=row)

    def _unanswered(self, replica: str) -> Iterator[SeedRecord]:
        finished = self._store.finished_seed_ids(replica)
        for seed in self._seeds(replica):
            if seed.outputs is None and seed.id not in finished:
                yield seed

    def _count_answered(self, replica: str) -> int:
        return sum(seed.outputs is not None for seed in self._seeds(replica))


class _AnswerBuffer:
    """Stores answers many at a time: one transaction costs as much as many answers."""

    _SIZE = 64

    def __init__(self, store: Store, replica: str, campaign_seed: int) -> None:
        self._store = store
        self._replica = replica
        self._campaign_seed = campaign_seed
        self._waiting: list[SeedAnswer] = []
        self._queries: Counter[str] = Counter()
        self.failure: str | None = None

    def add(self, answered: SingleQueryResult[SeedRecord], device: str) -> None:
        seed = answered.key
        self._queries[device] += 1
        if answered.outputs is None:
            self.failure = answered.detail
            self._store.add_outcome(
                _failed(seed, answered.detail, self._replica, device, self._campaign_seed),
                keep_first=True,
            )
            return
        original, deployed, decision = answered.outputs
        assert original is not None  # noqa: S101 - both were queried
        assert deployed is not None  # noqa: S101
        self._waiting.append(SeedAnswer(seed.id, original, deployed, decision))
        if len(self._waiting) >= self._SIZE:
            self.flush()

    def flush(self) -> None:
        self._store.add_seed_answers(self._waiting, self._replica)
        self._waiting = []
        add_queries(self._store, CampaignState.seed_queries, self._queries)
        self._queries.clear()


def _is_other(before: Output | None, now: Output | None) -> bool:
    return before is not None and now is not None and is_other_answer(before, now)


def _scored(
    answer: SingleQueryResult[SeedRecord],
    original: AnswerReader,
    deployed: AnswerReader,
    oracle: Oracle,
) -> SeedAnswer:
    """Return the stored record of raw outputs."""
    assert answer.outputs is not None  # noqa: S101 - those without were left out
    raw = cast("tuple[RawOutput, RawOutput]", answer.outputs[:2])
    both = original.read(raw[0]), deployed.read(raw[1])
    return SeedAnswer(answer.key.id, *both, oracle.decide(*both))


def _failed(
    seed: SeedRecord, detail: str, replica: str, device: str, campaign_seed: int
) -> OutcomeRecord:
    return OutcomeRecord(
        seed_id=seed.id,
        status=Status.FAILED,
        chain_seed=chain_seed(campaign_seed, seed.id),
        seed_queries=1,
        trigger=seed.sample,
        detail=detail,
        replica=replica,
        device_name=device,
    )


def _check_limit(name: str, limit: int, wanted: int, left: int) -> None:
    if wanted > left:
        raise UsageError(
            f"{name} is {limit}, which leaves {max(0, left)} queries for {wanted} seeds that are "
            f"not answered yet: raise it with --{name.replace('_', '-')}, or take fewer seeds with --limit"
        )


class _NoOracle:
    """Decides nothing: raw outputs are no answers yet."""

    floor = 0.0

    def decide(self, original: Output, deployed: Output) -> Decision:
        del original, deployed
        return Decision.UNDECIDED


class _Timed:
    """Passes on what a model answers; `seconds` has those of each sample, as budgets count them."""

    def __init__(self, model: Original) -> None:
        self._model = model
        self.seconds: list[float] = []

    def answer(self, samples: Sequence[Query]) -> tuple[Sequence[Output], Sequence[float]]:
        """Return one answer a sample, and the seconds of each."""
        answers, seconds = self._model.answer(samples)
        self.seconds += seconds
        return answers, seconds
