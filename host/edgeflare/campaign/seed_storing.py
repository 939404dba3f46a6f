"""From the seeds' source to seeds in the store."""

from dataclasses import replace

from edgeflare.campaign.config import SeedsConfig
from edgeflare.campaign.preflight import check_labels
from edgeflare.campaign.progress import Notice, Stage, Step
from edgeflare.campaign.reporter import Reporter
from edgeflare.seeds import SeedSource
from edgeflare.store import Store
from edgeflare.store.database import batches

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
