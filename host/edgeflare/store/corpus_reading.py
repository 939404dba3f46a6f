"""What a trigger corpus has, and how it is handed to a replay."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlalchemy import Select, func, select

from edgeflare.errors import StoreError
from edgeflare.store import corpus_tables as tables
from edgeflare.store.access import batches
from edgeflare.store.corpus_access import CorpusAccess
from edgeflare.store.corpus_records import CorpusCampaign, CorpusEntry, EntryLook
from edgeflare.store.corpus_rows import campaign_from_row, entry_from_row, look_from_row
from edgeflare.store.failures import decoding, told_of
from edgeflare.store.replay_input import Look, ReplayInput
from edgeflare.types import Sample

_ENTRIES, _LOOKS, _SIGHTINGS = tables.entries, tables.looks, tables.sightings


class CorpusReading(CorpusAccess):
    """The part of a corpus that is read."""

    def __len__(self) -> int:
        """How many entries there are."""
        with self._reading() as connection:
            query = select(func.count()).select_from(_ENTRIES)
            return int(connection.execute(query).scalar_one())

    def entries(self) -> Iterator[CorpusEntry]:
        """Yield every entry, in the order they came."""
        return self._pages(select(_ENTRIES), _ENTRIES.c.position, entry_from_row)

    def get_sample(self, digest: str) -> Sample:
        """Read the sample of an entry or of its seed back, uint8 [height, width, channels]."""
        with decoding(self.folder, f"the sample {digest}"), told_of(self.folder):
            return self._samples.get(digest)

    def known(self, digests: Iterable[str]) -> dict[str, CorpusEntry]:
        """Return the entries that are of these samples, by their digests."""
        found: dict[str, CorpusEntry] = {}
        for some in batches(digests):
            query = select(_ENTRIES).where(_ENTRIES.c.sample.in_(some))
            with self._reading() as connection:
                for row in connection.execute(query):
                    found[row.sample] = entry_from_row(row)
        return found

    def looks(self) -> Iterator[EntryLook]:
        """Yield what each target said of each entry when it last looked at it."""
        return self._pages(_looks_query(), _LOOKS.c.position, look_from_row)

    def sightings(self) -> dict[str, int]:
        """Return how often each entry was found, by its sample's digest: 1 is that it was found once."""
        query = (
            select(_ENTRIES.c.sample, func.count())
            .join_from(_ENTRIES, _SIGHTINGS, _SIGHTINGS.c.entry == _ENTRIES.c.position)
            .group_by(_ENTRIES.c.position)
        )
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def seen_at(self) -> dict[str, str]:
        """Return when each entry was last found by a search (ISO 8601, UTC), by its sample's digest."""
        query = (
            select(_ENTRIES.c.sample, func.max(_SIGHTINGS.c.seen_at))
            .join_from(_ENTRIES, _SIGHTINGS, _SIGHTINGS.c.entry == _ENTRIES.c.position)
            .group_by(_ENTRIES.c.position)
        )
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def models(self) -> dict[str, int]:
        """Return how many entries each deployed model showed, by what the models are called."""
        count = func.count(func.distinct(_SIGHTINGS.c.entry))
        query = select(_SIGHTINGS.c.model, count).group_by(_SIGHTINGS.c.model)
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def campaigns(self) -> list[CorpusCampaign]:
        """Return every campaign that was added, in the order they first were."""
        return self._rows(tables.campaigns, campaign_from_row)

    def inputs(
        self,
        target: str | None = None,
        wanted: Callable[[CorpusEntry], bool] | None = None,
    ) -> Iterator[ReplayInput]:
        """Yield every entry as an input for a replay, those that deviated when last looked at first.

        `wanted` leaves entries out before their samples are read; it is asked once for each.

        `target` names what is replayed, ``model/device`` (see `target_name`); an input `deviated` as
        that target said when it last looked. A trigger that it never looked at counts as found, that is
        as deviating: a model or device asked for the first time has nothing that could have come back,
        so that nothing is new there.

        None: what was said last of all, by whichever target; `looks` has beside that what each device
        said last, so that devices are held to their own.

        Entries that are removed meanwhile may be missing.
        """
        looks: dict[str, list[EntryLook]] = defaultdict(list)
        for look in self.looks():
            if target is None or look.target == target:
                looks[look.sample].append(look)
        agreeing, rate = set(), self.rate
        for entry in self.entries():
            if wanted is not None and not wanted(entry):
                continue
            if not _deviated(looks[entry.sample]):
                agreeing.add(entry.sample)
                continue
            yield from self._input(entry, looks[entry.sample], target, rate)
        for entry in self.entries():
            if entry.sample in agreeing:
                yield from self._input(entry, looks[entry.sample], target, rate)

    def _input(
        self,
        entry: CorpusEntry,
        looks: Sequence[EntryLook],
        target: str | None,
        rate: int | None,
    ) -> Iterator[ReplayInput]:
        """Yield the input of an entry, unless the entry was removed while it was on its way."""
        try:
            sample = self.get_sample(entry.sample)
        except StoreError:
            if not self.known([entry.sample]):
                return
            raise
        last = max(looks, key=lambda look: look.looked_at, default=None)
        of_devices: dict[str, Look] = {}
        for look in sorted(looks, key=lambda look: look.looked_at) if target is None else ():
            of_devices.pop(look.device, None)  # the one that said so last comes last
            of_devices[look.device] = Look(look.deviated, look.deployed_label)
        yield ReplayInput(
            id=entry.id,
            sample=sample,
            kind="trigger",
            deviated=_deviated(looks),
            seed_id=entry.seed_id,
            label=entry.seed_label,
            original_label=entry.original_label if last is None else last.original_label,
            deployed_label=entry.deployed_label if last is None else last.deployed_label,
            l2=entry.l2,
            rate=rate,
            looks=of_devices,
        )


def _deviated(looks: Sequence[EntryLook]) -> bool:
    return max(looks, key=lambda look: look.looked_at).deviated if looks else True


def _looks_query() -> Select[tuple[object, ...]]:
    return select(_LOOKS, _ENTRIES.c.sample).join_from(
        _LOOKS, _ENTRIES, _LOOKS.c.entry == _ENTRIES.c.position
    )
