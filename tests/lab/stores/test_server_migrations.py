"""Campaigns of earlier schemas on a server are migrated, once, and keep their data."""

import threading
from types import SimpleNamespace

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from campaigns import copy_of
from sqlalchemy import Column, Integer, inspect, select

from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, Store, tables
from edgeflare.store import store as store_module
from edgeflare.store.database import open_engine
from edgeflare.store.location import read_pointer
from edgeflare.store.migrations import scripts_of
from edgeflare.store.samples import open_samples

pytestmark = pytest.mark.extended

SINCE_4 = ("unit_scores", "survey_answers", "surveyed_seeds", "reference_answers")
PIECES = {
    "seed_answers": ("original_pieces", "deployed_pieces"),
    "outcomes": ("original_pieces", "deployed_pieces", "snr_db"),
    "replays": ("deployed_pieces",),
}


def engine_of(folder):
    return open_engine(folder, "campaign.sqlite", read_pointer(folder))


@pytest.fixture
def earlier(tmp_path, database_url):
    """The rows of an earlier edgeflare's campaign, in the tables of its schema 4 on a server."""
    old = copy_of("schema-4", tmp_path / "old")
    with Store.open(old.campaign) as store:  # migrated, so that its columns have today's names
        known = store._database.engine
        Store.create(tmp_path / "c", {}, database=database_url, samples=str(tmp_path / "s")).close()
        engine = engine_of(tmp_path / "c")
        with known.connect() as there, engine.begin() as here:
            for table in tables.metadata.sorted_tables:
                here.execute(table.delete())
                rows = [row._asdict() for row in there.execute(select(*table.columns))]
                keyed = [dict(zip(table.columns.keys(), row.values(), strict=True)) for row in rows]
                if keyed:
                    here.execute(table.insert(), keyed)
                if "position" in table.columns and table.name != "seeds":
                    here.exec_driver_sql(
                        f"SELECT setval(pg_get_serial_sequence('{table.name}', 'position'), "
                        f"coalesce(max(position), 0) + 1, false) FROM {table.name}"
                    )
            for name in SINCE_4:
                here.exec_driver_sql(f"DROP TABLE {name}")
            for name, columns in PIECES.items():
                for column in columns:
                    here.exec_driver_sql(f"ALTER TABLE {name} DROP COLUMN {column}")
            here.exec_driver_sql("UPDATE meta SET schema_version = 4")
        engine.dispose()
        samples = open_samples(read_pointer(tmp_path / "c").samples)
        with Store.open(old.campaign) as source:
            for digest in {*old.triggers.values(), *(seed.sample for seed in source.seeds())}:
                samples.put(source.get_sample(digest))
    return old, tmp_path / "c"


def version_of(folder):
    engine = engine_of(folder)
    with engine.connect() as connection:
        version = connection.execute(select(tables.meta.c.schema_version)).scalar_one()
    engine.dispose()
    return version


def test_an_old_schema_is_migrated_and_keeps_its_data(earlier):
    old, folder = earlier
    for _ in range(2):
        with Store.open(folder) as store:
            found = {one.seed_id: one.trigger for one in store.outcomes()}
            assert found == old.triggers
            for trigger in found.values():
                store.get_sample(trigger)
            assert store.id == old.show["campaign"]
            assert all(seed.outputs is not None for seed in store.seeds())
            store.add_notice("after")
    assert version_of(folder) == tables.SCHEMA_VERSION
    engine = engine_of(folder)
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), tables.metadata)
        assert [one for one in found if "place" not in str(one)] == []
    engine.dispose()


def test_many_open_it_at_once_and_one_migrates(earlier):
    old, folder = earlier
    failures = []

    def look():
        try:
            with Store.open(folder) as store:
                assert {one.seed_id for one in store.outcomes()} == set(old.triggers)
        except (StoreError, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_migration_that_fails_changes_nothing(earlier, monkeypatch):
    def upgrade():
        op.add_column("seeds", Column("other", Integer))
        raise StoreError("stopped here")

    added = SimpleNamespace(revision="8", module=SimpleNamespace(upgrade=upgrade))
    scripts = [*scripts_of("campaign"), added]
    with monkeypatch.context() as patch:
        patch.setattr("edgeflare.store.migrations.scripts_of", lambda kind: scripts)
        patch.setattr(store_module, "_SCHEMA", store_module._SCHEMA._replace(version=8))
        with pytest.raises(StoreError, match="stopped here"):
            Store.open(earlier[1])
    assert version_of(earlier[1]) == 4
    engine = engine_of(earlier[1])
    assert "unit_scores" not in inspect(engine).get_table_names()
    engine.dispose()


def test_one_that_an_earlier_version_runs_is_left_alone(earlier, monkeypatch):
    monkeypatch.setattr("edgeflare.store.migrations._PATIENCE_S", 0.5)
    with CampaignLock(earlier[1]), pytest.raises(StoreError, match="being run"):
        Store.open(earlier[1])
    assert version_of(earlier[1]) == 4
