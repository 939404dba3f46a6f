"""How a trigger corpus grows, and learns what became of its entries."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from edgeflare.store import corpus_tables as tables
from edgeflare.store.access import batches
from edgeflare.store.corpus_access import stamp
from edgeflare.store.corpus_reading import CorpusReading
from edgeflare.store.corpus_records import Added, CorpusCampaign, EntryLook, Form, Sighting
from edgeflare.store.corpus_rows import entry_from_row, look_of, look_to_row, sighting_to_row
from edgeflare.store.corpus_rule import kept
from edgeflare.store.failures import decoding
from edgeflare.types import Sample

_ENTRIES, _LOOKS, _SIGHTINGS = tables.entries, tables.looks, tables.sightings

# Built once: a corpus of thousands is mostly the time that statements take to be built.
_BY_SAMPLE = select(_ENTRIES).where(_ENTRIES.c.sample == bindparam("of_sample"))
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


class CorpusAdding(CorpusReading):
    """The part of a corpus that grows."""

    def add(
        self,
        sightings: Iterable[Sighting],
        form: Form,
        read: Callable[[str], Sample],
        *,
        campaign: CorpusCampaign | None = None,
    ) -> Added:
        """Add triggering inputs in the order they were found; return what became of them.

        One that is there to the bit is there once: it counts as seen again. Of one seed input and one
        pair of classes at most `per_pair` are kept: the first, the nearest to the seed (least L2) and
        the severest (largest smaller margin); others are near duplicates. Each is also a look of its
        target, see `note`. `read` gives the sample of a digest, `form` is that of all of them.
        `campaign` says where they come from: what is known of an earlier time is replaced, and what
        became of them is filled in.

        The same again changes nothing. What was added is on disk when this returns; a process killed
        meanwhile leaves some of them added, each whole.

        Raises UsageError where the corpus is of another form, StoreError.
        """
        mine: set[int] = set()
        replaced = known = seen = 0
        with self._changing():
            with self._writing() as connection:
                self._set_form(connection, form)
            for some in batches(sightings):
                dropped: list[Row[Any]] = []
                fresh: set[int] = set()
                with self._writing() as connection:
                    at_most = connection.execute(select(tables.about.c.per_pair)).scalar_one()
                    with decoding(self.folder):
                        for sighting in some:
                            known += _add_one(connection, sighting, at_most, fresh, dropped)
                    self._keep_samples(connection, fresh, read)
                mine |= fresh
                seen += len(some)
                replaced += sum(row.position not in mine for row in dropped)
                mine.difference_update(row.position for row in dropped)
                self._forget_samples({one for row in dropped for one in _samples_of(row)})
            added = Added(len(mine), replaced, known, seen - known - len(mine))
            if campaign is not None:
                with self._writing() as connection:
                    _set_campaign(connection, campaign._replace(triggers=seen, near=added.near))
        return added

    def note(self, looks: Iterable[EntryLook]) -> int:
        """Record what targets said of entries; return how many were of an entry.

        A look is passed over where its target has looked at that entry then, or later on, already.
        """
        noted = 0
        with self._changing():
            for some in batches(looks):
                with self._writing() as connection, decoding(self.folder):
                    for look in some:
                        row = connection.execute(_BY_SAMPLE, {"of_sample": look.sample}).first()
                        if row is not None:
                            _note_one(connection, row, look)
                            noted += 1
        return noted

    def _keep_samples(
        self, connection: Connection, positions: set[int], read: Callable[[str], Sample]
    ) -> None:
        """Put the samples of these entries, of one batch, and of their seeds on disk."""
        query = select(_ENTRIES).where(_ENTRIES.c.position.in_(sorted(positions)))
        wanted = {one for row in connection.execute(query) for one in _samples_of(row)}
        if wanted:
            self._samples.put_all([read(digest) for digest in sorted(wanted)])

    def _forget_samples(self, digests: Iterable[str]) -> None:
        """Delete the sample files of these digests that no entry refers to."""
        for some in batches(sorted(digests)):
            used: set[str] = set()
            with self._reading() as connection:
                for column in (_ENTRIES.c.sample, _ENTRIES.c.seed_sample):
                    query = select(column).where(column.in_(some))
                    used.update(connection.execute(query).scalars())
            for digest in set(some) - used:
                self._samples.path(digest).unlink(missing_ok=True)


def _samples_of(row: Row[Any]) -> Sequence[str]:
    return (row.sample, row.seed_sample)


def _add_one(
    connection: Connection,
    sighting: Sighting,
    at_most: int,
    fresh: set[int],
    dropped: list[Row[Any]],
) -> bool:
    """Add a sighting, unless it is a near duplicate; return whether it was there already."""
    there = connection.execute(_BY_SAMPLE, {"of_sample": sighting.sample}).first()
    if there is not None:
        _see(connection, there.position, sighting)
        _note_one(connection, there, look_of(sighting))
        return True
    of_group = {
        "of_seed": sighting.seed_sample,
        "of_original": sighting.original_label,
        "of_deployed": sighting.deployed_label,
    }
    rows = list(connection.execute(_GROUP, of_group))
    staying = kept([*map(entry_from_row, rows), sighting], at_most)
    if len(rows) not in staying:
        return False
    for index, row in enumerate(rows):
        if index not in staying:
            connection.execute(delete(_ENTRIES).where(_ENTRIES.c.position == row.position))
            dropped.append(row)
    done = connection.execute(insert(_ENTRIES), sighting_to_row(sighting))
    position = int((done.inserted_primary_key or (0,))[0])
    fresh.add(position)
    _see(connection, position, sighting)
    look = look_of(sighting)
    connection.execute(
        insert(_LOOKS), {"entry": position, **look_to_row(look, stamp(look.looked_at))}
    )
    return False


def _see(connection: Connection, position: int, sighting: Sighting) -> None:
    """Count a sighting of an entry, once for each campaign and target."""
    row = {
        "entry": position,
        "campaign": sighting.campaign,
        "model": sighting.model,
        "device": sighting.device,
    }
    if connection.execute(_SIGHTING, row).first() is None:
        connection.execute(insert(_SIGHTINGS), {**row, "seen_at": stamp(sighting.found_at)})


def _note_one(connection: Connection, entry: Row[Any], look: EntryLook) -> None:
    of_target = {"entry": entry.position, "model": look.model, "device": look.device}
    before = connection.execute(_LOOK, of_target).first()
    since = stamp(look.looked_at)
    if before is None:
        row = {"entry": entry.position, **look_to_row(look, since)}
        connection.execute(insert(_LOOKS), row)
    elif datetime.fromisoformat(before.looked_at) >= look.looked_at:
        return
    else:
        row = look_to_row(look, before.since if before.deviated == look.deviated else since)
        this = _LOOKS.c.position == before.position
        connection.execute(update(_LOOKS).where(this).values(**row))
    change = _change_of_entry(entry, look)
    if change:
        this = _ENTRIES.c.position == entry.position
        connection.execute(update(_ENTRIES).where(this).values(**change))


def _change_of_entry(entry: Row[Any], look: EntryLook) -> dict[str, Any]:
    """Return what a look changes of since when all who look agree."""
    deviated_at = datetime.fromisoformat(entry.deviated_at)
    if not look.deviated:
        first = entry.agreeing_since is None and look.looked_at > deviated_at
        return {"agreeing_since": stamp(look.looked_at)} if first else {}
    if look.looked_at <= deviated_at:
        return {}
    since = entry.agreeing_since
    over = since is not None and datetime.fromisoformat(since) <= look.looked_at
    return {"deviated_at": stamp(look.looked_at)} | ({"agreeing_since": None} if over else {})


def _set_campaign(connection: Connection, campaign: CorpusCampaign) -> None:
    table = tables.campaigns
    row = campaign._asdict() | {"added_at": stamp(campaign.added_at)}
    change = update(table).where(table.c.id == campaign.id).values(**row)
    if connection.execute(change).rowcount == 0:
        connection.execute(insert(table).values(**row))
