"""From the seeds' source to seeds in the store."""

from dataclasses import replace
from itertools import islice

from edgeflare.campaign.config import SeedsConfig
from edgeflare.campaign.preflight import check_labels
from edgeflare.campaign.progress import Notice, Stage, Step
from edgeflare.campaign.reporter import Reporter
from edgeflare.seeds import SeedSource
from edgeflare.store import SeedInput, SkippedRecord, Store

_BATCH = 256
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
    seeds = iter(source)
    while batch := list(islice(seeds, _BATCH)):
        if classes is None:
            labelled += sum(seed.label is not None for seed in batch)
            batch = [replace(seed, label=None) for seed in batch]
        else:
            check_labels(batch, classes)
        store.add_seeds(
            SeedInput(seed.id, seed.sample, seed.label, seed.file_sha256)
            for seed in batch
            if seed.id not in known
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
    skipped = [SkippedRecord(one.name, one.reason) for one in source.skipped]
    store.complete_seeds(skipped, notices)
