"""Shrinks a campaign's findings: inputs nearer to their seed inputs on which the models deviate."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare._internal.files import replacing
from edgeflare.campaign import executor
from edgeflare.campaign.events import Progress, silent
from edgeflare.campaign.fleet import Connect
from edgeflare.campaign.replay.inputs import replay_source
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.status import replica_names
from edgeflare.devices import Prompt, connect
from edgeflare.errors import UsageError
from edgeflare.explanation.results import (
    SHRUNK_FOLDER,
    Distances,
    ShrunkFinding,
    ShrunkFindings,
)
from edgeflare.metrics import l2, linf, ssim
from edgeflare.store import CampaignLock, SeedInput, Store
from edgeflare.store.database import DATABASE_NAME, batches
from edgeflare.store.records import ReplayInput
from edgeflare.types import TRIGGERS, Sample

_TRIGGERS = "shrunk.npz"
STRATEGY = "shrink"
EACH = 20
"""Device queries for each finding, at most, without its confirmation."""


def shrink_campaign(
    folder: Path,
    config: CampaignConfig,
    *,
    device_budget: int = EACH,
    ask: Prompt | None = None,
    progress: Progress = silent,
    connect: Connect = connect,
) -> ShrunkFindings:
    """Search nearer inputs from a campaign's triggering inputs; return both distances of each.

    `config` is made by `replay_config`. Each gets `device_budget` device queries at most, and its
    confirmations. The results are the triggers of a campaign in the folder ``shrunk`` of the
    campaign's; what was found before stays as it is. Started again, it goes on, or returns what is
    there. Raises UsageError where there is nothing to shrink, and the errors of `run_campaign`.
    """
    folder = Path(folder).absolute()
    with replay_source(folder) as source:
        store = source.store
        if store is None or source.kind != "campaign":
            raise UsageError(f"{folder} is a {source.kind}: name the folder of a campaign")
        found = [one for one in source.inputs() if one.kind == "trigger"]
        chosen = {one.id: one for one in found if one.id.startswith("trigger:") and one.l2}
        if not chosen:
            raise UsageError(
                f"{folder} has no triggering input that was searched: nothing to shrink"
            )
        with CampaignLock(folder):
            _run(
                folder,
                store,
                chosen,
                _configured(config, folder, device_budget),
                ask,
                progress,
                connect,
            )
        with Store.open(folder / SHRUNK_FOLDER) as shrunk:
            findings = _results(store, shrunk, chosen)
        return ShrunkFindings(str(folder / SHRUNK_FOLDER), findings, len(found) - len(chosen))


def _configured(config: CampaignConfig, folder: Path, device_budget: int) -> CampaignConfig:
    options = {"triggers": str(folder / _TRIGGERS), "device_budget": device_budget}
    search = config.search.model_copy(
        update={
            "strategy": STRATEGY,
            "options": options,
            "max_queries": device_budget,
            "tune": False,
        }
    )
    return config.model_copy(update={"search": search, "out": folder / SHRUNK_FOLDER})


def _run(
    folder: Path,
    store: Store,
    chosen: Mapping[str, ReplayInput],
    config: CampaignConfig,
    ask: Prompt | None,
    progress: Progress,
    connect: Connect,
) -> None:
    fill = partial(_fill, store, list(chosen.values()))
    if (folder / SHRUNK_FOLDER / DATABASE_NAME).is_file():
        executor.resume(
            folder / SHRUNK_FOLDER, fill=fill, ask=ask, progress=progress, connect=connect
        )
        return
    samples: Any = {name: store.get_sample(one.sample) for name, one in chosen.items()}
    with replacing(folder / _TRIGGERS) as file:
        np.savez(file, **samples)
    executor.start(
        config,
        devices=executor.stored_devices(store),
        fill=fill,
        name=f"{folder.name}, its findings",
        ask=ask,
        progress=progress,
        connect=connect,
    )


def _fill(store: Store, chosen: Sequence[ReplayInput], shrinking: Store) -> None:
    """Store each finding's seed input under the finding's id."""
    if store.sample_rate is not None:
        shrinking.set_sample_rate(store.sample_rate)
    seeds = {seed.id: seed for seed in store.seeds()}
    known = shrinking.seed_ids()
    for batch in batches(one for one in chosen if one.id not in known):
        shrinking.add_seeds(
            SeedInput(one.id, store.get_sample(seeds[one.seed_id].sample), one.label)
            for one in batch
        )
    shrinking.complete_seeds([], [])


def _results(
    store: Store, shrunk: Store, chosen: Mapping[str, ReplayInput]
) -> tuple[ShrunkFinding, ...]:
    found = []
    seeds = {seed.id: seed.sample for seed in shrunk.seeds()}
    for replica in replica_names(shrunk):
        for outcome in shrunk.outcomes_of(replica):
            finding = chosen.get(outcome.seed_id)
            if finding is None or (replica and finding.replica not in ("", replica)):
                continue
            seed = shrunk.get_sample(seeds[outcome.seed_id])
            before = after = _distances(seed, store.get_sample(finding.sample))
            digest = outcome.trigger if outcome.status in TRIGGERS else None
            if digest is not None:
                after = _distances(seed, shrunk.get_sample(digest))
            found.append(
                ShrunkFinding(
                    id=finding.id,
                    seed_id=finding.seed_id,
                    before=before,
                    after=after,
                    sample=digest,
                    device_queries=outcome.search_queries,
                    confirmations=outcome.confirmation_queries,
                )
            )
    return tuple(found)


def _distances(seed: Sample, sample: Sample) -> Distances:
    similarity = None
    with suppress(UsageError):  # scikit-image is missing
        similarity = ssim(seed, sample) if seed.shape == sample.shape else None
    return Distances(l2(seed, sample), linf(seed, sample), similarity)
