"""Shrinks a campaign's findings: inputs nearer to their seed inputs on which the models deviate."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflare._internal.files import replacing
from edgeflare.campaign import executor
from edgeflare.campaign.context import RunContext, RunOptions
from edgeflare.campaign.pair.inputs import seed_origins
from edgeflare.campaign.provenance import check_same_models
from edgeflare.campaign.replay.inputs import replay_source, survey_deviations, survey_id
from edgeflare.campaign.seeds import partners
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.status import replica_names
from edgeflare.errors import UsageError
from edgeflare.explanation.results import (
    EACH,
    SHRUNK_FOLDER,
    Distances,
    ShrunkFinding,
    ShrunkFindings,
)
from edgeflare.metrics import l2, linf, ssim
from edgeflare.store import (
    CampaignLock,
    OutcomeRecord,
    SeedInput,
    Store,
    campaign_text,
    folder_at,
)
from edgeflare.store.database import batches
from edgeflare.store.location import deletion_text, is_campaign
from edgeflare.store.records import ReplayInput, trigger_id
from edgeflare.strategies.natural_shrink import NaturalChange, steps_in
from edgeflare.strategies.operators import corruption_names
from edgeflare.strategies.shrink import PARTNER
from edgeflare.survey.proposals import Derivation, steps_of
from edgeflare.types import TRIGGERS, Sample
from edgeflare.words.campaign import SEED_DEVIATES

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TRIGGERS, _CHANGES = "shrunk.npz", "shrunk.json"
STRATEGY = "shrink"
_MOST_STEPS = 3
"""Inputs of more natural corruptions shrink as others do: each step costs a device query."""


def shrink_campaign(
    folder: Path,
    config: CampaignConfig,
    *,
    device_budget: int = EACH,
    **run: "Unpack[RunOptions]",
) -> ShrunkFindings:
    """Search nearer inputs from a campaign's findings; return both distances of each.

    Findings are triggering inputs and confident deviations of the survey; these, and triggering
    inputs of natural corruptions alone, come nearer in the parameters of what made them. `config` is
    made by `replay_config`. Each gets `device_budget` device queries at most, and its confirmations.
    The results are the triggers of a campaign in the folder ``shrunk`` of the
    campaign's; what was found before stays as it is. Started again, it goes on, or returns what is
    there. Raises UsageError where there is nothing to shrink, or the campaign was run with other
    models, and the errors of `run_campaign`.
    """
    folder = folder_at(folder).absolute()
    with replay_source(folder) as source:
        store = source.store
        if store is None or source.kind != "campaign":
            raise UsageError(f"{folder} is a {source.kind}: name the folder of a campaign")
        check_same_models(config, store)
        found = [one for one in source.inputs() if one.kind == "trigger"]
        chosen = {one.id: one for one in found if one.l2}
        if not chosen:
            raise UsageError(f"{folder} has no finding but seed inputs: nothing to shrink")
        natural = _natural_changes(store, config)
        with CampaignLock(folder):
            configured = _configured(config, folder, device_budget)
            _run(folder, store, chosen, natural, configured, RunContext(**run))
        with Store.open(folder / SHRUNK_FOLDER) as shrunk:
            findings = _results(store, shrunk, chosen, natural)
        return ShrunkFindings(
            campaign_text(folder / SHRUNK_FOLDER), findings, len(found) - len(chosen)
        )


def _natural_changes(store: Store, config: CampaignConfig) -> dict[str, NaturalChange]:
    """Return what made the natural findings, by their ids: the survey's, and of corruptions alone."""
    natural = {}
    for one in survey_deviations(store):
        made = Derivation(0, one.family, one.severity, dict(one.params))
        steps = tuple((step["family"], step["params"]) for step in steps_of(made))
        natural[survey_id(one)] = NaturalChange(steps, config.survey.sure, of_survey=True)
    for replica in replica_names(store):
        for found in store.outcomes_of(replica):
            steps, corruptions = steps_in(found.mutations), corruption_names(found.mutations)
            is_short = 0 < len(steps) <= _MOST_STEPS
            if (
                found.status in TRIGGERS
                and is_short
                and {name for name, _ in steps} == {*corruptions}
            ):
                change = NaturalChange(steps, 0.0, of_survey=False)
                natural[trigger_id(found.seed_id, replica)] = change
    return natural


def _configured(config: CampaignConfig, folder: Path, device_budget: int) -> CampaignConfig:
    options = {
        "triggers": str(folder / _TRIGGERS),
        "changes": str(folder / _CHANGES),
        "device_budget": device_budget,
    }
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
    natural: Mapping[str, NaturalChange],
    config: CampaignConfig,
    context: RunContext,
) -> None:
    fill = partial(_fill, store, list(chosen.values()))
    if is_campaign(folder / SHRUNK_FOLDER):
        with Store.open(folder / SHRUNK_FOLDER) as shrunk:
            before = shrunk.setting("search", "options")
        if before != config.search.options:
            is_known = "changes" in before
            budget = f"--device-budget {before.get('device_budget')}"
            raise UsageError(
                f"{folder} was shrunk with other settings "
                f"({budget if is_known else 'those of an earlier version'}): delete "
                f"{deletion_text(folder / SHRUNK_FOLDER)} to shrink it anew"
            )
        executor.resume(folder / SHRUNK_FOLDER, fill=fill, context=context)
        return
    samples: Any = {name: store.get_sample(one.sample) for name, one in chosen.items()}
    if natural:
        samples |= {f"{PARTNER}{number}": one for number, one in enumerate(partners(store))}
    with replacing(folder / _TRIGGERS) as file:
        np.savez(file, **samples)
    changes = {name: one._asdict() for name, one in natural.items() if name in chosen}
    with replacing(folder / _CHANGES) as file:
        file.write(json.dumps(changes).encode())
    executor.start(
        config,
        devices=executor.stored_devices(store),
        fill=fill,
        context=replace(context, name=f"{folder.name}, its findings"),
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
    origins = seed_origins(store, {one.id: one.seed_id for one in chosen})
    shrinking.state.seed_origins = origins
    shrinking.complete_seeds([], [])


def _results(
    store: Store,
    shrunk: Store,
    chosen: Mapping[str, ReplayInput],
    natural: Mapping[str, NaturalChange],
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
            digest = None if digest == finding.sample else digest
            words, less = "", ""
            was = now = _classes(finding)
            change = natural.get(finding.id)
            if change is not None:
                families = change.families(seed, store.sample_rate)
                words = less = change.words(families)
            if digest is not None:
                now = _classes(outcome)
                after = _distances(seed, shrunk.get_sample(digest))
                if not after.l2:
                    less = SEED_DEVIATES if words else ""
                elif change is not None and outcome.mutations:
                    less = change._replace(steps=steps_in(outcome.mutations)).words(families)
            found.append(
                ShrunkFinding(
                    id=finding.id,
                    seed_id=finding.seed_id,
                    before=before,
                    after=after,
                    sample=digest,
                    device_queries=outcome.search_queries,
                    confirmations=outcome.confirmation_queries,
                    words_before=words,
                    words_after=less,
                    classes_before=was,
                    classes_after=now,
                )
            )
    return tuple(found)


def _classes(found: ReplayInput | OutcomeRecord) -> tuple[int, int] | None:
    if found.original_label is None or found.deployed_label is None:
        return None
    return found.original_label, found.deployed_label


def _distances(seed: Sample, sample: Sample) -> Distances:
    similarity = None
    with suppress(UsageError):  # scikit-image is missing
        similarity = ssim(seed, sample) if seed.shape == sample.shape else None
    return Distances(l2(seed, sample), linf(seed, sample), similarity)
