"""A trigger corpus: a folder that grows over campaigns, models and devices, to be replayed."""

import re
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update

from edgeflare._internal.files import make_folder
from edgeflare._version import __version__
from edgeflare.errors import StoreError, UsageError
from edgeflare.store import creation
from edgeflare.store.corpus import tables
from edgeflare.store.corpus.base import (
    CORPUS_ADVICE,
    LOCK_NAME,
    About,
    check_per_pair,
    corpus_errors,
    exclusive_lock,
    read_about,
)
from edgeflare.store.corpus.records import (
    Added,
    CorpusCampaign,
    CorpusEntry,
    CorpusRemoved,
    DeviceAnswer,
    Form,
    TriggerRecord,
)
from edgeflare.store.corpus.write import (
    BY_SAMPLE,
    add_answer,
    add_one,
    entries_of_model,
    samples_of,
    set_campaign,
)
from edgeflare.store.database import (
    Database,
    Schema,
    batches,
    decoding,
    disk_full_advice,
    translate_errors,
)
from edgeflare.store.location import (
    CORPUS_NAME,
    campaign_text,
    is_campaign,
    is_corpus,
    read_pointer,
)
from edgeflare.store.mapped import reader, record_of
from edgeflare.store.migration import open_database
from edgeflare.store.records import ReplayInput, ReplayResult
from edgeflare.store.samples import SampleFiles, StoredFolder
from edgeflare.types import Sample
from edgeflare.words.inputs import sample_form

_SCHEMA = Schema("corpus", CORPUS_NAME, tables.SCHEMA_VERSION, tables.about, tables.SCHEMA_VERSION)
PER_PAIR = 3
"""The most entries for one seed input and one pair of classes, by default."""

_ENTRIES, _LOOKS, _SIGHTINGS = tables.entries, tables.looks, tables.sightings
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Corpus(StoredFolder):
    """Confirmed triggering inputs of many campaigns: `corpus.sqlite` and `samples/` in one folder.

    Every method that changes something is on disk when it returns; a process killed in the middle
    leaves every entry whole. Any thread may call any method; of several processes that change a
    corpus each waits for the one before. All methods raise StoreError, DiskFullError among them.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._changing_one = threading.Lock()

    @classmethod
    def open(
        cls,
        folder: Path,
        create: bool = False,
        *,
        per_pair: int | None = None,
        database: str | None = None,
        samples: str | None = None,
    ) -> "Corpus":
        """Open the corpus in a folder; make one there, where there is none, if `create` says so.

        A folder to be made a corpus must be empty or not exist. `per_pair` is how many entries one
        seed input and class pair may have (3 for a new corpus); None leaves what the corpus has.
        `database` and `samples` say where the data of a new corpus is, as of a new `Store`; one
        that is there stays where it is. A corpus of an earlier edgeflare is migrated; see
        `open_database`.
        """
        folder = Path(folder)
        if per_pair is not None:
            check_per_pair(per_pair)
        if create and not is_corpus(folder):
            with translate_errors(folder, resumable=False):
                _make(folder, per_pair or PER_PAIR, database, samples)
        with decoding(folder), corpus_errors(folder):
            if not folder.is_dir():
                raise StoreError(f"there is no corpus folder {folder}; check the path")
            read_pointer(folder)  # one that is damaged makes neither
            if is_campaign(folder):
                raise StoreError(
                    f"{campaign_text(folder)} is not a corpus but a campaign; `edgeflare show` shows "
                    "it, `edgeflare corpus add` adds what it found to a corpus"
                )
            if not is_corpus(folder):
                raise StoreError(
                    f"{folder} is not a corpus: it has no {CORPUS_NAME}; check the path, or make one "
                    "with `edgeflare corpus add`"
                )
            corpus = cls(
                open_database(folder, _SCHEMA, exclusive_lock(folder), errors=corpus_errors)
            )
            try:
                if per_pair is not None and per_pair != corpus.per_pair:
                    corpus.set_per_pair(per_pair)
            except BaseException:
                corpus.close()
                raise
        return corpus

    def size(self) -> int:
        """Return how many bytes the database and the samples take on disk."""
        size = self._database.size(CORPUS_NAME)
        with translate_errors(self.folder):
            return size + sum(bytes_ for _, bytes_ in self._samples.sizes())

    @property
    def id(self) -> str:
        """The corpus's own name, 32 hexadecimal digits."""
        return self._about().id

    @property
    def created_at(self) -> datetime:
        """When the corpus was made, UTC."""
        return self._about().created_at

    @property
    def per_pair(self) -> int:
        """How many entries there may be for one seed input and one pair of classes."""
        return self._about().per_pair

    def set_per_pair(self, at_most: int) -> None:
        """Set the most entries for one seed input and one pair of classes, from the next one on.

        Raises UsageError for less than 1.
        """
        check_per_pair(at_most)
        with self._changing(), self._database.writing() as connection:
            connection.execute(update(tables.about).values(per_pair=at_most))

    @property
    def form(self) -> Form | None:
        """The shape of every sample and the number of classes; None until something was added."""
        return self._about().form

    @property
    def rate(self) -> int | None:
        """The rate in Hz of a corpus of audio; None of images."""
        form = self.form
        return None if form is None else form.rate

    def __len__(self) -> int:
        """How many entries there are."""
        with self._database.reading() as connection:
            query = select(func.count()).select_from(_ENTRIES)
            return int(connection.execute(query).scalar_one())

    def entries(self) -> Iterator[CorpusEntry]:
        """Yield every entry, in the order they came."""
        return self._database.pages(select(_ENTRIES), _ENTRIES.c.position, reader(CorpusEntry))

    def known(self, digests: Iterable[str]) -> dict[str, CorpusEntry]:
        """Return the entries that are of these samples, by their digests."""
        found: dict[str, CorpusEntry] = {}
        for batch in batches(digests):
            query = select(_ENTRIES).where(_ENTRIES.c.sample.in_(batch))
            with self._database.reading() as connection:
                for row in connection.execute(query):
                    found[row.sample] = record_of(CorpusEntry, row)
        return found

    def answers(self) -> Iterator[DeviceAnswer]:
        """Yield what each target answered to each entry when it was last asked."""
        return self._database.pages(_answers_query(), _LOOKS.c.position, reader(DeviceAnswer))

    def sightings(self) -> dict[str, int]:
        """Return how often each entry was found, by its sample's digest; at least 1."""
        query = (
            select(_ENTRIES.c.sample, func.count())
            .join_from(_ENTRIES, _SIGHTINGS, _SIGHTINGS.c.entry == _ENTRIES.c.position)
            .group_by(_ENTRIES.c.position)
        )
        with self._database.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def models(self) -> dict[str, int]:
        """Return on how many entries each deployed model deviated, by the models' names."""
        count = func.count(func.distinct(_SIGHTINGS.c.entry))
        query = select(_SIGHTINGS.c.model, count).group_by(_SIGHTINGS.c.model)
        with self._database.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def campaigns(self) -> list[CorpusCampaign]:
        """Return every campaign that was added, in the order they first were."""
        return self._database.rows(tables.campaigns, reader(CorpusCampaign))

    def inputs(self, target: str | None = None) -> Iterator[ReplayInput]:
        """Yield every entry as an input for a replay, those whose last answer deviated first.

        `target` names what is replayed, ``model/device`` (see `target_name`); an input `deviated`
        if it did in that target's last answer. A trigger that it was never asked about counts as
        deviating: a model or device asked for the first time has nothing that could have come back,
        so that nothing is new there.

        None: the last answer of all, of whichever target; `looks` also has the last answer of each
        device, so that devices are compared with their own.
        """
        answers: dict[str, list[DeviceAnswer]] = defaultdict(list)
        for answer in self.answers():
            if target is None or answer.target == target:
                answers[answer.sample].append(answer)
        for deviating in (True, False):
            for entry in self.entries():
                if _deviated(answers[entry.sample]) is deviating:
                    yield _input(entry, answers[entry.sample], target)

    def add(
        self,
        triggers: Iterable[TriggerRecord],
        form: Form,
        read: Callable[[str], Sample],
        *,
        campaign: CorpusCampaign | None = None,
    ) -> Added:
        """Add triggering inputs in the order they were found; return how many were added.

        One that is there to the bit is there once: it counts as seen again. Of one seed input and
        one pair of classes at most `per_pair` stay: the first, the nearest to the seed (least
        L2) and the severest (largest smaller margin); others are near duplicates. Each is also an
        answer of its target, see `add_answers`. `read` gives the sample of a digest, `form` is that
        of all of them. `campaign` says where they come from: what is known of an
        earlier time is replaced, and what became of them is filled in.

        The same again changes nothing. What was added is on disk when this returns; a process
        killed in the middle leaves some of them added, each whole.

        Raises UsageError where the corpus is of another form, StoreError.
        """
        mine: set[int] = set()
        replaced = known = seen = 0
        with self._changing():
            with self._database.writing() as connection:
                self._set_form(connection, form)
            for batch in batches(triggers):
                dropped: list[Row[Any]] = []
                fresh: set[int] = set()
                with self._database.writing() as connection:
                    at_most = connection.execute(select(tables.about.c.per_pair)).scalar_one()
                    with decoding(self.folder):
                        for trigger in batch:
                            known += add_one(connection, trigger, at_most, fresh, dropped)
                    self._keep_samples(connection, fresh, read)
                mine |= fresh
                seen += len(batch)
                replaced += sum(row.position not in mine for row in dropped)
                mine.difference_update(row.position for row in dropped)
                self._forget_samples({sample for row in dropped for sample in samples_of(row)})
            added = Added(len(mine), replaced, known, seen - known - len(mine))
            if campaign is not None:
                with self._database.writing() as connection:
                    set_campaign(connection, campaign._replace(triggers=seen, near=added.near))
        return added

    def add_answers(self, answers: Iterable[DeviceAnswer]) -> int:
        """Record what targets answered to entries; return how many were of an entry.

        An answer is ignored where one of the same target at that time, or later, is recorded
        already.
        """
        added = 0
        with self._changing():
            for batch in batches(answers):
                with self._database.writing() as connection, decoding(self.folder):
                    for answer in batch:
                        row = connection.execute(BY_SAMPLE, {"of_sample": answer.sample}).first()
                        if row is not None:
                            add_answer(connection, row, answer)
                            added += 1
        return added

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

        Exactly one of: `model`, what only this deployed model showed, and all that is known of it
        (an entry that another one showed, too, stays); `pair`, those of these two classes, the
        original's and the deployed one's; `fixed_for`, those on which no target deviated for so
        many days until `now`, though one was asked, and that agree by the last answer of each
        device.

        With `dry_run` nothing is removed; what would be is returned. Raises UsageError, StoreError.
        """
        if sum(one is not None for one in (model, pair, fixed_for)) != 1:
            raise UsageError(
                "say what to remove from the corpus: a model, a class pair or what is fixed for some "
                "days; one of the three"
            )
        if fixed_for is not None and not fixed_for >= 0:
            raise UsageError(f"nothing is fixed for {fixed_for:g} days; name 0 or more")
        with self._changing():
            kept = 0
            if fixed_for is not None:
                removed = self._fixed(now or datetime.now(timezone.utc), fixed_for)
            else:
                with self._database.reading() as connection:
                    if pair is not None:
                        query = select(_ENTRIES.c.position).where(
                            _ENTRIES.c.original_label == pair[0],
                            _ENTRIES.c.deployed_label == pair[1],
                        )
                        removed = set(connection.execute(query).scalars())
                    else:
                        removed, kept = entries_of_model(connection, model or "")
            unused, size = self._unused_samples(without=removed)
            if not dry_run:
                self._remove(removed, model)
                self._samples.remove(unused)
        return CorpusRemoved(len(removed), len(unused), size, kept)

    def _about(self) -> About:
        with self._database.reading() as connection:
            return read_about(connection)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Exclude other threads and processes that change it; remove partly written samples."""
        with self._changing_one, exclusive_lock(self.folder), disk_full_advice(*CORPUS_ADVICE):
            with translate_errors(self.folder):
                self._samples.remove_torn()
            yield

    def _set_form(self, connection: Connection, form: Form) -> None:
        """Set the form of an empty corpus. Raises UsageError where the entries have another."""
        with decoding(self.folder):
            known = read_about(connection).form
        if known is None:
            change = {"shape": list(form.shape), "classes": form.classes, "rate": form.rate}
            connection.execute(update(tables.about).values(**change))
        elif known != form:
            raise UsageError(
                f"the corpus {self.folder} has inputs of {sample_form(known.shape, known.rate)} and "
                f"{known.classes} classes, these are of {sample_form(form.shape, form.rate)} and "
                f"{form.classes} classes; add them to a corpus of their own"
            )
        self._samples.rate = form.rate

    def _keep_samples(
        self, connection: Connection, positions: set[int], read: Callable[[str], Sample]
    ) -> None:
        """Write the samples of these entries, of one batch, and of their seeds to disk."""
        query = select(_ENTRIES).where(_ENTRIES.c.position.in_(sorted(positions)))
        wanted = {sample for row in connection.execute(query) for sample in samples_of(row)}
        if wanted:
            self._samples.put_all([read(digest) for digest in sorted(wanted)])

    def _forget_samples(self, digests: Iterable[str]) -> None:
        """Delete the sample files of these digests that no entry refers to."""
        for batch in batches(sorted(digests)):
            used: set[str] = set()
            with self._database.reading() as connection:
                for column in (_ENTRIES.c.sample, _ENTRIES.c.seed_sample):
                    query = select(column).where(column.in_(batch))
                    used.update(connection.execute(query).scalars())
            self._samples.remove(set(batch) - used)

    def _remove(self, removed: set[int], model: str | None) -> None:
        with self._database.writing() as connection:
            for batch in batches(sorted(removed)):
                connection.execute(delete(_ENTRIES).where(_ENTRIES.c.position.in_(batch)))
            if model is not None:
                for table in (_LOOKS, _SIGHTINGS):
                    connection.execute(delete(table).where(table.c.model == model))

    def _fixed(self, now: datetime, days: float) -> set[int]:
        """Return the entries that are fixed for so many days."""
        last: dict[tuple[str, str], DeviceAnswer] = {}
        for answer in self.answers():
            known = last.get((answer.sample, answer.device))
            if known is None or known.looked_at <= answer.looked_at:
                last[answer.sample, answer.device] = answer
        deviating = {answer.sample for answer in last.values() if answer.deviated}
        latest = now - timedelta(days=days)
        return {
            entry.position
            for entry in self.entries()
            if entry.agreeing_since is not None
            and entry.agreeing_since <= latest
            and entry.sample not in deviating
        }

    def _unused_samples(self, without: Iterable[int]) -> tuple[list[str], int]:
        """Return the digests of the sample files that no other entry uses, and their bytes."""
        left_out = set(without)
        used = {
            digest
            for entry in self.entries()
            if entry.position not in left_out
            for digest in (entry.sample, entry.seed_sample)
        }
        unused = {
            digest: size
            for digest, size in self._samples.sizes()
            if digest not in used and _DIGEST.fullmatch(digest)
        }
        return sorted(unused), sum(unused.values())


def _input(entry: CorpusEntry, answers: Sequence[DeviceAnswer], target: str | None) -> ReplayInput:
    last = max(answers, key=lambda answer: answer.looked_at, default=None)
    of_devices: dict[str, ReplayResult] = {}
    for answer in sorted(answers, key=lambda answer: answer.looked_at) if target is None else ():
        of_devices.pop(answer.device, None)  # the latest answer comes last
        of_devices[answer.device] = ReplayResult(answer.deviated, answer.deployed_label)
    return ReplayInput(
        id=entry.id,
        kind="trigger",
        deviated=_deviated(answers),
        seed_id=entry.seed_id,
        label=entry.seed_label,
        original_label=entry.original_label if last is None else last.original_label,
        deployed_label=entry.deployed_label if last is None else last.deployed_label,
        l2=entry.l2,
        looks=of_devices,
        sample=entry.sample,
    )


def _deviated(answers: Sequence[DeviceAnswer]) -> bool:
    return max(answers, key=lambda answer: answer.looked_at).deviated if answers else True


def _answers_query() -> Select[tuple[object, ...]]:
    return select(_LOOKS, _ENTRIES.c.sample).join_from(
        _LOOKS, _ENTRIES, _LOOKS.c.entry == _ENTRIES.c.position
    )


def _make(folder: Path, per_pair: int, database: str | None, samples: str | None) -> None:
    """Make an empty corpus; what a killed process left of one goes first."""
    if folder.exists() and (
        not folder.is_dir() or any(not _is_unfinished(path) for path in folder.iterdir())
    ):
        raise StoreError(
            f"{folder} is neither a corpus nor an empty folder; choose another for the corpus"
        )
    make_folder(folder)

    def fill(connection: Connection) -> None:
        tables.metadata.create_all(connection)
        connection.execute(
            insert(tables.about).values(
                schema_version=tables.SCHEMA_VERSION,
                program_version=__version__,
                id=uuid.uuid4().hex,
                created_at=datetime.now(timezone.utc).isoformat(),
                per_pair=per_pair,
            )
        )

    with exclusive_lock(folder):
        if is_corpus(folder):
            return
        for path in folder.glob(f"{CORPUS_NAME}*"):  # of a process that was killed here
            path.unlink()
        SampleFiles(folder / "samples").discard()
        creation.make(folder, _SCHEMA, fill, database=database, samples=samples)


def _is_unfinished(path: Path) -> bool:
    """Whether a file or folder belongs to a corpus whose creation has not finished."""
    return path.name in (LOCK_NAME, "samples") or path.name.startswith(CORPUS_NAME)
