"""The run itself: seeds, both models, seed queries, preflight, search; every result on disk at once."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.identity import environment, model_identity
from edgeflare.campaign.mismatch import better_explanation
from edgeflare.campaign.pair import DeployedModel, Side, readers, resolve_pair
from edgeflare.campaign.preflight import check_labels, check_pair, slowness
from edgeflare.campaign.progress import Notice, Progress, Stage, Step, silent
from edgeflare.campaign.records import outcome_record
from edgeflare.campaign.seed_queries import answered, ask_both
from edgeflare.devices import (
    DeviceSession,
    load_inventory,
    open_device,
    resolve_device,
    runtime_for,
)
from edgeflare.errors import UsageError
from edgeflare.models import OriginalModel, OutputReader, output_classes
from edgeflare.models.input_options import input_size, options_in_file
from edgeflare.oracles import LabelOracle
from edgeflare.scheduler import Budget, ChainResult, Rules, Scheduler
from edgeflare.search import build_strategy
from edgeflare.seeds import LoadedSeeds, load_label_mapping, load_seeds
from edgeflare.store import Store
from edgeflare.types import Seed, Status, Strategy

Prompt = Callable[[str], str | None]


def run_campaign(
    config: CampaignConfig, *, ask: Prompt | None = None, progress: Progress = silent
) -> Path:
    """Run a campaign to its end and return its folder.

    `ask` is asked for a passphrase or password where a device wants one; `progress` is told what
    happens. Raises an `EdgeFlareError` of any kind; what was found before it is in the folder.
    """
    for model in (config.original, config.deployed):
        if model.path.is_dir():
            raise UsageError(f"{model.path} is a folder; name the model file in it")
        if not model.path.is_file():
            raise UsageError(f"there is no model file {model.path}")
    if config.out is not None:
        Store.check_free(config.out)
    strategy = build_strategy(
        config.search.strategy, config.search.options, config.search.operators
    )
    device = resolve_device(config.device, load_inventory(config.inventory))
    if config.python is not None:
        device = device.model_copy(update={"python": config.python})
    original = OriginalModel(
        config.original.path,
        config.original.runtime or runtime_for(config.original.path),
        config.original.options,
    )
    try:
        loaded = _load_seeds(config, original, progress)
        progress(Stage("device", device.name))
        session = open_device(
            device,
            config.deployed.path,
            runtime=config.deployed.runtime,
            options=config.deployed.options,
            ask=ask,
            progress=lambda text: progress(Stage("device", text)),
        )
        try:
            return _Run(config, original, session, progress).run(loaded, strategy)
        finally:
            session.close()
    finally:
        original.close()


def _load_seeds(config: CampaignConfig, original: OriginalModel, progress: Progress) -> LoadedSeeds:
    told = options_in_file(original.metadata, str(original.path))
    if config.seeds.size and not (config.original.input.size or told.size):
        told = told.model_copy(update={"size": config.seeds.size})
    size, channels = input_size(original.input, config.original.input, told, "the original model")
    progress(Stage("seeds", config.seeds.path.name))
    mapping = load_label_mapping(config.seeds.labels) if config.seeds.labels else None
    return load_seeds(
        config.seeds.path,
        size=config.seeds.size or size,
        channels=channels,
        resize=config.seeds.resize,
        labels=mapping,
        limit=config.seeds.limit,
    )


class _Run:
    """One campaign with both models at hand."""

    def __init__(
        self,
        config: CampaignConfig,
        original: OriginalModel,
        session: DeviceSession,
        progress: Progress,
    ) -> None:
        self._config = config
        self._original = original
        self._session = session
        self._progress = progress
        self._workers = max(1, (os.cpu_count() or 2) - 1)

    def run(self, loaded: LoadedSeeds, strategy: Strategy) -> Path:
        """Make the campaign's folder and fill it."""
        sides = resolve_pair(self._config, self._original, self._session)
        check_labels(loaded.seeds, output_classes(sides[0].output, "the original model"))
        folder = self._config.out or _fresh_folder(self._config.deployed.path.stem)
        described = self._config.model_copy(update={"out": folder}).model_dump(mode="json")
        with Store.create(folder, described, environment=environment()) as store:
            try:
                self._fill(loaded, sides, strategy, store)
            except BaseException:
                if not store.finished_seed_ids():
                    store.discard()
                raise
        return folder

    def _fill(
        self, loaded: LoadedSeeds, sides: tuple[Side, Side], strategy: Strategy, store: Store
    ) -> None:
        store.add_seeds((seed.id, seed.sample, seed.label) for seed in loaded.seeds)
        self._tell_of_seeds(loaded, store)
        oracle = LabelOracle()
        self._progress(Stage("seed queries", "both models", len(loaded.seeds)))
        answers = ask_both(
            loaded.seeds,
            self._original,
            self._session,
            workers=self._workers,
            progress=self._progress,
        )
        read, doubts = readers(self._config, sides, (answers.original, answers.deployed))
        self._original.read_with(read[0])
        seeds = answered(loaded.seeds, answers, read, oracle)
        explanation = better_explanation(
            seeds,
            (sides[0].spec, sides[1].spec),
            lambda sample, spec: self._original.scores([sample], spec)[0],
        )
        notices = check_pair(seeds, explanation, allow=self._config.allow_disagreement)
        slow = slowness(answers.seconds, self._config.search)
        for notice in (*doubts, *notices, *slow):
            self._notice(notice, store)
        for seed in seeds:
            store.set_seed_outputs(seed.id, seed.outputs)
        store.set_models(
            *(
                model_identity(model.path, side, reader, in_effect)
                for model, side, reader, in_effect in zip(
                    (self._config.original, self._config.deployed),
                    sides,
                    read,
                    (self._original.in_effect, self._session.model.runtime),
                    strict=True,
                )
            )
        )
        self._search(seeds, strategy, read, oracle, store)

    def _search(
        self,
        seeds: list[Seed],
        strategy: Strategy,
        read: tuple[OutputReader, OutputReader],
        oracle: LabelOracle,
        store: Store,
    ) -> None:
        config = self._config
        device = store.add_device(self._session.fingerprint, config.device)
        scheduler = Scheduler(
            self._original,
            DeployedModel(self._session, read[1]),
            oracle,
            Rules(
                strategy,
                Budget(config.search.max_queries or None, config.search.timeout_s or None),
                config.search.confirmations,
                config.search.seed,
                store,
            ),
            concurrency=config.concurrency,
            workers=self._workers,
        )
        tally = _Tally(store, device, self._progress, scheduler)
        self._progress(Stage("search", f"{config.search.strategy} on {config.device}", len(seeds)))
        try:
            scheduler.run(seeds, tally, tally.tell)
        except BaseException:
            if tally.done:
                kept = f"{tally.done} of {len(seeds)} seeds are finished and kept in {store.folder}"
                self._progress(Notice(kept))
            raise

    def _tell_of_seeds(self, loaded: LoadedSeeds, store: Store) -> None:
        for skipped in loaded.skipped:
            store.add_skipped(skipped.name, skipped.reason)
        if loaded.skipped:
            shown = "; ".join(f"{one.name} ({one.reason})" for one in loaded.skipped[:5])
            more = len(loaded.skipped) - 5
            self._progress(
                Notice(
                    f"{len(loaded.skipped)} files skipped: {shown}"
                    + (f"; and {more} more" if more > 0 else "")
                )
            )
        for notice in loaded.notices:
            self._notice(notice, store)

    def _notice(self, text: str, store: Store) -> None:
        store.add_notice(text)
        self._progress(Notice(text))


class _Tally:
    """Writes each result to the store, then counts it."""

    def __init__(self, store: Store, device: str, progress: Progress, scheduler: Scheduler) -> None:
        self._store = store
        self._device = device
        self._progress = progress
        self._scheduler = scheduler
        self._found = self._searched = self._queries = 0
        self.done = 0

    def __call__(self, result: ChainResult) -> None:
        record = outcome_record(result, self._device)
        self._store.add_outcome(record)
        self.done += 1
        self._found += record.status is Status.FOUND
        self._searched += record.searched
        self._queries += record.search_queries
        self.tell()

    def tell(self) -> None:
        """Say how far the campaign is; queries of searches in flight count, too."""
        queries = self._queries + self._scheduler.queries_in_flight
        self._progress(Step(self.done, self._found, self._searched, queries))


def _fresh_folder(stem: str) -> Path:
    base = Path("campaigns") / f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    candidates = [base, *(base.with_name(f"{base.name}-{n}") for n in range(2, 100))]
    return next(folder for folder in candidates if not folder.exists())
