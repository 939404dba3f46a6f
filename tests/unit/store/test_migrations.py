"""Campaigns and corpora of earlier versions are read: migrated, whatever happens meanwhile."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from types import SimpleNamespace

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from campaigns import VERSIONS, copy_of
from sqlalchemy import create_engine

import edgeflare.store.corpus.corpus
from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, Store, tables
from edgeflare.store.corpus import tables as corpus_tables_now
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.migrations import scripts_of

OLDEST = "schema-4"

KILLED_AT_STATEMENT = """
import os, signal, sys
from sqlalchemy import Engine, event
from edgeflare.store import Store

left = int(sys.argv[2])

@event.listens_for(Engine, "after_cursor_execute")
def kill(connection, cursor, statement, *rest):
    global left
    if statement.lstrip().startswith(("ALTER", "UPDATE")):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

Store.open(sys.argv[1])
"""


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


def test_the_migrations_lead_to_the_tables(earlier):
    """A change of the tables without a migration fails here: see CONTRIBUTING."""
    Store.open(earlier.campaign).close()
    Corpus.open(earlier.corpus).close()
    for database, now, kind in (
        (earlier.campaign / "campaign.sqlite", tables, "campaign"),
        (earlier.corpus / "corpus.sqlite", corpus_tables_now, "corpus"),
    ):
        engine = create_engine(f"sqlite:///{database}")
        with engine.connect() as connection:
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, now.metadata) == []
        engine.dispose()
        assert scripts_of(kind)[-1].revision == str(now.SCHEMA_VERSION)


def test_what_is_up_to_date_needs_no_alembic(earlier):
    Store.open(earlier.campaign).close()
    program = (
        "import sys; from edgeflare.store import Store; Store.open(sys.argv[1]); "
        "sys.exit('alembic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, earlier.campaign], check=True)


@pytest.mark.parametrize("statement", [1, 4, 7])
def test_a_kill_in_the_middle_loses_nothing(earlier, statement):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = [sys.executable, "-c", KILLED_AT_STATEMENT, earlier.campaign, str(statement)]
    assert subprocess.run(program, env=environment).returncode == -signal.SIGKILL
    assert schema_of(earlier.campaign / "campaign.sqlite") == 4
    with Store.open(earlier.campaign) as store:
        assert triggers(store) == earlier.triggers
    assert schema_of(earlier.campaign / "campaign.sqlite") == tables.SCHEMA_VERSION


def test_a_script_may_rebuild_a_table_that_others_refer_to(earlier, monkeypatch):
    def upgrade():
        with op.batch_alter_table("entries", recreate="always") as batch:
            batch.alter_column("seed_label", new_column_name="class_label")

    added = SimpleNamespace(revision="3", module=SimpleNamespace(upgrade=upgrade))
    scripts = [*scripts_of("corpus"), added]
    monkeypatch.setattr("edgeflare.store.migrations.scripts_of", lambda kind: scripts)
    schema = edgeflare.store.corpus.corpus._SCHEMA
    monkeypatch.setattr("edgeflare.store.corpus.corpus._SCHEMA", schema._replace(version=3))
    database = earlier.corpus / "corpus.sqlite"
    counts = "select (select count(*) from entries), (select count(*) from looks), count(*) from sightings"
    with closing(sqlite3.connect(database)) as connection:
        before = connection.execute(counts).fetchone()
    Corpus.open(earlier.corpus).close()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(counts).fetchone() == before
        connection.execute("select class_label from entries")
    assert schema_of(database, "corpus") == 3


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
    assert schema_of(database) == 4


def test_a_damaged_one_is_left_as_it_is(earlier):
    database = earlier.campaign / "campaign.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("delete from seeds where position = 0")
    with pytest.raises(StoreError, match="is damaged"):
        Store.open(earlier.campaign)
    assert schema_of(database) == 4
