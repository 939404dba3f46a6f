"""Campaigns of earlier schemas on a server are migrated, once, and keep their data."""

import threading

import pytest
from campaigns import copy_of
from sqlalchemy import inspect, select

from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, Store, tables
from edgeflare.store import store as store_module
from edgeflare.store.database import open_engine
from edgeflare.store.location import read_pointer
from edgeflare.store.samples import open_samples

pytestmark = pytest.mark.extended

SINCE_5 = (
    *("unit_scores", "survey_answers", "surveyed_seeds", "reference_answers"),
    *("analysis_parts", "analyses"),
)


def engine_of(folder):
    return open_engine(folder, "campaign.sqlite", read_pointer(folder))


@pytest.fixture
def earlier(tmp_path, database_url):
    """The rows of an earlier edgeflare's campaign, in the tables of its schema 5 on a server."""
    old = copy_of("schema-5", tmp_path / "old")
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
            for name in SINCE_5:
                here.exec_driver_sql(f"DROP TABLE {name}")
            here.exec_driver_sql("UPDATE meta SET schema_version = 5")
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
        there = inspect(connection)
        for table in tables.metadata.sorted_tables:
            names = {column["name"] for column in there.get_columns(table.name)}
            assert names == {column.name for column in table.columns}
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
    real = store_module._SCHEMA.upgrade

    def upgrade(connection):
        real(connection)
        raise StoreError("stopped here")

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "_SCHEMA", store_module._SCHEMA._replace(upgrade=upgrade))
        with pytest.raises(StoreError, match="stopped here"):
            Store.open(earlier[1])
    assert version_of(earlier[1]) == 5
    engine = engine_of(earlier[1])
    assert "unit_scores" not in inspect(engine).get_table_names()
    engine.dispose()


def test_one_that_an_earlier_version_runs_is_left_alone(earlier, monkeypatch):
    monkeypatch.setattr("edgeflare.store.migration._PATIENCE_S", 0.5)
    with CampaignLock(earlier[1]), pytest.raises(StoreError, match="being run"):
        Store.open(earlier[1])
    assert version_of(earlier[1]) == 5
