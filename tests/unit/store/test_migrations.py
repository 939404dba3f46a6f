"""Campaigns and corpora of earlier versions are read: migrated, whatever happens meanwhile."""

import signal
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass

import pytest
from campaigns import VERSIONS, copy_of
from programs import started
from sqlalchemy import create_engine
from stored_json import change

from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, Store, tables
from edgeflare.store.corpus import tables as corpus_tables_now
from edgeflare.store.corpus.corpus import Corpus

OLDEST = "schema-5"

KILLED_AT_STATEMENT = """
import os, signal, sys
from sqlalchemy import Engine, event
from edgeflare.store import Store

left = int(sys.argv[2])

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, *rest):
    global left
    if statement.lstrip().startswith(("CREATE", "INSERT", "DELETE", "UPDATE")):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

Store.open(sys.argv[1])
"""


@dataclass(frozen=True)
class Mine:
    count: int
    share: float | None = None


@dataclass(frozen=True)
class Exact:
    count: int
    share: float


@pytest.fixture
def earlier(tmp_path):
    return copy_of(OLDEST, tmp_path)


def triggers(store):
    for outcome in store.outcomes():
        store.get_sample(outcome.trigger)
    return {outcome.seed_id: outcome.trigger for outcome in store.outcomes()}


def schema_of(database, table="meta"):
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(f"select schema_version from {table}").fetchone()[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_found_then_is_there_now(tmp_path, version):
    earlier = copy_of(version, tmp_path)
    for _ in range(2):  # migrated, and then up to date
        with Store.open(earlier.campaign) as store:
            assert triggers(store) == earlier.triggers
            assert store.id == earlier.show["campaign"]
            assert all(seed.outputs is not None for seed in store.seeds())
        with Corpus.open(earlier.corpus) as corpus:
            assert len(corpus) == earlier.corpus_show["entries"]
            assert {entry.sample for entry in corpus.entries()} == set(earlier.triggers.values())
            assert len(list(corpus.inputs())) == len(corpus)
    assert schema_of(earlier.campaign / "campaign.sqlite") == tables.SCHEMA_VERSION
    assert schema_of(earlier.corpus / "corpus.sqlite", "corpus") == corpus_tables_now.SCHEMA_VERSION


def columns_of(database):
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        return {
            name: sorted(row[1:4] for row in connection.execute(f"PRAGMA table_info({name})"))
            for (name,) in tables
        }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_migration_leads_to_the_tables(tmp_path, version):
    """A change of the tables without a migration fails here: see CONTRIBUTING."""
    earlier = copy_of(version, tmp_path)
    Store.open(earlier.campaign).close()
    Corpus.open(earlier.corpus).close()
    for database, metadata in (
        (earlier.campaign / "campaign.sqlite", tables.metadata),
        (earlier.corpus / "corpus.sqlite", corpus_tables_now.metadata),
    ):
        engine = create_engine(f"sqlite:///{tmp_path / database.name}")
        metadata.create_all(engine)
        engine.dispose()
        assert columns_of(database) == columns_of(tmp_path / database.name)


@pytest.mark.parametrize("kind", ["campaign", "corpus"])
def test_one_that_is_too_old_is_refused(earlier, kind):
    folder, table = (earlier.campaign, "meta") if kind == "campaign" else (earlier.corpus, "corpus")
    oldest = 5 if kind == "campaign" else 2
    change(folder / f"{kind}.sqlite", f"UPDATE {table} SET schema_version = {oldest - 1}")
    with pytest.raises(StoreError, match=f"schema {oldest - 1} .*, only schema {oldest} "):
        (Store if kind == "campaign" else Corpus).open(folder)


def test_results_of_analyses_are_rows_of_their_own_now(earlier):
    change(
        earlier.campaign / "campaign.sqlite",
        """INSERT INTO facts VALUES ('analysis mine', '{"count": 3, "share": NaN}')""",
    )
    with Store.open(earlier.campaign) as store:
        (result,) = store.results()
        assert (result.name, result.number, result.made) == ("mine", 1, None)
        assert store.result("mine", Mine, parts=["share"]) == Mine(3)
        assert store.result("mine", Exact) is None
        store.add_result("mine", Mine(4), settings={"seed": 1})
        assert [(one.number, one.settings) for one in store.results()] == [
            (1, {}),
            (2, {"seed": 1}),
        ]
        assert store.result("mine", Mine) == Mine(4)


def test_results_of_one_name_that_was_stored_in_two_ways_are_two_runs(earlier):
    change(
        earlier.campaign / "campaign.sqlite",
        """INSERT INTO facts VALUES ('units', '{"count": 1}'), ('analysis units', '{"count": 2}'),
        ('analysis my analysis units', '{"count": 3}')""",
    )
    with Store.open(earlier.campaign) as store:
        runs = [(one.name, one.number) for one in store.results()]
        assert runs == [("units", 1), ("units", 2), ("my analysis units", 1)]
        assert store.result("units", Mine) == Mine(2)
        assert store.result("my analysis units", Mine) == Mine(3)


@pytest.mark.parametrize("statement", [1, 4, 7])
def test_a_kill_in_the_middle_loses_nothing(earlier, statement):
    with started(KILLED_AT_STATEMENT, earlier.campaign, statement) as child:
        assert child.wait() == -signal.SIGKILL
    assert schema_of(earlier.campaign / "campaign.sqlite") == 5
    with Store.open(earlier.campaign) as store:
        assert triggers(store) == earlier.triggers
    assert schema_of(earlier.campaign / "campaign.sqlite") == tables.SCHEMA_VERSION


def test_a_read_only_disk_is_read(small_disk):
    earlier = copy_of(OLDEST, small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with Store.open(earlier.campaign) as store, Corpus.open(earlier.corpus) as corpus:
        assert triggers(store) == earlier.triggers
        assert len(list(corpus.inputs())) == earlier.corpus_show["entries"]
        with pytest.raises(StoreError, match="writable"):
            store.add_notice("after")


def test_one_that_an_earlier_version_runs_is_read_and_left_alone(earlier):
    database = earlier.campaign / "campaign.sqlite"
    with CampaignLock(earlier.campaign), Store.open(earlier.campaign) as store:
        before = database.read_bytes()
        assert triggers(store) == earlier.triggers
    assert database.read_bytes() == before
    assert schema_of(database) == 5


def test_a_damaged_one_is_left_as_it_is(earlier):
    database = earlier.campaign / "campaign.sqlite"
    change(database, "delete from seeds where position = 0")
    with pytest.raises(StoreError, match="is damaged"):
        Store.open(earlier.campaign)
    assert schema_of(database) == 5
