"""Opens seeds as a model takes them, stores them, and writes calibration data of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from edgeflare._internal.text import counted, first_of, first_problem
from edgeflare.answers.text_interfaces import stated_task
from edgeflare.campaign.events import Notice, Reporter, Stage, Step
from edgeflare.campaign.priority import is_ordered_before, order_of
from edgeflare.campaign.resolution import answered_with
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import SeedsConfig
from edgeflare.errors import ModelError, SeedError, UsageError
from edgeflare.models import (
    InputOptions,
    OriginalModel,
    audio_input,
    known_of,
    prepare,
    resolve_input,
)
from edgeflare.models.image_input import options_in_file, sample_size
from edgeflare.models.input_metadata import written_size
from edgeflare.seeds import SeedSource, load_label_mapping, open_audio_seeds, open_seeds
from edgeflare.store import Store
from edgeflare.store.database import BATCH, batches
from edgeflare.store.samples import LazySamples
from edgeflare.store.state import Partner
from edgeflare.strategies import check_operators, check_search
from edgeflare.survey import PARTNERS
from edgeflare.types import Issue, SeedInput, Task
from edgeflare.words.inputs import AUDIO_IS_STATED
from edgeflare.words.preflight import sentence

Priority: TypeAlias = Callable[[Iterable[SeedInput]], NDArray[np.float64]]
"""Returns how promising each seed is, [seeds]; it may iterate several times."""

_WHOSE = "the original model"
_FOR_IMAGES = ("size", "resize")
_FOR_AUDIO = ("cut", "resample")


def seed_source(config: CampaignConfig, original: OriginalModel) -> SeedSource:
    """Return the source of the seeds; none is read yet.

    It has all of them where they are ordered by priority before they are limited.

    Raises SeedError where there are none, UsageError for options and mutation operators that the
    model's kind of input, and its kind of answer, has no use for, and where a library that the
    search needs is missing.
    """
    seeds = config.seeds
    audio = expected_audio(config, original)
    check_operators(config.search.operators, "image" if audio is None else "audio")
    if audio is None:
        _refuse(seeds, _FOR_AUDIO, "audio", "images")
    else:
        _refuse(seeds, _FOR_IMAGES, "images", "audio")
    check_search_options(config, stated_task(config, original.decoder), audio=audio is not None)
    if audio is None:
        return _images(config, original)
    rate, samples = audio
    return open_audio_seeds(
        seeds.path,
        rate=rate,
        samples=samples,
        cut=seeds.cut,
        resample=seeds.resample,
        labels=_labels(seeds),
        limit=_limit(seeds),
    )


def check_search_options(config: CampaignConfig, task: Task, *, audio: bool) -> None:
    """Check the search's options for models of a task that take audio, else images.

    Raises UsageError for options and operators without a meaning for these, and where a library
    that the search needs is missing.
    """
    search = config.search
    check_search(
        search.strategy,
        search.options,
        search.operators,
        kind="audio" if audio else "image",
        answered=answered_with(search, task, audio=audio),
    )


def partner_source(config: CampaignConfig, original: OriginalModel) -> SeedSource | None:
    """Return the source of the partners where the first seeds aren't them; else None.

    That is where `limit` takes fewer, or seeds are ordered by priority. Raises as `seed_source`.
    """
    limit = config.seeds.limit
    if not is_ordered_before(config.seeds) and (limit is None or limit >= PARTNERS):
        return None
    seeds = config.seeds.model_copy(update={"limit": PARTNERS, "prioritise": None})
    return seed_source(config.model_copy(update={"seeds": seeds}), original)


def partners(store: Store) -> LazySamples:
    """Return the first 32 inputs of the seeds' source, whatever its limit; read on access.

    Of a campaign that did not store them they are its first seeds. Raises StoreError.
    """
    stored = partner_samples(store)
    if stored is None:
        return store.seed_samples()[:PARTNERS]
    return LazySamples(store.get_sample, stored)


def copy_partners(store: Store, to: Store) -> None:
    """Store a campaign's partners in another one, where they aren't its first seeds.

    Raises StoreError.
    """
    stored = store.state.partners
    for one in stored or ():
        to.put_sample(store.get_sample(one.sample))
    if stored is not None:
        to.state.partners = stored


def partner_samples(store: Store) -> list[str] | None:
    """Return the digests of the partners; None where they are the first seeds.

    Raises StoreError.
    """
    stored = store.state.partners
    if stored is None:
        return None
    return [one.sample for one in stored]


def expected_audio(
    config: CampaignConfig, original: OriginalModel
) -> tuple[int, int | None] | None:
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
    if seeds.resize is not None and original.given.parts > 1:
        raise UsageError(
            "the pictures of inputs that are searched together are not resized: leave --resize out, "
            "and give pictures of the model's size beside each other"
        )
    is_open = None in original.input.shape[1:]
    if (seeds.size or is_open) and not (config.original.input.size or known.size):
        size_in_file = written_size(original.path, original.metadata) if is_open else None
        known = known.model_copy(update={"size": size_in_file or seeds.size})
    size, channels = sample_size(original.input, config.original.input, known, _WHOSE)
    return open_seeds(
        seeds.path,
        size=seeds.size or size,
        channels=channels,
        resize=seeds.resize,
        labels=_labels(seeds),
        limit=_limit(seeds),
        parts=original.given.parts,
    )


def _limit(seeds: SeedsConfig) -> int | None:
    """Return how many seeds of the source are read."""
    return None if is_ordered_before(seeds) else seeds.limit


def _labels(seeds: SeedsConfig) -> dict[str, int] | None:
    return load_label_mapping(seeds.labels) if seeds.labels else None


def _refuse(seeds: SeedsConfig, names: tuple[str, ...], theirs: str, takes: str) -> None:
    for name in names:
        if getattr(seeds, name):
            raise UsageError(
                f"seeds.{name} is for {theirs}, and {_WHOSE} takes {takes}: leave it out"
                + AUDIO_IS_STATED * (takes == "images")
            )


def store_seeds(
    source: SeedSource,
    config: SeedsConfig,
    store: Store,
    reporter: Reporter,
    *,
    classes: int | None,
    rate: int | None = None,
    partners: SeedSource | None = None,
    priority: Priority | None = None,
) -> None:
    """Store all seeds that are not stored yet; do nothing where that is complete.

    Their labels are of so many `classes`; None: the models don't answer with one class, and
    labels are ignored.
    `rate`: that of audio, in Hz. `partners`: the source of inputs that are stored with the
    campaign, but not as seeds; None: they are the first seeds. `priority` returns how promising
    each seed of the source is: the most promising ones are stored, in that order.
    """
    if store.state.seeds_complete:
        return
    if rate is not None:
        store.set_sample_rate(rate)
    if priority is None:
        labelled = _store_as_they_come(source, config, store, reporter, classes)
    else:
        labelled = 0  # models that don't answer with one class have no priority
        _store_by_priority(source, config, store, reporter, classes, priority)
    if source.skipped:
        skipped = [f"{one.name} ({one.reason})" for one in source.skipped]
        count = counted(len(skipped), "file")
        reporter(Notice(f"{count} skipped: {first_of(skipped)}"))
    notices = list(source.notices)
    if labelled:
        notices.append(sentence(Issue("ignored-labels", "note", {"seeds": labelled})))
    for notice in notices:
        reporter(Notice(notice))
    if partners is not None:
        stored = [
            Partner(one.id, store.put_sample(one.sample)) for one in islice(partners, PARTNERS)
        ]
        store.state.partners = stored
    store.complete_seeds(source.skipped, notices)


def _store_as_they_come(
    source: SeedSource,
    config: SeedsConfig,
    store: Store,
    reporter: Reporter,
    classes: int | None,
) -> int:
    """Store the seeds of a source; return how many have a label that is ignored."""
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
    return labelled


def _store_by_priority(
    source: SeedSource,
    config: SeedsConfig,
    store: Store,
    reporter: Reporter,
    classes: int | None,
    priority: Priority,
) -> None:
    """Store the most promising seeds of a source, all or none.

    The source is read for the priorities first, and then for the samples to be stored.
    """
    if stored := store.seed_count():  # by a process that ended right after it
        count = sum(1 for _ in source)
    else:
        watched = _Watched(source, config, reporter)
        found = priority(watched)
        ids, skipped, notices = watched.ids, source.skipped, source.notices
        if found.shape != (len(ids),):
            raise UsageError(
                f"{config.prioritise} gives {found.size:,} priorities for {len(ids):,} seeds: repair or "
                "uninstall that plug-in"
            )
        wanted = [ids[place] for place in order_of(found)[: config.limit]]
        count, stored = len(ids), len(wanted)
        reporter(Stage("seeds", config.path.name, stored))
        store.add_seeds(_counted(_chosen(source, set(wanted), classes), reporter), wanted)
        # the second pass may end before the last seed
        source.skipped, source.notices = skipped, notices
    if stored < count:
        data = {"seeds": stored, "of": count, "priority": config.prioritise}
        source.notices.append(sentence(Issue("most-promising", "note", data)))


def _chosen(source: SeedSource, ids: set[str], classes: int | None) -> Iterator[SeedInput]:
    """Yield the seeds of these ids, in the source's order; reading ends with the last of them."""
    for seed in source:
        if seed.id not in ids:
            continue
        if classes is not None:
            check_labels([seed], classes)
        yield seed
        ids.remove(seed.id)
        if not ids:
            return


def check_labels(seeds: Sequence[SeedInput], classes: int) -> None:
    """Raise SeedError, naming a seed, where a label is no class number of the models."""
    for seed in seeds:
        if seed.label is not None and not 0 <= seed.label < classes:
            raise SeedError(
                f"seed {seed.id} has the label {seed.label}, but the models have {classes} "
                f"classes, 0 to {classes - 1}: correct the labels, or leave them out"
            )


def _counted(seeds: Iterable[SeedInput], reporter: Reporter) -> Iterator[SeedInput]:
    """Yield seeds, and report how many there were."""
    done = 0
    for done, seed in enumerate(seeds, start=1):
        yield seed
        if not done % BATCH:
            reporter(Step(done))
    reporter(Step(done))


class _Watched:
    """The seeds of a source, whose passes are reported; `ids` are those of the last one."""

    def __init__(self, source: SeedSource, config: SeedsConfig, reporter: Reporter) -> None:
        self._source = source
        self._what = f"{config.path.name}, by {config.prioritise}"
        self._reporter = reporter
        self.ids: list[str] = []

    def __iter__(self) -> Iterator[SeedInput]:
        self._reporter(Stage("seeds", self._what, self._source.total))
        ids: list[str] = []
        for seed in _counted(self._source, self._reporter):
            ids.append(seed.id)
            yield seed
        self.ids = ids


def write_calibration(
    model: Path,
    seeds: Path,
    target: Path,
    *,
    stated: Mapping[str, Any] | None = None,
    resize: str | None = None,
    limit: int | None = 500,
) -> int:
    """Write prepared seeds to `target`, a ``.npy``; return how many.

    It holds float32 [N, ...model's input shape], each entry one input tensor: what a device takes
    as `calibration` to build an int8 engine of the ``.onnx`` file `model`. `seeds` are a folder of
    images, one image, or an ``.npz`` with `images`; `resize` brings them to the model's size,
    `limit` takes the first. Of a model of audio they are audio files; of longer ones the beginning
    is taken, other rates are resampled. `stated` is what a campaign's `[deployed.input]` says, such
    as {"scale": "1/255"}. Raises ModelError, SeedError, UsageError.
    """
    if target.suffix != ".npy":
        raise UsageError(f"{target}: calibration data is a .npy file")
    try:
        options = InputOptions.model_validate(stated or {})
    except ValidationError as error:
        raise UsageError(f"the input can't be as stated: {first_problem(error)}") from error
    loaded = OriginalModel(model, "onnx", {})
    try:
        tensor = loaded.input
        if len(loaded.inputs) > 1:
            raise ModelError(f"{model} has several inputs, and models with one are calibrated")
        in_file = options_in_file(loaded.metadata, str(model))
    finally:
        loaded.close()
    if tensor.dtype != "float32":
        raise ModelError(
            f"{model} takes {tensor.dtype}; only a model of float32 is calibrated for int8"
        )
    spec = resolve_input(tensor, options, in_file, "the model")
    audio = audio_input(tensor, options, in_file, "the model")
    source: SeedSource
    if audio is None:
        size, channels = sample_size(tensor, options, in_file, "the model")
        source = open_seeds(seeds, size=size, channels=channels, resize=resize, limit=limit)
    else:
        rate, samples = audio
        if samples is None:
            raise UsageError(
                f"{model} takes audio of any length: state one for calibration, such as "
                f"samples={rate}"
            )
        source = open_audio_seeds(
            seeds, rate=rate, samples=samples, cut="first", resample=True, limit=limit
        )
    tensors = np.stack([prepare(seed.sample, spec) for seed in source])
    try:
        np.save(target, tensors)
    except OSError as error:
        raise UsageError(f"can't write {target}: {error.strerror or error}") from error
    return len(tensors)
