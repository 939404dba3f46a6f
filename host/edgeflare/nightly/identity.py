"""The identity of a run (models, device, host, search), and its changes between nights."""

from collections.abc import Iterator, Mapping
from typing import Any

from edgeflare.campaign.config import SearchConfig
from edgeflare.campaign.resolution import STRATEGY, resolved_as_in
from edgeflare.nightly.history import Baseline
from edgeflare.nightly.night import Identity
from edgeflare.store import Store

_DIGITS = 8
_LONGEST = 60


def identity_of(store: Store, asked: SearchConfig) -> Identity:
    """Return the identity of a campaign on one device; `asked` is the search before it was resolved."""
    models = store.models
    devices = store.devices()
    return Identity(
        original=str(models.get("original", {}).get("sha256", "")),
        deployed=str(models.get("deployed", {}).get("sha256", "")),
        device=devices[-1].fingerprint if devices else {},
        host=store.environment,
        search=_settings(asked),
    )


def as_in(baseline: Baseline, search: SearchConfig) -> SearchConfig:
    """Return a search with its open options as they were resolved in the last green night.

    What the boundary search leaves open is chosen by how fast the device is just then, so that it would else
    differ from night to night. Where the settings have changed it is chosen anew.
    """
    if search.strategy != STRATEGY or baseline.run.identity.search != _settings(search):
        return search
    return resolved_as_in(baseline.campaign, search) or search


def _settings(search: SearchConfig) -> dict[str, Any]:
    return search.model_dump(mode="json", exclude={"seed"})


def changes(before: Identity, now: Identity) -> tuple[str, ...]:
    """Return a line for each change; none where nothing has changed."""
    files = [
        f"the {which} model's file: SHA-256 was {_digest(old)}, is {_digest(new)}"
        for which, old, new in (
            ("deployed", before.deployed, now.deployed),
            ("original", before.original, now.original),
        )
        if old != new
    ]
    tables = (
        ("the device's", before.device, now.device),
        ("the host's", before.host, now.host),
        ("the search's", before.search, now.search),
    )
    return (
        *files,
        *(
            f"{whose} {name}: was {_short(old)}, is {_short(new)}"
            for whose, then, later in tables
            for name, old, new in _differences(then, later)
        ),
    )


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], path: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{path}{name} ")
        elif old != new:
            yield f"{path}{name}", old, new


def _short(value: Any) -> str:
    text = "unknown" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _digest(sha256: str) -> str:
    return sha256[:_DIGITS] or "unknown"
