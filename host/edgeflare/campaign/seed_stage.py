"""The queries of both models on every seed of the store."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, TypeVar, cast

from edgeflare._internal.text import counted, first_of
from edgeflare.campaign.events import Notice, Reporter, Stage, Step
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.model_pair import (
    ModelInterface,
    RawOriginal,
    readers,
    transcribes,
)
from edgeflare.campaign.preflight import check_labels
from edgeflare.campaign.provenance import model_identity
from edgeflare.campaign.settings.config import CampaignConfig, SeedsConfig
from edgeflare.campaign.status import add_queries, queries_before
from edgeflare.errors import DeviceAwayError, InferenceFailedError, UsageError
from edgeflare.models import (
    InputOptions,
    OriginalModel,
    OutputReader,
    RawOutput,
    as_output,
    audio_input,
    known_of,
)
from edgeflare.models.image_input import input_size, options_in_file
from edgeflare.oracles import Oracle
from edgeflare.scheduler import (
    Feed,
    FleetLimits,
    Original,
    Scheduler,
    SingleQueryJob,
    SingleQueryResult,
    chain_seed,
)
from edgeflare.seeds import SeedSource, load_label_mapping, open_audio_seeds, open_seeds
from edgeflare.store import (
    SEED_QUERIES,
    OutcomeRecord,
    SeedAnswer,
    SeedRecord,
    Store,
)
from edgeflare.store.database import batches
from edgeflare.strategies import check_audio_search, check_operators
from edgeflare.types import Decision, Output, Sample, Status

_R = TypeVar("_R")

FIRST_SEEDS = 64
"""Number of seeds by which the kind of a model's output is detected."""
_HOPELESS = 3
"""Number of consecutive failures from the first seed on after which a device is given up."""


class OutputReaders(NamedTuple):
    """How raw outputs become answers, and the seconds of the first seeds' queries."""

    original: OutputReader
    deployed: OutputReader
    seconds: Sequence[float] = ()
    host_seconds: Sequence[float] = ()


class CampaignStage:
    """Base of the stages that query devices; `replicas` has the names of each replica's devices."""

    def __init__(
        self,
        config: CampaignConfig,
        original: OriginalModel,
        fleet: Fleet,
        oracle: Oracle,
        store: Store,
        reporter: Reporter,
        replicas: Mapping[str, Sequence[str]],
    ) -> None:
        self._config = config
        self._original = original
        self._fleet = fleet
        self._store = store
        self._reporter = reporter
        self._oracle = oracle
        self._replicas = replicas
        self._replica_of = {name: replica for replica, names in replicas.items() for name in names}

    def _scheduler(
        self,
        feeds: Mapping[str, Feed[_R]],
        reader: OutputReader | None,
        *,
        original: Original | None = None,
        oracle: Oracle | None = None,
        limits: FleetLimits | None = None,
        concurrency: int | None = None,
        spent: Mapping[str, int] | None = None,
    ) -> Scheduler[_R]:
        """Return a scheduler for the devices that `feeds` names, whose outputs `reader` reads."""
        sessions = [session for session in self._fleet if session.name in feeds]
        for session in sessions:
            session.read_with(as_output if reader is None else reader.read)
        fleet = self._config.fleet
        patience = FleetLimits(handover_s=fleet.handover_s, patience_s=fleet.patience_s)
        return Scheduler(
            original or self._original,
            sessions,
            [feeds[session.name] for session in sessions],
            oracle or self._oracle,
            workers=os.cpu_count() or 2,
            concurrency=concurrency,
            one_trip=self._config.one_trip,
            limits=limits or patience,
            asked=spent or {},
        )

    def _by_device(self, feeds: Mapping[str, Feed[_R]]) -> dict[str, Feed[_R]]:
        """Return the feed of each device, from those of the replicas."""
        return {name: feeds[replica] for name, replica in self._replica_of.items()}


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

        Those come from the devices of the first replica; they are stored.
        """
        replica, names = next(iter(self._replicas.items()))
        models = self._store.models
        if models:
            original, deployed = (
                side.reader(models[which]["output"]["kind"])
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
        for doubt in doubts:
            self._reporter.notice(doubt)
        self._store.set_models(
            model_identity(
                self._config.original.path, sides[0], original, self._original.in_effect
            ),
            model_identity(
                self._config.deployed.path,
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
            for buffer in buffers.values():
                buffer.flush()
        self._reporter(Step(done))
        if scheduler.left:
            raise DeviceAwayError(
                f"seeds are left that the models have not answered: {self._fleet.describe_unavailable()}"
            )
        for replica, buffer in buffers.items():
            if buffer.failure is not None and not self._count_answered(replica):
                raise InferenceFailedError(buffer.failure)

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
            add_queries(self._store, SEED_QUERIES, queries)
        if not found:
            raise InferenceFailedError(failures[0])
        return [found[seed.id] for seed in first if seed.id in found]

    def _query(self, seed: SeedRecord) -> SingleQueryJob[SeedRecord]:
        return SingleQueryJob(seed, self._store.get_sample(seed.sample))

    def _unanswered(self, replica: str) -> Iterator[SeedRecord]:
        finished = self._store.finished_seed_ids(replica)
        for seed in self._store.seeds(replica):
            if seed.outputs is None and seed.id not in finished:
                yield seed

    def _count_answered(self, replica: str) -> int:
        return sum(seed.outputs is not None for seed in self._store.seeds(replica))


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
                _failed(seed, answered.detail, self._replica, device, self._campaign_seed)
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
        add_queries(self._store, SEED_QUERIES, self._queries)
        self._queries.clear()


def _scored(
    answer: SingleQueryResult[SeedRecord],
    original: OutputReader,
    deployed: OutputReader,
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
            f"{name} is {limit}, which leaves {max(0, left)} queries for {wanted} seeds that are not answered yet: "
            f"raise it with --{name.replace('_', '-')}, or take fewer seeds with --limit"
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

    def answer(self, samples: Sequence[Sample]) -> tuple[Sequence[Output], Sequence[float]]:
        """Return one answer a sample, and the seconds of each."""
        answers, seconds = self._model.answer(samples)
        self.seconds += seconds
        return answers, seconds


_WHOSE = "the original model"
_FOR_IMAGES = ("size", "resize")
_FOR_AUDIO = ("cut", "resample")
_FRONT_END = (
    ", or if it takes audio state its front end, for example `--input front_end=mlperf-tiny-kws`"
)


def seed_source(config: CampaignConfig, original: OriginalModel) -> SeedSource:
    """Return the source of the seeds; none is read yet.

    Raises SeedError where there are none, UsageError for options and mutation operators that the
    model's kind of input, and its kind of answer, has no use for, and where a library that the
    search from audio needs is missing.
    """
    seeds = config.seeds
    audio = audio_taken(config, original)
    check_operators(config.search.operators, "image" if audio is None else "audio")
    if audio is None:
        _refuse(seeds, _FOR_AUDIO, "audio", "images")
        return _images(config, original)
    _refuse(seeds, _FOR_IMAGES, "images", "audio")
    search, words = config.search, transcribes(config.original, original.decoder)
    check_audio_search(search.strategy, search.options, search.operators, words=words)
    rate, samples = audio
    return open_audio_seeds(
        seeds.path,
        rate=rate,
        samples=samples,
        cut=seeds.cut,
        resample=seeds.resample,
        labels=_labels(seeds),
        limit=seeds.limit,
    )


def audio_taken(config: CampaignConfig, original: OriginalModel) -> tuple[int, int | None] | None:
    """Return a model's (rate in Hz, samples; None: any number), None for a model of images.

    What neither the original's file nor its stated input has is taken from the deployed model's.
    Raises UsageError.
    """
    return audio_input(original.input, config.original.input, _known(config, original), _WHOSE)


def _known(config: CampaignConfig, original: OriginalModel) -> InputOptions:
    in_file = options_in_file(original.metadata, str(original.path))
    return known_of(in_file, config.deployed.input, InputOptions())


def _images(config: CampaignConfig, original: OriginalModel) -> SeedSource:
    seeds, known = config.seeds, _known(config, original)
    if seeds.size and not (config.original.input.size or known.size):
        known = known.model_copy(update={"size": seeds.size})
    size, channels = input_size(original.input, config.original.input, known, _WHOSE)
    return open_seeds(
        seeds.path,
        size=seeds.size or size,
        channels=channels,
        resize=seeds.resize,
        labels=_labels(seeds),
        limit=seeds.limit,
    )


def _labels(seeds: SeedsConfig) -> dict[str, int] | None:
    return load_label_mapping(seeds.labels) if seeds.labels else None


def _refuse(seeds: SeedsConfig, names: tuple[str, ...], theirs: str, takes: str) -> None:
    for name in names:
        if getattr(seeds, name):
            raise UsageError(
                f"seeds.{name} is for {theirs}, and {_WHOSE} takes {takes}: leave it out"
                + _FRONT_END * (takes == "images")
            )


def store_seeds(
    source: SeedSource,
    config: SeedsConfig,
    store: Store,
    reporter: Reporter,
    *,
    classes: int | None,
    rate: int | None = None,
) -> None:
    """Store all seeds that are not stored yet; do nothing where that is complete.

    Their labels are of so many `classes`; None: the models are speech recognisers, and labels are
    ignored. `rate`: that of audio, in Hz.
    """
    if store.fact("seeds_complete"):
        return
    if rate is not None:
        store.set_sample_rate(rate)
    known_counts = [count for count in (source.total, config.limit) if count is not None]
    reporter(Stage("seeds", config.path.name, min(known_counts, default=None)))
    known = store.seed_ids()
    done = labelled = 0
    for batch in batches(source):
        if classes is None:
            labelled += sum(seed.label is not None for seed in batch)
        else:
            check_labels(batch, classes)
        missing = (seed for seed in batch if seed.id not in known)
        store.add_seeds(
            seed if classes is not None else replace(seed, label=None) for seed in missing
        )
        done += len(batch)
        reporter(Step(done))
    if source.skipped:
        skipped = [f"{one.name} ({one.reason})" for one in source.skipped]
        count = counted(len(skipped), "file")
        reporter(Notice(f"{count} skipped: {first_of(skipped)}"))
    notices = list(source.notices)
    if labelled:
        notices.append(
            f"the labels of {labelled} seeds are ignored: speech recognisers have no classes"
        )
    for notice in notices:
        reporter(Notice(notice))
    store.complete_seeds(source.skipped, notices)
