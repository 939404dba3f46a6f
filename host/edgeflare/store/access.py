"""What every part of the store needs: the folder, its database and its samples."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Row, Select, Table, select

from edgeflare.errors import StoreError
from edgeflare.store import tables
from edgeflare.store.database import for_writing
from edgeflare.store.failures import decoding, told_of
from edgeflare.store.samples import SampleFiles

_T = TypeVar("_T")
BATCH = 256
"""How many rows are read, or names asked for, at a time."""


class Access:
    """A campaign's folder with its database, open. The parts of the store build on it.

    Any thread may call any method. Writers go one by one and each is one transaction; a reader holds a
    connection for one page of rows only, so it never keeps a writer waiting.
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder = folder
        self._engine = engine
        self._writing_engine = for_writing(engine)
        self._samples = SampleFiles(folder / "samples")
        self._lock = threading.Lock()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with told_of(self.folder), self._lock, self._writing_engine.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self, what: str = "its database") -> Iterator[Connection]:
        """Give a connection to read `what` with and to make records of it; StoreError says that it is damaged."""
        with (
            decoding(self.folder, what),
            told_of(self.folder),
            self._engine.connect() as connection,
        ):
            yield connection

    def _rows(self, table: Table, record: Callable[[Row[Any]], _T]) -> list[_T]:
        """Return a record of each row of a short table, in order."""
        return list(self._pages(select(table), table.c.position, record))

    def _pages(
        self,
        query: Select[Any],
        position: ColumnElement[int],
        record: Callable[[Row[Any]], _T],
    ) -> Iterator[_T]:
        """Yield a record a row of the query in the order of `position`, one of its columns."""
        last = -1
        while True:
            page = query.where(position > last).order_by(position).limit(BATCH)
            what = f"the table {position.table.name} of its database"
            with self._reading(what) as connection:
                rows = list(connection.execute(page))
            for row in rows:
                with decoding(self.folder, what):
                    one = record(row)
                yield one
            if len(rows) < BATCH:
                return
            last = rows[-1]._mapping[position]

    def _positions(self, connection: Connection, seed_ids: Iterable[str]) -> dict[str, int]:
        """Return where the seeds of these ids are. Raises StoreError for one that isn't there."""
        wanted = list(seed_ids)
        known: dict[str, int] = {}
        for some in batches(wanted):
            query = select(tables.seeds.c.id, tables.seeds.c.position)
            rows = connection.execute(query.where(tables.seeds.c.id.in_(some)))
            known.update((row.id, row.position) for row in rows)
        for seed_id in wanted:
            if seed_id not in known:
                raise StoreError(f"There is no seed {seed_id!r} in {self.folder}: it is unknown.")
        return known

    def _check_kept(self, digest: str | None) -> None:
        if digest and not self._samples.path(digest).exists():
            raise StoreError(f"The sample {digest} was not put into {self.folder}.")


def batches(items: Iterable[_T]) -> Iterator[Sequence[_T]]:
    """Yield all items, up to BATCH at a time."""
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch
