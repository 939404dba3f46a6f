"""Rows of a corpus's tables <-> records."""

from typing import Any

from sqlalchemy import Row

from edgeflare.store.corpus_access import stamp
from edgeflare.store.corpus_records import CorpusCampaign, CorpusEntry, EntryLook, Sighting
from edgeflare.store.documents import moment, record


def sighting_to_row(sighting: Sighting) -> dict[str, Any]:
    """Return the columns of the table entries for a sighting that becomes one."""
    found_at = stamp(sighting.found_at)
    names = Sighting.__dataclass_fields__
    return {name: getattr(sighting, name) for name in names} | {
        "status": sighting.status.value,
        "found_at": found_at,
        "deviated_at": found_at,
        "agreeing_since": None,
    }


def entry_from_row(row: Row[Any]) -> CorpusEntry:
    """Return the record of a row of the table entries."""
    times = {
        "found_at": moment(row.found_at),
        "deviated_at": moment(row.deviated_at),
        "agreeing_since": None if row.agreeing_since is None else moment(row.agreeing_since),
    }
    return record(CorpusEntry, row, **times)


def look_of(sighting: Sighting) -> EntryLook:
    """Return the look that a sighting is, too."""
    return EntryLook(
        sighting.sample,
        sighting.model,
        sighting.device,
        sighting.deployed_sha256,
        deviated=True,
        original_label=sighting.original_label,
        deployed_label=sighting.deployed_label,
        looked_at=sighting.found_at,
        replay=sighting.campaign,
    )


def look_to_row(look: EntryLook, since: str) -> dict[str, Any]:
    """Return the columns of the table looks, but for the entry's."""
    return {
        "model": look.model,
        "device": look.device,
        "deployed_sha256": look.deployed_sha256,
        "deviated": look.deviated,
        "original_label": look.original_label,
        "deployed_label": look.deployed_label,
        "looked_at": stamp(look.looked_at),
        "since": since,
        "replay": look.replay,
    }


def look_from_row(row: Row[Any]) -> EntryLook:
    """Return the record of a row of the table looks and its entry's sample."""
    times = {"looked_at": moment(row.looked_at), "since": moment(row.since)}
    return record(EntryLook, row, **times)


def campaign_from_row(row: Row[Any]) -> CorpusCampaign:
    """Return the record of a row of the table campaigns."""
    return record(CorpusCampaign, row, added_at=moment(row.added_at))
