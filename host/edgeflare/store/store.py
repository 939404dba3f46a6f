"""A campaign's folder: its database and its samples."""

import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Engine, Row, Table, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from edgeflare.errors import StoreError
from edgeflare.store import tables
from edgeflare.store.database import DATABASE_NAME, check_schema, connect, write_schema
from edgeflare.store.failures import told_of
from edgeflare.store.records import Device, OutcomeRecord, SeedRecord, SkippedRecord
from edgeflare.store.rows import (
    digest_of,
    outcome_from_row,
    outcome_to_row,
    outputs_to_row,
    seed_from_row,
)
from edgeflare.store.samples import SampleFiles, sync_folder
from edgeflare.types import Outputs, Sample

if TYPE_CHECKING:
    from typing_extensions import Self

_T = TypeVar("_T")
_PAGE = 500
_WRITERS = 8


class Store:
    """Everything a campaign learns: `campaign.sqlite` and `samples/` in one folder.

    Every method that adds something is one transaction and is on disk when it returns. Any thread
    may call any method; several processes may read while one writes. All methods raise StoreError,
    DiskFullError among them.
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder = folder
        self._engine = engine
        self._samples = SampleFiles(folder / "samples")
        self._lock = threading.Lock()
        self._environment: str | None = None
        self._made_folder = False

    @classmethod
    def create(
        cls,
        folder: Path,
        campaign: dict[str, Any],
        *,
        environment: dict[str, Any] | None = None,
        url: str | None = None,
    ) -> "Store":
        """Make a campaign folder, which must not exist or be empty.

        `campaign` is the resolved configuration, `environment` the host's (library versions and so
        on), both JSON objects. `url` names another database than the file in the folder.
        """
        folder = Path(folder)
        cls.check_free(folder)
        with told_of(folder):
            made = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            store = cls(folder, connect(folder, url))
            store._made_folder = made
            try:
                store._fill(campaign, environment)
            except BaseException:
                store.close()
                _empty(folder)
                raise
        return store

    @staticmethod
    def check_free(folder: Path) -> None:
        """Raise StoreError unless a campaign can be made in this folder: none, or an empty one."""
        with told_of(folder):
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise StoreError(
                    f"{folder} exists and is not an empty folder; choose another for the campaign."
                )

    @classmethod
    def open(cls, folder: Path, *, url: str | None = None) -> "Store":
        """Open a campaign folder made by `create`, with the same `url`."""
        folder = Path(folder)
        with told_of(folder):
            if not folder.is_dir():
                raise StoreError(f"There is no campaign folder {folder}; check the path.")
            if url is None and not (folder / DATABASE_NAME).is_file():
                raise StoreError(
                    f"{folder} is not a campaign folder: it has no {DATABASE_NAME}; check the path."
                )
            store = cls(folder, connect(folder, url))
            try:
                with store._engine.connect() as connection:
                    check_schema(connection, folder)
                    latest = select(tables.environments.c.digest).order_by(
                        tables.environments.c.position.desc()
                    )
                    store._environment = connection.execute(latest.limit(1)).scalar()
            except BaseException:
                store.close()
                raise
        return store

    def close(self) -> None:
        """Close the database; nothing is pending."""
        self._engine.dispose()

    def discard(self) -> None:
        """Remove a campaign that was made in vain: its files, and the folder if nothing else is in it."""
        self.close()
        with told_of(self.folder):
            shutil.rmtree(self._samples.folder)
            for path in self.folder.glob(f"{DATABASE_NAME}*"):
                path.unlink()
            if self._made_folder:
                self.folder.rmdir()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        """The campaign's own name, unlike any other's; 32 hexadecimal digits."""
        return str(self._campaign_row().id)

    @property
    def created_at(self) -> datetime:
        """When the campaign was made, UTC."""
        return datetime.fromisoformat(self._campaign_row().created_at)

    @property
    def campaign(self) -> dict[str, Any]:
        """The resolved configuration."""
        config: dict[str, Any] = self._campaign_row().config
        return config

    def set_campaign(self, campaign: dict[str, Any]) -> None:
        """Replace the resolved configuration."""
        with self._writing() as connection:
            connection.execute(update(tables.campaign).values(config=campaign))

    @property
    def models(self) -> dict[str, Any]:
        """What is known of "original" and "deployed": name, path, sha256, runtime and so on."""
        models: dict[str, Any] = self._campaign_row().models
        return models

    def set_models(self, original: dict[str, Any], deployed: dict[str, Any]) -> None:
        """Replace what is known of the two models, both JSON objects."""
        models = {"original": original, "deployed": deployed}
        with self._writing() as connection:
            connection.execute(update(tables.campaign).values(models=models))

    @property
    def environment(self) -> dict[str, Any]:
        """The host's environment in force: the one added last."""
        return self.environments().get(self._environment or "", {})

    def environments(self) -> dict[str, dict[str, Any]]:
        """Every environment the campaign ran in, by digest."""
        rows = self._read(tables.environments)
        return {row.digest: row.description for row in rows}

    def add_environment(self, environment: dict[str, Any]) -> str:
        """Say in what environment outcomes are found from now on; return its digest."""
        digest = digest_of(environment)
        with self._writing() as connection:
            _add_once(connection, tables.environments, digest=digest, description=environment)
        self._environment = digest
        return digest

    def add_device(self, fingerprint: dict[str, Any], name: str) -> str:
        """Record a device by its fingerprint, a JSON object, once; return the digest of that."""
        digest = digest_of(fingerprint)
        with self._writing() as connection:
            _add_once(connection, tables.devices, digest=digest, name=name, fingerprint=fingerprint)
        return digest

    def devices(self) -> list[Device]:
        """Every device that took part."""
        rows = self._read(tables.devices)
        return [Device(row.digest, row.name, row.fingerprint) for row in rows]

    def add_notice(self, text: str) -> None:
        """Record something the user ought to know."""
        with self._writing() as connection:
            connection.execute(insert(tables.notices).values(text=text))

    def notices(self) -> list[str]:
        """Every notice, in the order they were added."""
        return [row.text for row in self._read(tables.notices)]

    def add_skipped(self, name: str, reason: str) -> None:
        """Record a file that could not be a seed."""
        with self._writing() as connection:
            connection.execute(insert(tables.skipped).values(name=name, reason=reason))

    def skipped(self) -> list[SkippedRecord]:
        """Every file that could not be a seed."""
        return [SkippedRecord(row.name, row.reason) for row in self._read(tables.skipped)]

    def put_sample(self, sample: Sample) -> str:
        """Keep a sample for good and return its digest; written once, however often it is put."""
        with told_of(self.folder):
            return self._samples.put(sample)

    def get_sample(self, digest: str) -> Sample:
        """Read a sample back, checked against its digest."""
        with told_of(self.folder):
            return self._samples.get(digest)

    def add_seed(self, seed_id: str, sample: Sample, label: int | None = None) -> str:
        """Record a seed input and keep its sample; return the sample's digest."""
        return self.add_seeds([(seed_id, sample, label)])[0]

    def add_seeds(self, seeds: Iterable[tuple[str, Sample, int | None]]) -> list[str]:
        """Record many (id, sample, label) in one transaction; return the samples' digests."""
        rows = list(seeds)
        with ThreadPoolExecutor(_WRITERS) as pool:
            digests = list(pool.map(self.put_sample, (sample for _, sample, _ in rows)))
        with self._writing() as connection:
            table = tables.seeds
            count = connection.execute(select(func.count()).select_from(table)).scalar_one()
            for position, ((seed_id, _, label), digest) in enumerate(
                zip(rows, digests, strict=True), start=count
            ):
                new = insert(table).values(
                    id=seed_id, position=position, label=label, sample=digest
                )
                try:
                    connection.execute(new)
                except IntegrityError as error:
                    raise StoreError(
                        f"The seed {seed_id!r} is in {self.folder} already."
                    ) from error
        return digests

    def set_seed_outputs(self, seed_id: str, outputs: Outputs) -> None:
        """Record both models' answers on a seed and what the oracle says of them."""
        change = (
            update(tables.seeds)
            .where(tables.seeds.c.id == seed_id)
            .values(**outputs_to_row(outputs))
        )
        with self._writing() as connection:
            if connection.execute(change).rowcount != 1:
                raise StoreError(f"There is no seed {seed_id!r} in {self.folder}.")

    def seeds(self) -> Iterator[SeedRecord]:
        """Every seed in order."""
        return self._pages(tables.seeds, seed_from_row)

    def add_outcome(self, outcome: OutcomeRecord) -> None:
        """Record how the search from one seed ended; a seed has one outcome."""
        row = outcome_to_row(outcome, self._environment)
        with self._writing() as connection:
            if outcome.trigger and not self._samples.path(outcome.trigger).exists():
                raise StoreError(f"The sample {outcome.trigger} was not put into {self.folder}.")
            try:
                connection.execute(insert(tables.outcomes).values(**row))
            except IntegrityError as error:
                raise StoreError(
                    f"The outcome of seed {outcome.seed_id!r} can't be added to {self.folder}: it "
                    "has one already (does another program run this campaign?), or its seed or "
                    "device is unknown."
                ) from error

    def outcomes(self) -> Iterator[OutcomeRecord]:
        """Every outcome, in the order they were added."""
        return self._pages(tables.outcomes, outcome_from_row)

    def finished_seed_ids(self) -> set[str]:
        """The ids of all seeds that have an outcome."""
        with told_of(self.folder), self._engine.connect() as connection:
            return set(connection.execute(select(tables.outcomes.c.seed_id)).scalars())

    def _fill(self, campaign: dict[str, Any], environment: dict[str, Any] | None) -> None:
        self._samples.folder.mkdir()
        with self._writing() as connection:
            write_schema(connection)
            connection.execute(
                insert(tables.campaign).values(
                    id=uuid.uuid4().hex,
                    created_at=datetime.now(timezone.utc).isoformat(),
                    config=campaign,
                    models={},
                )
            )
        if environment is not None:
            self.add_environment(environment)
        sync_folder(self.folder)
        sync_folder(self.folder.parent)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with told_of(self.folder), self._lock, self._engine.begin() as connection:
            yield connection

    def _read(self, table: Table) -> list[Row[Any]]:
        with told_of(self.folder), self._engine.connect() as connection:
            return list(connection.execute(select(table).order_by(table.c.position)))

    def _pages(self, table: Table, record: Callable[[Row[Any]], _T]) -> Iterator[_T]:
        last = -1
        while True:
            page = select(table).where(table.c.position > last).order_by(table.c.position)
            with told_of(self.folder), self._engine.connect() as connection:
                rows = list(connection.execute(page.limit(_PAGE)))
            yield from map(record, rows)
            if len(rows) < _PAGE:
                return
            last = rows[-1].position

    def _campaign_row(self) -> Row[Any]:
        with told_of(self.folder), self._engine.connect() as connection:
            return connection.execute(select(tables.campaign)).one()


def _add_once(connection: Connection, table: Table, **values: Any) -> None:
    known = select(table.c.digest).where(table.c.digest == values["digest"])
    if connection.execute(known).first() is None:
        connection.execute(insert(table).values(**values))


def _empty(folder: Path) -> None:
    """Undo a creation that failed, so that it can be tried again."""
    for path in folder.glob(f"{DATABASE_NAME}*"):
        path.unlink()
    for path in folder.glob("samples"):
        path.rmdir()
