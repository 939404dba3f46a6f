"""Changes since a campaign was started: of model and seed files, libraries and devices."""

from collections.abc import Iterator
from pathlib import Path

from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.identity import environment, file_sha256
from edgeflare.devices.likeness import differences
from edgeflare.errors import UsageError
from edgeflare.seeds import changed_files
from edgeflare.store import Store

_UNIMPORTANT = ("platform",)
_SHOWN = 5


def check_unchanged(config: CampaignConfig, store: Store) -> list[str]:
    """Return a sentence for each model, seed file and library that has changed."""
    found = [*_changed_models(config, store), *_changed_seeds(config, store)]
    return [*found, *_changed_libraries(config, store)]


def check_same_devices(config: CampaignConfig, fleet: Fleet, store: Store) -> list[str]:
    """Return a sentence for each device whose fingerprint is none that the campaign knows.

    Where each device searches for itself it must be its own, else that of any of them.
    """
    known = store.fingerprints()
    found = []
    for session in fleet:
        own = known.get(session.name)
        if config.fleet.mode == "replicate":
            candidates = [own] if own else []
        else:
            candidates = list(known.values())
        if not candidates or session.fingerprint in candidates:
            continue
        old = own or candidates[0]
        changed = ", ".join(
            f"{field} was {one}, is {other}"
            for field, one, other in differences(old, session.fingerprint)[:_SHOWN]
        )
        found.append(f"{session.name} is not what it was: {changed}")
    return found


def refuse_or_tell(changes: list[str], *, force: bool) -> str | None:
    """Return a notice where `force` lets changes pass. Raises UsageError where it doesn't."""
    if not changes:
        return None
    more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    text = "; ".join(changes[:_SHOWN]) + more
    if force:
        return f"resumed with --force although {text}"
    raise UsageError(
        f"since the campaign began {text}. What is found from now on might not fit what was found "
        "before: undo the change, start a new campaign, or go on all the same with --force"
    )


def _changed_models(config: CampaignConfig, store: Store) -> Iterator[str]:
    for which, path in (("original", config.original.path), ("deployed", config.deployed.path)):
        known = store.models.get(which, {}).get("sha256")
        if known is None:
            continue
        if not path.is_file():
            yield f"the {which} model {path} is gone"
        elif file_sha256(path) != known:
            yield f"the {which} model {path} has changed"
    for which, model in (("original", config.original), ("deployed", config.deployed)):
        read_so = store.models.get(which, {}).get("output", {}).get("decoder")
        if read_so and model.decoder and model.decoder.decoder().describe() != read_so:
            yield f"the vocabulary {model.decoder.vocabulary} has changed"


def _changed_seeds(config: CampaignConfig, store: Store) -> Iterator[str]:
    source: Path = config.seeds.path
    if not source.exists():
        if not store.fact("seeds_complete"):
            yield f"the seeds at {source} are gone"
        return  # the samples are in the campaign's store
    known = ((seed.id, seed.file_sha256) for seed in store.seeds() if seed.file_sha256)
    for name in changed_files(source, known):
        yield f"the seed file {name} has changed or is gone"


def _changed_libraries(config: CampaignConfig, store: Store) -> Iterator[str]:
    before, now = store.environment, environment(config.search)
    for name, installed in now.items():
        if name not in _UNIMPORTANT and before.get(name) != installed:
            yield f"{name} was {before.get(name)}, is {installed}"
