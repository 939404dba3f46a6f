"""The queries of both models on every seed of the store."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, cast

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

FIRST_SEEDS = 64
"""Number of seeds by which the kind of a model's output is detected."""
_HOPELESS = 3
"""After this number of consecutive seeds that the device can't answer, it is taken to answer none."""


class OutputReaders(NamedTuple):
    """How the two models' raw outputs become answers, and the seconds for the first seeds: the device's, the original's."""

    original: OutputReader
    deployed: OutputReader
    seconds: Sequence[float] = ()
    host_seconds: Sequence[float] = ()


class SeedStage:
    """Asks both models about every seed that they have not answered; each seed is inferred alone."""

    def __init__(
        self,
        config: CampaignConfig,
        original: OriginalModel,
        fleet: Fleet,
        oracle: Oracle,
        store: Store,
        reporter: Reporter,
        *,
        workers: int,
    ) -> None:
        self._config = config
        self._original = original
        self._fleet = fleet
        self._store = store
        self._reporter = reporter
        self._workers = workers
        self._oracle = oracle

    def check_limits(self, replicas: Mapping[str, Sequence[str]]) -> None:
        """Raise UsageError where the query limits leave too little for the seeds that are not answered yet."""
        fleet, asked = self._config.fleet, queries_before(self._store)
        wanted = {replica: len(list(self._unanswered(replica))) for replica in replicas}
        total = fleet.total_queries
        if total is not None:
            _check_limit(
                "total_queries", total, sum(wanted.values()), max(0, total - asked.total())
            )
        each = fleet.device_queries
        if each is None:
            return
        for replica, names in replicas.items():
            left = sum(max(0, each - asked[name]) for name in names)
            _check_limit("device_queries", each, wanted[replica], left)

    def read(
        self, sides: tuple[ModelInterface, ModelInterface], replica: str, names: Sequence[str]
    ) -> OutputReaders:
        """Return how outputs become answers: as stored, else as detected on the first seeds' outputs.

        Those come from the devices of these names, which serve `replica`; they are kept.
        """
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

    def answer(self, read: OutputReaders, replicas: Mapping[str, Sequence[str]]) -> None:
        """Ask about the rest; `replicas` gives each replica the names of the devices that serve it.

        Seeds that a device can't answer on get an outcome that says so. Raises
        InferenceFailedError where it can't answer on any.
        """
        self._original.read_with(read.original)
        devices = {session.name: session for session in self._fleet}
        for session in self._fleet:
            session.read_with(read.deployed.read)
        batches = {
            replica: _Batch(self._store, replica, self._config.search.seed) for replica in replicas
        }
        replica_of = {name: replica for replica, names in replicas.items() for name in names}
        counts = {replica: self._count_answered(replica) for replica in replicas}
        total = self._store.seed_count() * len(replicas)
        done = sum(counts.values())
        self._reporter(Stage("seed queries", "both models", total))
        self._reporter(Step(done))
        feeds = {
            replica: Feed[SingleQueryResult[SeedRecord]](self._questions(replica))
            for replica in replicas
        }

        def keep(answered: SingleQueryResult[SeedRecord], name: str) -> None:
            nonlocal done
            done += 1
            batches[replica_of[name]].add(answered, name)

        scheduler = Scheduler(
            self._original,
            [devices[name] for name in replica_of],
            [feeds[replica] for replica in replica_of.values()],
            self._oracle,
            workers=self._workers,
            one_trip=self._config.one_trip,
            limits=self._patience(),
        )
        try:
            scheduler.run(keep, lambda: self._reporter(Step(done)))
        finally:
            for batch in batches.values():
                batch.flush()
        self._reporter(Step(done))
        if scheduler.left:
            raise DeviceAwayError(
                f"seeds are left that were not asked about: {self._fleet.describe_unavailable()}"
            )
        for replica, batch in batches.items():
            if batch.failure is not None and not self._count_answered(replica):
                raise InferenceFailedError(batch.failure)

    def _first_answers(
        self, names: Sequence[str], original: Original
    ) -> list[SingleQueryResult[SeedRecord]]:
        """Return both models' raw outputs on the first seeds."""
        first = list(islice(self._store.seeds(), FIRST_SEEDS))
        found: dict[str, SingleQueryResult[SeedRecord]] = {}
        failures: list[str] = []
        asked: Counter[str] = Counter()
        sessions = [session for session in self._fleet if session.name in names]
        for session in sessions:
            session.read_with(as_output)
        feed: Feed[SingleQueryResult[SeedRecord]] = Feed(self._question(seed) for seed in first)
        self._reporter(Stage("seed queries", "both models", self._store.seed_count()))

        def keep(answered: SingleQueryResult[SeedRecord], name: str) -> None:
            asked[name] += 1
            if answered.outputs is not None:
                found[answered.key.id] = answered
                return
            failures.append(answered.detail)
            if len(failures) >= _HOPELESS and not found:
                raise InferenceFailedError(answered.detail)

        scheduler = Scheduler(
            original,
            sessions,
            [feed] * len(sessions),
            _NoOracle(),
            workers=self._workers,
            one_trip=self._config.one_trip,
            limits=self._patience(),
        )
        try:
            scheduler.run(keep, lambda: self._reporter(Step(len(found))))
        finally:
            add_queries(self._store, SEED_QUERIES, asked)
        if not found:
            raise InferenceFailedError(failures[0])
        return [found[seed.id] for seed in first if seed.id in found]

    def _patience(self) -> FleetLimits:
        fleet = self._config.fleet
        return FleetLimits(handover_s=fleet.handover_s, patience_s=fleet.patience_s)

    def _question(self, seed: SeedRecord) -> SingleQueryJob[SeedRecord]:
        return SingleQueryJob(seed, self._store.get_sample(seed.sample))

    def _questions(self, replica: str) -> Iterator[SingleQueryJob[SeedRecord]]:
        return map(self._question, self._unanswered(replica))

    def _unanswered(self, replica: str) -> Iterator[SeedRecord]:
        finished = self._store.finished_seed_ids(replica)
        for seed in self._store.seeds(replica):
            if seed.outputs is None and seed.id not in finished:
                yield seed

    def _count_answered(self, replica: str) -> int:
        return sum(seed.outputs is not None for seed in self._store.seeds(replica))


class _Batch:
    """Buffers answers for the store: one transaction costs as much as many answers."""

    _SIZE = 64

    def __init__(self, store: Store, replica: str, campaign_seed: int) -> None:
        self._store = store
        self._replica = replica
        self._campaign_seed = campaign_seed
        self._waiting: list[SeedAnswer] = []
        self._asked: Counter[str] = Counter()
        self.failure: str | None = None

    def add(self, answered: SingleQueryResult[SeedRecord], device: str) -> None:
        seed = answered.key
        self._asked[device] += 1
        if answered.outputs is None:
            self.failure = answered.detail
            self._store.add_outcome(
                _failed(seed, answered.detail, self._replica, device, self._campaign_seed)
            )
            return
        original, deployed, decision = answered.outputs
        assert original is not None  # noqa: S101 - both were asked
        assert deployed is not None  # noqa: S101
        self._waiting.append(SeedAnswer(seed.id, original, deployed, decision))
        if len(self._waiting) >= self._SIZE:
            self.flush()

    def flush(self) -> None:
        self._store.add_seed_answers(self._waiting, self._replica)
        self._waiting = []
        add_queries(self._store, SEED_QUERIES, self._asked)
        self._asked.clear()


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
    """Look for the seeds; none is read yet.

    Raises SeedError where there are none, UsageError for options and mutation operators that the model's kind of input,
    and its kind of answer, has no use for, and where a library that the search from audio needs is missing.
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
    """Return (rate in Hz, samples; None for clips of any length) of models of audio, None for those of images.

    What the original's file and input don't tell, the deployed model's stated input does. Raises UsageError.
    """
    return audio_input(original.input, config.original.input, _told(config, original), _WHOSE)


def _told(config: CampaignConfig, original: OriginalModel) -> InputOptions:
    in_file = options_in_file(original.metadata, str(original.path))
    return known_of(in_file, config.deployed.input, InputOptions())


def _images(config: CampaignConfig, original: OriginalModel) -> SeedSource:
    seeds, told = config.seeds, _told(config, original)
    if seeds.size and not (config.original.input.size or told.size):
        told = told.model_copy(update={"size": seeds.size})
    size, channels = input_size(original.input, config.original.input, told, _WHOSE)
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


_SHOWN = 5


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

    Their labels are of so many `classes`; None: the models are speech recognisers, and labels are ignored. `rate`: that
    of audio, in Hz.
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
        shown = "; ".join(f"{one.name} ({one.reason})" for one in source.skipped[:_SHOWN])
        more = len(source.skipped) - _SHOWN
        count = "1 file" if len(source.skipped) == 1 else f"{len(source.skipped)} files"
        reporter(Notice(f"{count} skipped: {shown}" + (f"; and {more} more" if more > 0 else "")))
    notices = list(source.notices)
    if labelled:
        notices.append(
            f"the labels of {labelled} seeds are ignored: speech recognisers have no classes"
        )
    for notice in notices:
        reporter(Notice(notice))
    store.complete_seeds(source.skipped, notices)
