"""Seed inputs and both models' answers on them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from sqlalchemy import Connection, Select, and_, func, insert, select
from sqlalchemy.exc import IntegrityError

from edgeflare.errors import StoreError
from edgeflare.store import tables
from edgeflare.store.about import About
from edgeflare.store.access import batches
from edgeflare.store.failures import decoding, told_of
from edgeflare.store.records import SeedAnswer, SeedInput, SeedRecord
from edgeflare.store.rows import answer_to_row, seed_from_row
from edgeflare.types import Sample

SAMPLE_RATE = "sample_rate"
"""The fact that has the rate of audio samples in Hz."""

_SEEDS = tables.seeds
_ANSWERS = tables.seed_answers
_OUTCOMES = tables.outcomes


class Seeds(About):
    """The part of the store that holds samples, seeds and the answers on seeds."""

    @property
    def sample_rate(self) -> int | None:
        """The rate of all samples in Hz; None of images, and before it was set."""
        return self._samples.rate

    def set_sample_rate(self, rate: int) -> None:
        """Say that the campaign's samples are audio at this rate in Hz; it must be said before any is put."""
        self.set_fact(SAMPLE_RATE, rate)
        self._samples.rate = rate

    def put_sample(self, sample: Sample) -> str:
        """Keep a sample for good and return its digest; written once, however often it is put."""
        with told_of(self.folder):
            return self._samples.put(sample)

    def get_sample(self, digest: str) -> Sample:
        """Read a sample back, checked against its digest."""
        with decoding(self.folder, f"the sample {digest}"), told_of(self.folder):
            return self._samples.get(digest)

    def add_seeds(self, seeds: Iterable[SeedInput]) -> list[str]:
        """Record many seeds, in order behind those there are; return the digests of their samples.

        All of them or, where one has an id that is there already, none. Samples are not kept in memory.
        """
        rows: list[dict[str, Any]] = []
        for some in batches(seeds):
            with told_of(self.folder):
                digests = self._samples.put_all([seed.sample for seed in some])
            rows += (
                {
                    "id": seed.id,
                    "label": seed.label,
                    "sample": digest,
                    "file_sha256": seed.file_sha256,
                }
                for seed, digest in zip(some, digests, strict=True)
            )
        if rows:
            self._add_rows(rows)
        return [row["sample"] for row in rows]

    def seed_ids(self) -> set[str]:
        """The ids of all seeds."""
        with self._reading() as connection:
            return set(connection.execute(select(_SEEDS.c.id)).scalars())

    def seed_samples(self) -> Sequence[Sample]:
        """The samples of the seeds there are now, in order; each is read when it is looked at."""
        query = select(_SEEDS.c.sample).order_by(_SEEDS.c.position)
        with self._reading() as connection:
            digests = list(connection.execute(query).scalars())
        return _LazySamples(self.get_sample, digests)

    def seed_count(self) -> int:
        """How many seeds there are."""
        with self._reading() as connection:
            return _count(connection)

    def add_seed_answers(self, answers: Sequence[SeedAnswer], replica: str = "") -> None:
        """Record both models' answers on some seeds, of one replica, in one transaction.

        Of several answers on one seed the first one that was ever added is kept.
        """
        first: dict[str, SeedAnswer] = {}
        for answer in answers:
            first.setdefault(answer.seed_id, answer)
        with self._writing() as connection:
            positions = self._positions(connection, first)
            known = _answered(connection, positions.values(), replica)
            rows = [
                {"seed": positions[seed_id], "replica": replica, **answer_to_row(answer)}
                for seed_id, answer in first.items()
                if positions[seed_id] not in known
            ]
            if rows:
                connection.execute(insert(_ANSWERS), rows)

    def seeds(self, replica: str | None = None) -> Iterator[SeedRecord]:
        """Every seed in order, with this replica's answers as its outputs where there are any.

        None takes the replica whose answer was added first: the only one, "", in a pool.
        """
        if replica is None:
            replica = self._first_replica()
        query = _with_answers(replica, every_seed=True)
        return self._pages(query, _SEEDS.c.position, seed_from_row)

    def pending_seeds(self, replica: str = "") -> Iterator[SeedRecord]:
        """The seeds that this replica has answered and has no outcome of, in order, each once.

        Looked up a page at a time while iterating: outcomes may be added meanwhile; a seed that gets
        its outcome between may still come.
        """
        finished = and_(_OUTCOMES.c.seed == _SEEDS.c.position, _OUTCOMES.c.replica == replica)
        query = _with_answers(replica, every_seed=False).where(
            ~select(_OUTCOMES.c.position).where(finished).exists()
        )
        return self._pages(query, _SEEDS.c.position, seed_from_row)

    def _add_rows(self, rows: list[dict[str, Any]]) -> None:
        try:
            with self._writing() as connection:
                for position, row in enumerate(rows, start=_count(connection)):
                    row["position"] = position
                connection.execute(insert(_SEEDS), rows)
        except StoreError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            there = self.seed_ids()
            often = Counter(row["id"] for row in rows)
            again = next(row["id"] for row in rows if row["id"] in there or often[row["id"]] > 1)
            raise StoreError(f"The seed {again!r} is in {self.folder} already.") from error

    def _first_replica(self) -> str:
        query = select(_ANSWERS.c.replica).order_by(_ANSWERS.c.position).limit(1)
        with self._reading() as connection:
            return connection.execute(query).scalar() or ""


class _LazySamples(Sequence[Sample]):
    """Samples by their digests; none is kept in memory."""

    def __init__(self, read: Callable[[str], Sample], digests: Sequence[str]) -> None:
        self._read = read
        self._digests = digests

    def __len__(self) -> int:
        return len(self._digests)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return _LazySamples(self._read, self._digests[index])
        return self._read(self._digests[index])


def _count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(_SEEDS)).scalar_one()


def _answered(connection: Connection, positions: Iterable[int], replica: str) -> set[int]:
    """Return which of the seeds at these positions this replica has answered."""
    answered: set[int] = set()
    for some in batches(positions):
        query = select(_ANSWERS.c.seed).where(
            _ANSWERS.c.replica == replica, _ANSWERS.c.seed.in_(some)
        )
        answered.update(connection.execute(query).scalars())
    return answered


def _with_answers(replica: str, *, every_seed: bool) -> Select[Any]:
    answer = and_(_ANSWERS.c.seed == _SEEDS.c.position, _ANSWERS.c.replica == replica)
    columns = (
        _ANSWERS.c.original,
        _ANSWERS.c.original_pieces,
        _ANSWERS.c.deployed,
        _ANSWERS.c.deployed_pieces,
        _ANSWERS.c.decision,
    )
    return select(_SEEDS, *columns).join(_ANSWERS, answer, isouter=every_seed)
