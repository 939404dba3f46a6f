"""The queries of both models on every seed of the store."""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterator, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.metrics import class_scores, is_finite
from edgeflare.answers.oracles import Oracle
from edgeflare.campaign.events import Stage, Step
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
from edgeflare.campaign.queries.stage import (
    CampaignRun,
    CampaignStage,
    J,
    OutputReaders,
    QueryStage,
)
from edgeflare.campaign.seeds import partner_samples
from edgeflare.campaign.status import add_queries, queries_before
from edgeflare.devices import Device
from edgeflare.errors import DeviceAwayError, InferenceFailedError, UsageError
from edgeflare.models import AnswerReader, RawOutput
from edgeflare.scheduler import Job, Original, SingleQueryJob, SingleQueryResult, chain_seed
from edgeflare.store import CampaignState, OutcomeRecord, SeedAnswer, SeedRecord
from edgeflare.store.state import AnswerCounts, AnswersChecked, RawOutputs
from edgeflare.types import Decision, Output, Query, Status
from edgeflare.words.campaign import SEEDS_LEFT

_HOPELESS = 3
"""Number of consecutive failures from the first seed on after which a device is given up."""
_KEPT_BYTES = 32 << 20
"""Of raw outputs that are kept for the triage; of larger ones those to fewer seeds are."""
_FEWEST_KEPT = 2
"""One answer tells nothing of what changes between seeds."""
_TOGETHER = 64
"""Answers that are stored at a time: one transaction costs as much as many answers."""


class _SeedQueries(QueryStage[SeedRecord, SingleQueryResult[SeedRecord]]):
    """Both models are asked about seeds; each seed is inferred alone."""

    def job(self, item: SeedRecord, replica: str) -> SingleQueryJob[SeedRecord]:
        sample = self._store.get_sample(item.sample)
        return SingleQueryJob(item, sample, row=self._rows.get(item.id))


class OutputsStage(CampaignStage):
    """How outputs become answers: as stored, else as detected on the first seeds, and stored.

    It returns the seconds of these seeds' queries: of both models, and of the original alone. Raises
    StoreError where what is stored is damaged.
    """

    name = "outputs"

    def do(self) -> tuple[Sequence[float], Sequence[float]]:
        run, models = self._run, self._store.models
        if models:
            original, deployed = (
                stored_reader(side, models[which]["output"], self._store.folder)
                for side, which in zip(run.sides, ("original", "deployed"), strict=True)
            )
            run.readers = OutputReaders(original, deployed)
        else:
            run.readers = self._detected()
        run.original.read_with(run.readers.original)
        return run.readers.seconds, run.readers.host_seconds

    def _detected(self) -> OutputReaders:
        config, sides = self._config, self._run.sides
        first = _FirstSeeds(self._run)
        answers = first.do()
        raws = tuple(
            [getattr(answer.outputs, which) for answer in answers]
            for which in ("original", "deployed")
        )
        (original, deployed), doubts = readers(config, sides, (raws[0], raws[1]))
        count = class_names_notice(config, self._store.state.class_names, original)
        for doubt in [*doubts, *([count] if count else [])]:
            self._reporter.notice(doubt)
        self._keep(answers, raws[1], first.devices)
        self._store.set_models(
            model_identity(config.original, sides[0], original, self._run.original.in_effect),
            model_identity(
                config.deployed, sides[1], deployed, self._fleet.sessions[0].model.runtime
            ),
        )
        self._store.add_seed_answers(
            [_scored(answer, original, deployed, self._oracle) for answer in answers], first.replica
        )
        return OutputReaders(
            original, deployed, [answer.seconds for answer in answers], first.timed.seconds
        )

    def _keep(
        self,
        answers: Sequence[SingleQueryResult[SeedRecord]],
        raws: Sequence[Any],
        devices: Collection[str],
    ) -> None:
        """Store what the device returned, so that a triage need not ask it again.

        Not where this interpreter returns the same again, nor where the device keeps a part of it alone.
        """
        side = self._run.sides[1]
        stated = {
            entry["name"]: Device.model_validate(entry) for entry in self._store.state.devices
        }
        is_here = all(
            name in stated and stated[name].is_this_interpreter and not stated[name].options
            for name in devices
        )
        if self._store.state.is_replay or (is_here and not self._config.deployed.options):
            return
        if side.keep is not None or side.repair is not None or side.decoder is not None:
            return
        arrays = _stacked(raws)
        if not arrays:
            return
        seeds = [answer.key.id for answer in answers[: len(arrays[0])]]
        digests = [self._store.put_sample(array) for array in arrays]
        self._store.state.device_outputs = RawOutputs(seeds, digests, sorted(devices))


class _FirstSeeds(_SeedQueries):
    """Both models' raw outputs on the first seeds, on the devices of the first replica."""

    name = "first seeds"

    def __init__(self, run: CampaignRun) -> None:
        super().__init__(run)
        self.replica, names = next(iter(run.replicas.items()))
        self.timed = _Timed(RawOriginal(run.original))
        self._replicas = {self.replica: names}
        self._original, self._oracle, self._reader = self.timed, _NoOracle(), None
        self._first = list(islice(self._store.seeds(), FIRST_SEEDS))
        self._answers: dict[str, SingleQueryResult[SeedRecord]] = {}
        self._failures: list[str] = []
        self._queries: Counter[str] = Counter()

    @property
    def devices(self) -> Collection[str]:
        """The names of those that answered."""
        return self._queries.keys()

    def begin(self) -> bool:
        self._reporter(Stage("seed queries", "both models", self._store.seed_count()))
        return True

    def pending(self, replica: str) -> Sequence[SeedRecord]:
        return self._first

    def write(self, result: SingleQueryResult[SeedRecord], device: str) -> None:
        self._queries[device] += 1
        if result.outputs is not None:
            self._answers[result.key.id] = result
            return
        self._failures.append(result.detail)
        if len(self._failures) >= _HOPELESS and not self._answers:
            raise InferenceFailedError(result.detail)

    def tick(self, under_way: Sequence[Job[Any]] = ()) -> None:
        if under_way:
            self._reporter(Step(len(self._answers)))

    def flush(self) -> None:
        add_queries(self._store, CampaignState.seed_queries, self._queries)

    def remain(self) -> None:
        """Do with the answers that there are."""

    def end(self) -> list[SingleQueryResult[SeedRecord]]:
        if not self._answers:
            raise InferenceFailedError(self._failures[0])
        return [self._answers[seed.id] for seed in self._first if seed.id in self._answers]


class SeedStage(_SeedQueries):
    """Asks both models about every seed that has no answers.

    Seeds that a device can't answer on get an outcome that says so. Raises InferenceFailedError
    where it can't answer on any.
    """

    name = "answer"
    scope = "seed"

    def __init__(self, run: CampaignRun) -> None:
        super().__init__(run)
        self._failures: dict[str, str] = {}
        self._waiting: defaultdict[str, list[SeedAnswer]] = defaultdict(list)
        self._queries: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def check_limits(self) -> None:
        """Raise UsageError where the query limits leave too little for the unanswered seeds."""
        fleet, spent = self._config.fleet, queries_before(self._store)
        if fleet.total_queries is None and fleet.device_queries is None:
            return
        wanted = {replica: len(list(self.pending(replica))) for replica in self._replicas}
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

    def pending(self, replica: str) -> Iterator[SeedRecord]:
        finished = self._store.finished_seed_ids(replica)
        for seed in self._seeds(replica):
            if seed.outputs is None and seed.id not in finished:
                yield seed

    def begin(self) -> bool:
        self.done = sum(self._count_answered(replica) for replica in self._replicas)
        self._reporter(self.event())
        self.tick()
        return True

    def event(self) -> Stage:
        return Stage("seed queries", "both models", self._every_seed())

    def write(self, result: SingleQueryResult[SeedRecord], device: str) -> None:
        seed, replica = result.key, self._replica_of[device]
        self._queries[replica][device] += 1
        if result.outputs is None:
            self._failures[replica] = result.detail
            outcome = _failed(seed, result.detail, replica, device, self._config.search.seed)
            self._store.add_outcome(outcome, keep_first=True)
            return
        original, deployed, decision = result.outputs
        assert original is not None  # noqa: S101 - both were queried
        assert deployed is not None  # noqa: S101
        self._waiting[replica].append(SeedAnswer(seed.id, original, deployed, decision))
        if len(self._waiting[replica]) >= _TOGETHER:
            self._store_answers(replica)

    def flush(self) -> None:
        for replica in self._replicas:
            self._store_answers(replica)

    def remaining(self) -> str:
        return SEEDS_LEFT

    def end(self) -> None:
        for replica, failure in self._failures.items():
            if self._only is None and not self._count_answered(replica):
                raise InferenceFailedError(failure)

    def collect(self, values: Sequence[Any], left: Sequence[str]) -> None:
        if left:
            raise DeviceAwayError(self.remaining())
        if not self._count_answered(""):
            for outcome in self._store.outcomes():
                raise InferenceFailedError(outcome.detail)

    def _count_answered(self, replica: str) -> int:
        return sum(seed.outputs is not None for seed in self._seeds(replica))

    def _store_answers(self, replica: str) -> None:
        self._store.add_seed_answers(self._waiting[replica], replica)
        self._waiting[replica] = []
        add_queries(self._store, CampaignState.seed_queries, self._queries[replica])
        self._queries[replica].clear()


class _Measurement(QueryStage[J, SingleQueryResult[J]]):
    """Queries that count as measurements: a round for each replica that isn't measured yet."""

    def __init__(self, run: CampaignRun) -> None:
        super().__init__(run)
        self._left = iter(run.replicas.items())
        self._turn = ""
        self._queries: Counter[str] = Counter()

    def begin(self) -> bool:
        return self.again()

    def turn_to_next(self, measured: Container[str]) -> bool:
        """Turn to the next replica, which isn't measured yet; False: there is none."""
        for name, devices in self._left:
            if name not in measured:
                self._turn, self._replicas = name, {name: devices}
                return True
        return False

    def leaves(self, queries: int) -> bool:
        """Whether the query limits leave so many queries to the devices of this round."""
        return self._run.limits_leave(self._replicas[self._turn], queries)

    def tick(self, under_way: Sequence[Job[Any]] = ()) -> None:
        """Report nothing: it is short."""

    def write(self, result: SingleQueryResult[J], device: str) -> None:
        self._queries[device] += 1

    def flush(self) -> None:
        add_queries(self._store, CampaignState.measuring_queries, self._queries)
        self._queries.clear()


class RepeatsStage(_Measurement[SeedRecord], _SeedQueries):
    """Whether the answers to the seeds are constant, and whether those to the first ones repeat.

    Nothing is asked where the query limits don't leave as many queries, nor where devices may differ:
    another one may have answered before; nor in a replay, most of whose inputs deviate and are
    confirmed anyway.
    """

    name = "repeats"
    _counts: AnswerCounts | None = None

    def pending(self, replica: str) -> list[SeedRecord]:
        answered = (seed for seed in self._store.seeds(replica) if seed.outputs is not None)
        return list(islice(answered, SEEDS_REPEATED))

    def again(self) -> bool:
        """Store the counts of the round that has ended, and begin the next one."""
        self._close()
        is_asked = not self._store.state.is_replay and not self._config.fleet.allow_mixed
        while self.turn_to_next(self._store.state.answers_checked):
            self._counts = {"seeds": 0, "deployed": 0, "original": 0}
            if is_asked and self.leaves(len(self.pending(self._turn))):
                return True
            self._close()
        return False

    def write(self, result: SingleQueryResult[SeedRecord], device: str) -> None:
        super().write(result, device)
        now, before = result.outputs, result.key.outputs
        if now is not None and before is not None and (counts := self._counts) is not None:
            counts["seeds"] += 1
            counts["original"] += _is_other(before.original, now.original)
            counts["deployed"] += _is_other(before.deployed, now.deployed)

    def _close(self) -> None:
        if self._counts is None:
            return
        constant = AnswerCounts(
            deployed=count_constant(self._store, self._turn, "deployed"),
            original=count_constant(self._store, self._turn, "original"),
        )
        about = {self._turn: AnswersChecked(self._counts, constant)}
        self._store.state.answers_checked = {**self._store.state.answers_checked, **about}
        self._counts = None


class PartnersStage(_Measurement[str]):
    """Both models' scores on the partners that are no seeds, which are stored.

    Not where the models have inputs for each seed: only seeds have those. It returns whether the
    query limits leave as many queries. Raises DeviceAwayError.
    """

    name = "partners"
    is_limited = True
    _fits = True

    def begin(self) -> bool:
        seeds = {seed.sample for seed in self._store.seeds()}
        self._others = sorted(set(partner_samples(self._store) or ()) - seeds)
        self._scores: dict[str, tuple[list[float], list[float]]] = {}
        self._is_open = False
        return bool(self._others) and not self._rows and self.again()

    def pending(self, replica: str) -> list[str]:
        return self._others

    def job(self, item: str, replica: str) -> SingleQueryJob[str]:
        return SingleQueryJob(item, self._store.get_sample(item))

    def again(self) -> bool:
        """Store the scores of the round that has ended, and begin the next one."""
        answers = self._store.state.partner_answers
        if self._is_open:
            answers = {**answers, self._turn: self._scores}
            self._store.state.partner_answers = answers
        self._is_open, self._scores = self.turn_to_next(answers), {}
        self._fits = not self._is_open or self.leaves(len(self._others))
        return self._is_open and self._fits

    def write(self, result: SingleQueryResult[str], device: str) -> None:
        super().write(result, device)
        original, deployed = (result.outputs or (None, None))[:2]
        if original is None or deployed is None:
            return
        if is_finite(original) and is_finite(deployed):
            scores = class_scores(original).tolist(), class_scores(deployed).tolist()
            self._scores[result.key] = scores

    def end(self) -> bool:
        return self._fits


def _stacked(raws: Sequence[Any]) -> list[NDArray[Any]]:
    """Return raw outputs to several seeds as one array an output; none of text, and of changing shapes."""
    runs = [raw if isinstance(raw, tuple | list) else (raw,) for raw in raws]
    if not all(isinstance(output, np.ndarray) for run in runs for output in run):
        return []
    if len({tuple((output.shape, output.dtype.str) for output in run) for run in runs}) != 1:
        return []
    count = min(len(runs), _KEPT_BYTES // max(1, sum(output.nbytes for output in runs[0])))
    if count < _FEWEST_KEPT:
        return []
    # with two axes at least: what has one is taken for audio by the store
    return [
        np.stack(outputs).reshape(count, *(outputs[0].shape or (1,)))
        for outputs in zip(*runs[:count], strict=True)
    ]


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
