"""Whether campaigns can be compared at all, and what to know of it where they can."""

from collections.abc import Callable, Mapping
from typing import Any

from edgeflare.analysis.ranking_read import CampaignRead
from edgeflare.errors import UsageError

_SHOWN = 12
"""So many digits of a SHA-256 tell two files apart for a reader."""


def check_comparable(campaigns: Mapping[str, CampaignRead]) -> list[str]:
    """Return what to know of a comparison, as sentences.

    Raises UsageError, naming the difference, unless all have the same original, read in the same way,
    the same seed inputs and the same search; the campaign's seed may differ.
    """
    (first, one), *others = campaigns.items()
    for name, other in others:
        for difference in (_original, _search, _seeds):
            if said := difference(first, one, name, other):
                raise UsageError(f"{first} and {name} can't be compared: {said}")
    return [
        *_different(
            campaigns,
            lambda read: read.search["seed"],
            "The campaigns were run with different seeds (search.seed), so that chance differs, too",
        ),
        *_different(
            campaigns,
            lambda read: sorted(read.devices),
            "The campaigns did not run on the same devices: what differs may be the device's doing",
        ),
        *_unfinished(campaigns),
        *_same_file(campaigns),
        *_the_original(campaigns),
    ]


def _original(first: str, one: CampaignRead, name: str, other: CampaignRead) -> str | None:
    a, b = one.original, other.original
    if a["sha256"] != b["sha256"]:
        return (
            f"their originals differ ({first}: {a['name']} {a['sha256'][:_SHOWN]}, {name}: {b['name']} "
            f"{b['sha256'][:_SHOWN]}); compare candidates of one original model"
        )
    for part, told in (("input", "preprocessing"), ("output", "output")):
        if a.get(part) != b.get(part):
            return f"the original's {told} was not stated alike; run one of them again"
    return None


def _search(first: str, one: CampaignRead, name: str, other: CampaignRead) -> str | None:
    settings, theirs = _flat(one.search), _flat(other.search)
    found = [
        f"{key} is {settings.get(key)} for {first} and {theirs.get(key)} for {name}"
        for key in dict.fromkeys((*settings, *theirs))
        if settings.get(key) != theirs.get(key)
    ]
    if not found:
        return None
    return (
        f"their search settings differ: {'; '.join(found)}; run one of them again with the other's "
        "settings, or give the model files themselves"
    )


def _flat(search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that must be the same, the strategy's options beside the others."""
    plain = {key: value for key, value in search.items() if key not in ("seed", "options")}
    return plain | {f"option {key}": value for key, value in search["options"].items()}


def _seeds(first: str, one: CampaignRead, name: str, other: CampaignRead) -> str | None:
    missing, more = one.seeds - other.seeds, other.seeds - one.seeds
    if (missing and other.all_seeds) or (more and one.all_seeds):
        return (
            f"their seed inputs differ ({len(one.seeds)} for {first}, {len(other.seeds)} for {name}, "
            f"{len(one.seeds & other.seeds)} of them in both); run one of them again with the other's seeds"
        )
    return None


def _different(
    campaigns: Mapping[str, CampaignRead], part: Callable[[CampaignRead], object], told: str
) -> list[str]:
    values = [part(read) for read in campaigns.values()]
    return [] if all(value == values[0] for value in values) else [f"{told}."]


def _unfinished(campaigns: Mapping[str, CampaignRead]) -> list[str]:
    notes = []
    for name, read in campaigns.items():
        if not read.finished:
            notes.append(
                f"{name} is not finished ({len(read.done)} of {len(read.seeds)} seeds): only seeds that all "
                "candidates have finished are compared."
            )
        if read.unanswered:
            notes.append(
                f"{name} gave no answer, or none that repeats, on {read.unanswered} of its seeds: they "
                "are left out for all candidates."
            )
        if read.timeouts:
            notes.append(
                f"{read.timeouts} searches of {name} were ended by the clock (timeout_s), so that its figures "
                "depend on how fast the device is; `--timeout 0` limits by queries alone."
            )
    return notes


def _same_file(campaigns: Mapping[str, CampaignRead]) -> list[str]:
    by_digest: dict[str, list[str]] = {}
    for name, read in campaigns.items():
        by_digest.setdefault(read.deployed["sha256"], []).append(name)
    return [
        f"{' and '.join(names)} are the same file."
        for names in by_digest.values()
        if len(names) > 1
    ]


def _the_original(campaigns: Mapping[str, CampaignRead]) -> list[str]:
    notes = []
    for name, read in campaigns.items():
        if read.deployed["sha256"] == read.original["sha256"]:
            notes.append(
                f"Candidate {name} is the original itself, the same file: no candidate can do better."
            )
        elif read.alike:
            notes.append(
                f"Candidate {name} answers every seed as the original does and has no trigger: it may be the "
                "original in another file."
            )
    return notes
