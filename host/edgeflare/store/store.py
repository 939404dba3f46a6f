"""A campaign's folder: its database and its samples."""

import shutil
import uuid
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, insert, select

from edgeflare._internal.files import is_unused, remove_torn, sync_folder
from edgeflare.errors import StoreError
from edgeflare.store import tables
from edgeflare.store.about import add_environment_row
from edgeflare.store.database import (
    CORPUS_NAME,
    DATABASE_NAME,
    UNFINISHED_NAME,
    check_schema,
    connect,
    put_in_place,
    write_schema,
)
from edgeflare.store.failures import decoding, told_of
from edgeflare.store.lock import LOCK_NAMES
from edgeflare.store.outcomes import Outcomes
from edgeflare.store.replicas import Replicas
from edgeflare.store.seeds import SAMPLE_RATE, Seeds
from edgeflare.store.telemetry import Telemetry

if TYPE_CHECKING:
    from typing_extensions import Self


class Store(Seeds, Outcomes, Replicas, Telemetry):
    """Everything a campaign learns: `campaign.sqlite` and `samples/` in one folder.

    Every method that adds something is one transaction and is on disk when it returns. Any thread
    may call any method; several processes may read while one writes. What a method iterates over is
    read a page at a time, so that memory does not grow with the campaign. All methods raise
    StoreError, DiskFullError among them.
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(folder, engine)
        self._made_folder = False

    @classmethod
    def create(
        cls,
        folder: Path,
        campaign: dict[str, Any],
        *,
        id: str | None = None,  # noqa: A002
        environment: dict[str, Any] | None = None,
        url: str | None = None,
    ) -> "Store":
        """Make a campaign folder, which must not exist or be empty but for its lock.

        `campaign` is the resolved configuration, `environment` the host's (library versions and so
        on), both JSON objects. `id` is the campaign's own name, 32 hexadecimal digits; None draws one.
        `url` names another database than the file in the folder.
        """
        folder = Path(folder)
        cls.check_free(folder)
        with told_of(folder, begun=False):
            made = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            # Filled under another name: whoever looks at the folder meanwhile (`status --watch`) opens no
            # half-made file, whose lock would stop this.
            store = cls(folder, connect(folder, url, name=UNFINISHED_NAME))
            try:
                store._fill(id or uuid.uuid4().hex, campaign, environment)
                if url is None:
                    put_in_place(store._engine, folder, UNFINISHED_NAME, DATABASE_NAME)
                    store = cls.open(folder)
                store._made_folder = made
                sync_folder(folder)
                sync_folder(folder.parent)
            except BaseException:
                store.close()
                _empty(folder)
                raise
        return store

    @staticmethod
    def check_free(folder: Path) -> None:
        """Raise StoreError unless a campaign can be made in this folder: none, or an empty one."""
        with told_of(folder):
            if not is_unused(folder, LOCK_NAMES):
                raise StoreError(
                    f"{folder} exists and is not an empty folder; choose another for the campaign."
                )

    @classmethod
    def open(cls, folder: Path, *, url: str | None = None) -> "Store":
        """Open a campaign folder made by `create`, with the same `url`."""
        folder = Path(folder)
        with decoding(folder), told_of(folder):
            if not folder.is_dir():
                raise StoreError(f"There is no campaign folder {folder}; check the path.")
            if url is None and not (folder / DATABASE_NAME).is_file():
                if (folder / CORPUS_NAME).is_file():
                    raise StoreError(
                        f"{folder} is a trigger corpus, not a campaign folder; `edgeflare corpus show` tells "
                        "what it has, `edgeflare replay` asks about it again."
                    )
                if (folder / UNFINISHED_NAME).is_file():
                    raise StoreError(
                        f"the campaign in {folder} was interrupted before it began: delete the folder and "
                        "run it anew"
                    )
                raise StoreError(
                    f"{folder} is not a campaign folder: it has no {DATABASE_NAME}; check the path"
                    " (of a bench, `edgeflare bench show` has the figures)."
                )
            store = cls(folder, connect(folder, url))
            try:
                with store._engine.connect() as connection:
                    check_schema(connection, folder)
                    latest = select(tables.environments.c.digest).order_by(
                        tables.environments.c.position.desc()
                    )
                    store._environment = connection.execute(latest.limit(1)).scalar()
                store._samples.rate = store.fact(SAMPLE_RATE)
            except BaseException:
                store.close()
                raise
        return store

    def close(self) -> None:
        """Close the database; nothing is pending."""
        self._engine.dispose()

    def remove_torn(self) -> None:
        """Remove what a process that was killed left half written; for the holder of the campaign's lock alone."""
        with told_of(self.folder):
            remove_torn(self.folder)
            self._samples.remove_torn()

    def discard(self) -> None:
        """Remove a campaign that was made in vain: its files, and the folder if nothing else is in it."""
        self.close()
        with told_of(self.folder):
            shutil.rmtree(self._samples.folder)
            for path in self.folder.glob(f"{DATABASE_NAME}*"):
                path.unlink()
            for name in LOCK_NAMES:
                with suppress(PermissionError):  # held, on Windows
                    (self.folder / name).unlink(missing_ok=True)
            if self._made_folder and not any(self.folder.iterdir()):
                self.folder.rmdir()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _fill(
        self, campaign_id: str, campaign: dict[str, Any], environment: dict[str, Any] | None
    ) -> None:
        self._samples.folder.mkdir()
        with self._writing() as connection:
            write_schema(connection)
            connection.execute(
                insert(tables.campaign).values(
                    id=campaign_id,
                    created_at=datetime.now(timezone.utc).isoformat(),
                    config=campaign,
                    models={},
                )
            )
            if environment is not None:
                self._environment = add_environment_row(connection, environment)


def _empty(folder: Path) -> None:
    """Undo a creation that failed, so that it can be tried again."""
    for path in folder.glob(f"{DATABASE_NAME}*"):
        path.unlink()
    for path in folder.glob("samples"):
        path.rmdir()
