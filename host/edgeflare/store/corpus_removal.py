"""How entries leave a trigger corpus."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from sqlalchemy import Connection, delete, func, select

from edgeflare.errors import UsageError
from edgeflare.store import corpus_tables as tables
from edgeflare.store.access import batches
from edgeflare.store.corpus_adding import CorpusAdding
from edgeflare.store.corpus_records import CorpusRemoved, EntryLook

_ENTRIES, _LOOKS, _SIGHTINGS = tables.entries, tables.looks, tables.sightings


_DIGEST = re.compile(r"[0-9a-f]{64}")


class CorpusRemoval(CorpusAdding):
    """The part of a corpus that shrinks."""

    def remove(
        self,
        *,
        model: str | None = None,
        pair: tuple[int, int] | None = None,
        fixed_for: float | None = None,
        now: datetime | None = None,
        dry_run: bool = False,
    ) -> CorpusRemoved:
        """Remove entries, and the samples nobody refers to any more; return what went.

        Exactly one of: `model`, what only this deployed model showed, and all that is known of it (an
        entry that another one showed, too, stays); `pair`, those of these two classes, the
        original's and the deployed one's; `fixed_for`, those on which no target deviated for so many
        days until `now`, though one looked, and that agree by the last look of each device.

        With `dry_run` nothing is removed; what would be is returned. Raises UsageError, StoreError.
        """
        if sum(one is not None for one in (model, pair, fixed_for)) != 1:
            raise UsageError(
                "Say what to remove from the corpus: a model, a class pair or what is fixed for some "
                "days; one of the three."
            )
        if fixed_for is not None and not fixed_for >= 0:
            raise UsageError(f"Nothing is fixed for {fixed_for:g} days; name 0 or more.")
        with self._changing():
            kept = 0
            if fixed_for is not None:
                going = self._fixed(now or datetime.now(timezone.utc), fixed_for)
            else:
                with self._reading() as connection:
                    going, kept = (
                        _of_pair(connection, pair) if pair else _of_model(connection, model or "")
                    )
            loose, size = self._loose_samples(without=going)
            if not dry_run:
                self._remove(going, model)
                for digest in loose:
                    self._samples.path(digest).unlink(missing_ok=True)
        return CorpusRemoved(len(going), len(loose), size, kept)

    def _remove(self, going: set[int], model: str | None) -> None:
        with self._writing() as connection:
            for some in batches(sorted(going)):
                connection.execute(delete(_ENTRIES).where(_ENTRIES.c.position.in_(some)))
            if model is not None:
                for table in (_LOOKS, _SIGHTINGS):
                    connection.execute(delete(table).where(table.c.model == model))

    def _fixed(self, now: datetime, days: float) -> set[int]:
        """Return the entries that are fixed for so many days."""
        last: dict[tuple[str, str], EntryLook] = {}
        for look in self.looks():
            known = last.get((look.sample, look.device))
            if known is None or known.looked_at <= look.looked_at:
                last[look.sample, look.device] = look
        deviating = {look.sample for look in last.values() if look.deviated}
        latest = now - timedelta(days=days)
        return {
            entry.position
            for entry in self.entries()
            if entry.agreeing_since is not None
            and entry.agreeing_since <= latest
            and entry.sample not in deviating
        }

    def _loose_samples(self, without: Iterable[int]) -> tuple[list[str], int]:
        """Return the digests of the files that no entry but these refers to, and their bytes."""
        gone = set(without)
        used = {
            digest
            for entry in self.entries()
            if entry.position not in gone
            for digest in (entry.sample, entry.seed_sample)
        }
        loose = {
            path.stem: path.stat().st_size
            for path in self._samples.paths()
            if path.stem not in used and _DIGEST.fullmatch(path.stem)
        }
        return sorted(loose), sum(loose.values())


def _of_pair(connection: Connection, pair: tuple[int, int]) -> tuple[set[int], int]:
    query = select(_ENTRIES.c.position).where(
        _ENTRIES.c.original_label == pair[0], _ENTRIES.c.deployed_label == pair[1]
    )
    return set(connection.execute(query).scalars()), 0


def _of_model(connection: Connection, model: str) -> tuple[set[int], int]:
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
