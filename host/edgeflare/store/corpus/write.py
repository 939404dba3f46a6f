"""Statements by which a trigger corpus grows and shrinks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from edgeflare.store.corpus import tables
from edgeflare.store.corpus.records import (
    CorpusCampaign,
    CorpusEntry,
    DeviceAnswer,
    TriggerRecord,
    answer_of,
    entries_to_keep,
)
from edgeflare.store.mapped import columns_of, reader, stamp

_ENTRIES, _LOOKS, _SIGHTINGS = tables.entries, tables.looks, tables.sightings

# Built once: a corpus of thousands is mostly the time that statements take to be built.
BY_SAMPLE = select(_ENTRIES).where(_ENTRIES.c.sample == bindparam("of_sample"))
_GROUP = (
    select(_ENTRIES)
    .where(
        _ENTRIES.c.seed_sample == bindparam("of_seed"),
        _ENTRIES.c.original_label == bindparam("of_original"),
        _ENTRIES.c.deployed_label == bindparam("of_deployed"),
    )
    .order_by(_ENTRIES.c.position)
)
_SIGHTING = select(_SIGHTINGS.c.position).where(
    _SIGHTINGS.c.entry == bindparam("entry"),
    _SIGHTINGS.c.campaign == bindparam("campaign"),
    _SIGHTINGS.c.model == bindparam("model"),
    _SIGHTINGS.c.device == bindparam("device"),
)
_LOOK = select(_LOOKS).where(
    _LOOKS.c.entry == bindparam("entry"),
    _LOOKS.c.model == bindparam("model"),
    _LOOKS.c.device == bindparam("device"),
)


def samples_of(row: Row[Any]) -> Sequence[str]:
    """Return the digests of an entry's sample and of its seed's."""
    return (row.sample, row.seed_sample)


def add_one(
    connection: Connection,
    trigger: TriggerRecord,
    at_most: int,
    fresh: set[int],
    dropped: list[Row[Any]],
) -> bool:
    """Add a triggering input unless it is a near duplicate; return whether it was there already."""
    there = connection.execute(BY_SAMPLE, {"of_sample": trigger.sample}).first()
    if there is not None:
        _add_sighting(connection, there.position, trigger)
        add_answer(connection, there, answer_of(trigger))
        return True
    of_group = {
        "of_seed": trigger.seed_sample,
        "of_original": trigger.original_label,
        "of_deployed": trigger.deployed_label,
    }
    rows = list(connection.execute(_GROUP, of_group))
    staying = entries_to_keep([*map(reader(CorpusEntry), rows), trigger], at_most)
    if len(rows) not in staying:
        return False
    for index, row in enumerate(rows):
        if index not in staying:
            connection.execute(delete(_ENTRIES).where(_ENTRIES.c.position == row.position))
            dropped.append(row)
    entry = columns_of(trigger, deviated_at=stamp(trigger.found_at), agreeing_since=None)
    entry.pop("position", None)  # of an entry of another corpus
    done = connection.execute(insert(_ENTRIES), entry)
    position = int((done.inserted_primary_key or (0,))[0])
    fresh.add(position)
    _add_sighting(connection, position, trigger)
    answer = answer_of(trigger)
    connection.execute(insert(_LOOKS), _look(answer, position, stamp(answer.looked_at)))
    return False


def _add_sighting(connection: Connection, position: int, trigger: TriggerRecord) -> None:
    """Count an entry as seen, once for each campaign and target."""
    row = {
        "entry": position,
        "campaign": trigger.campaign,
        "model": trigger.model,
        "device": trigger.device,
    }
    if connection.execute(_SIGHTING, row).first() is None:
        connection.execute(insert(_SIGHTINGS), {**row, "seen_at": stamp(trigger.found_at)})


def add_answer(connection: Connection, entry: Row[Any], answer: DeviceAnswer) -> None:
    """Record what a target answered to an entry, unless a later answer is there already."""
    of_target = {"entry": entry.position, "model": answer.model, "device": answer.device}
    before = connection.execute(_LOOK, of_target).first()
    since = stamp(answer.looked_at)
    if before is None:
        connection.execute(insert(_LOOKS), _look(answer, entry.position, since))
    elif datetime.fromisoformat(before.looked_at) >= answer.looked_at:
        return
    else:
        since = before.since if before.deviated == answer.deviated else since
        row = _look(answer, entry.position, since)
        this = _LOOKS.c.position == before.position
        connection.execute(update(_LOOKS).where(this).values(**row))
    change = _change_of_entry(entry, answer)
    if change:
        this = _ENTRIES.c.position == entry.position
        connection.execute(update(_ENTRIES).where(this).values(**change))


def _look(answer: DeviceAnswer, entry: int, since: str) -> dict[str, Any]:
    row = columns_of(answer, entry=entry, since=since)
    del row["sample"]
    return row


def _change_of_entry(entry: Row[Any], answer: DeviceAnswer) -> dict[str, Any]:
    """Return the changes of an entry's `deviated_at` and `agreeing_since`."""
    deviated_at = datetime.fromisoformat(entry.deviated_at)
    if not answer.deviated:
        first = entry.agreeing_since is None and answer.looked_at > deviated_at
        return {"agreeing_since": stamp(answer.looked_at)} if first else {}
    if answer.looked_at <= deviated_at:
        return {}
    since = entry.agreeing_since
    over = since is not None and datetime.fromisoformat(since) <= answer.looked_at
    return {"deviated_at": stamp(answer.looked_at)} | ({"agreeing_since": None} if over else {})


def set_campaign(connection: Connection, campaign: CorpusCampaign) -> None:
    """Add a campaign, or replace what is known of it."""
    table = tables.campaigns
    row = columns_of(campaign)
    change = update(table).where(table.c.id == campaign.id).values(**row)
    if connection.execute(change).rowcount == 0:
        connection.execute(insert(table).values(**row))


def entries_of_model(connection: Connection, model: str) -> tuple[set[int], int]:
    """Return the entries that only this model showed, and how many it shares with others."""
    mine = select(_SIGHTINGS.c.entry).where(_SIGHTINGS.c.model == model)
    query = (
        select(_SIGHTINGS.c.entry, func.count(func.distinct(_SIGHTINGS.c.model)))
        .where(_SIGHTINGS.c.entry.in_(mine))
        .group_by(_SIGHTINGS.c.entry)
    )
    shown = {row[0]: row[1] for row in connection.execute(query)}
    alone = {entry for entry, models in shown.items() if models == 1}
    return alone, len(shown) - len(alone)
