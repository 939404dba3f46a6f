"""Damages a campaign's files at random, and reads them again through the command line, in this process."""

import copy
import json
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from typer.testing import CliRunner

from edgeflare.cli.app import app

DEEP = "[" * 100_000
NO_DEVICE = "ssh://nobody@127.0.0.1:9"
"""A device that refuses each connection at once."""
SECONDS_A_COMMAND = 180
JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**400, 0.5, 1e308),
    *(float("nan"), float("inf"), "", "x", "a\0b", "\ud800", "\x1b[2J", "x" * 5000, "2026-11-22"),
    *([], {}, [[]], [{}], {"": {}}, [None], [0, "x"], {"name": 5}, {"x": [1]}),
)
CELLS: tuple[Any, ...] = (
    *(None, 0, 1, -1, 2**31, 2**63 - 1, -(2**63), 0.5, 9e999, 1e308, -1.0),
    *("", "x", "nan", "a\0b", "9" * 5000, "[", DEEP, '"', "{}", "[]", "null", "1e400", "9" * 20),
    *(b"", b"\xff\xfe", b"x" * 7, b"\0" * 80, b"\xff" * 80, b"\0" * 8),
)


class Ran(NamedTuple):
    """How a command ended: its exit code and all that it printed."""

    code: int
    text: str


class Hang(BaseException):
    """A command had not ended in time."""


def run(*arguments: object, seconds: int = SECONDS_A_COMMAND) -> Ran:
    """Run a command in this process. Raises `Hang` after so many seconds, and AssertionError for a fault or a traceback."""
    with _alarm(seconds):
        result = CliRunner().invoke(app, [str(one) for one in arguments])
    text = result.output
    what = f"{' '.join(map(str, arguments))} ended with {result.exit_code}: {text[-2000:]}"
    fault = result.exception
    if fault is not None and not isinstance(fault, SystemExit):
        raise AssertionError(what) from fault
    assert result.exit_code in (0, 1, 2, 3), what
    assert "Traceback" not in text, what
    return Ran(result.exit_code, text)


def damage(folder: Path, rng: random.Random) -> str:
    """Change one thing in a campaign's folder; return what."""
    kinds: tuple[tuple[Callable[[Path, random.Random], str], int], ...] = (
        (_cell, 12), (_row, 2), (_live, 3), (_bytes_of_database, 3), (_sample, 2),
    )  # fmt: skip
    (kind,) = rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])
    return kind(folder, rng)


def damaged_text(text: str, rng: random.Random) -> str:
    """Return a JSON document, or any other text, with one thing changed."""
    if rng.random() < 0.25:
        return cut(text.encode(), rng).decode("utf-8", "surrogateescape")
    try:
        return json.dumps(_changed(json.loads(text), rng))
    except (ValueError, RecursionError):
        return cut(text.encode(), rng).decode("utf-8", "surrogateescape")


def _changed(document: Any, rng: random.Random) -> Any:
    """Return a copy of a JSON document with one node of it replaced, removed or wrapped."""
    document = copy.deepcopy(document)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        items: Iterator[tuple[Any, Any]] = iter(())
        if isinstance(node, dict):
            items = iter(node.items())
        elif isinstance(node, list):
            items = iter(enumerate(node))
        for key, below in items:
            places.append((node, key))
            walk(below)

    walk(document)
    if not places or rng.random() < 0.1:
        return rng.choice(JSON_VALUES)
    parent, key = rng.choice(places)
    choice = rng.randrange(5)
    if choice == 0:
        del parent[key]
    elif choice == 1:
        parent[key] = [parent[key]]
    elif choice == 2:
        deep: Any = parent[key]
        for _ in range(rng.choice((100, 400, 900))):
            deep = {"x": deep} if rng.random() < 0.5 else [deep]
        parent[key] = deep
    else:
        parent[key] = rng.choice(JSON_VALUES)
    return document


def cut(data: bytes, rng: random.Random) -> bytes:
    """Return bytes of which some are missing, changed or put in."""
    changed = bytearray(data)
    place = rng.randrange(len(changed) + 1)
    choice = rng.randrange(4)
    if choice == 0:
        return bytes(changed[:place])
    if choice == 1:
        changed[place:place] = rng.randbytes(rng.randrange(1, 9))
    elif choice == 2:
        return DEEP.encode()
    else:
        for _ in range(rng.randrange(1, 9)):
            if changed:
                changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _database(folder: Path, rng: random.Random) -> Path:
    found = sorted(folder.rglob("*.sqlite"))
    return rng.choice(found)


def _cell(folder: Path, rng: random.Random) -> str:
    database = _database(folder, rng)
    with closing(sqlite3.connect(database)) as connection, suppress(sqlite3.DatabaseError):
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()
        ]
        if not tables:
            return f"{database.name} has no rows"
        table = rng.choice(tables)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = rng.choice(columns)
        rows = connection.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
        rowid, value = rng.choice(rows)
        new = _changed_cell(value, rng)
        where = "" if rng.random() < 0.1 else f" WHERE rowid = {rowid}"
        try:
            if isinstance(new, str) and not new.isprintable() and "\udc80" <= max(new) <= "\udcff":
                blob = new.encode("utf-8", "surrogateescape")
                connection.execute(
                    f'UPDATE "{table}" SET "{column}" = CAST(? AS TEXT){where}', (blob,)
                )
            else:
                connection.execute(f'UPDATE "{table}" SET "{column}" = ?{where}', (new,))
        except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError) as error:
            return f"{table}.{column} unchanged: {error}"
        connection.commit()
        return f"{database.name}: {table}.{column} of row {rowid}: {value!r:.60} is {new!r:.60}"
    return f"{database.name} is damaged already"


def _changed_cell(value: Any, rng: random.Random) -> Any:
    if rng.random() < 0.4:
        return rng.choice(CELLS)
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return damaged_text(value, rng)
    if isinstance(value, str):
        return cut(value.encode(), rng).decode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return cut(value, rng)
    if isinstance(value, int):
        return value + rng.choice((-1, 1, 1000, 2**31))
    return rng.choice(CELLS)


def _row(folder: Path, rng: random.Random) -> str:
    database = _database(folder, rng)
    with closing(sqlite3.connect(database)) as connection, suppress(sqlite3.DatabaseError):
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        if not tables:
            return f"{database.name} has no tables"
        table = rng.choice(tables)
        rowids = [row[0] for row in connection.execute(f'SELECT rowid FROM "{table}"')]
        if not rowids or rng.random() < 0.1:
            connection.execute(f'DROP TABLE "{table}"')
            what = f"{table} dropped"
        else:
            rowid = rng.choice(rowids)
            connection.execute(f'DELETE FROM "{table}" WHERE rowid = {rowid}')
            what = f"{table}: row {rowid} deleted"
        connection.commit()
        return f"{database.name}: {what}"
    return f"{database.name} is damaged already"


def _live(folder: Path, rng: random.Random) -> str:
    path = folder / "live.json"
    if not path.is_file():
        return "no live.json"
    if rng.random() < 0.1:
        path.unlink()
        path.mkdir()
        return "live.json is a folder"
    text = damaged_text(path.read_text(encoding="utf-8"), rng)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return f"live.json: {text:.200}"


def _bytes_of_database(folder: Path, rng: random.Random) -> str:
    path = _database(folder, rng)
    data = bytearray(path.read_bytes())
    choice = rng.randrange(4)
    if choice == 0:
        del data[rng.randrange(len(data)) :]
    elif choice == 1:
        start = rng.randrange(len(data) // 512) * 512
        data[start : start + 512] = bytes(512)
    else:
        for _ in range(rng.choice((1, 4, 32))):
            data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    return f"{path.name}: bytes"


def _sample(folder: Path, rng: random.Random) -> str:
    samples = [path for path in sorted((folder / "samples").glob("*/*.*")) if path.is_file()]
    if not samples:
        return "no samples"
    path = rng.choice(samples)
    choice = rng.randrange(4)
    data = path.read_bytes()
    path.unlink()
    if choice == 0:
        path.mkdir()
    elif choice == 1:
        path.write_bytes(cut(data, rng))
    elif choice == 2:
        shutil.rmtree(path.parent)
        path.parent.write_bytes(b"")
    return f"{path.name}: {('a folder', 'bytes', 'its folder is a file', 'missing')[choice]}"


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang(f"not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
