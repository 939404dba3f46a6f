"""Campaigns in PostgreSQL: made, found by their address, locked and removed."""

import os
import re
import signal
import time

import numpy as np
import pytest
from postgres_server import start_program

from edgeflare.campaign.status import campaign_status
from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock, SeedInput, Store, campaign_text, folder_at, is_campaign
from edgeflare.store import creation as store_creation

pytestmark = pytest.mark.extended

SAMPLE = np.zeros((2, 2, 1), np.uint8)

HOLD = """
import sys
from pathlib import Path

from edgeflare.store import CampaignLock

lock = CampaignLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""

DIE_BEFORE_THE_END = """
import os, signal, sys
from pathlib import Path

from edgeflare.store import Store, creation

write = creation.write_pointer
creation.write_pointer = lambda *words: (write(*words), os.kill(os.getpid(), signal.SIGKILL))
Store.create(Path(sys.argv[1]), {}, database=sys.argv[2])
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def campaign(tmp_path, database_url):
    with Store.create(tmp_path / "tiny", {"seed": 1}, database=database_url) as store:
        store.add_seeds([SeedInput("a", SAMPLE)])
    return tmp_path / "tiny"


def schemas(server, url):
    query = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information|public)'"
    return server.psql(query, url.rpartition("/")[2]).split()


def test_an_address_is_enough(campaign, database_url):
    with Store.create(campaign / "control", {}, database=database_url) as control:
        control.add_seeds([SeedInput("c", SAMPLE + 1)])
    handle = folder_at(f"{database_url}/tiny")
    assert handle != campaign
    assert is_campaign(handle)
    with Store.open(handle) as store, Store.open(campaign) as own:
        assert store.id == own.id
        (seed,) = store.seeds()
        assert np.array_equal(store.get_sample(seed.sample), SAMPLE)
    with Store.open(handle / "control") as control:
        (seed,) = control.seeds()
        assert np.array_equal(control.get_sample(seed.sample), SAMPLE + 1)
    assert folder_at(f"{database_url}/tiny/control") == handle / "control"
    with pytest.raises(StoreError, match="name 'other'"):
        folder_at(f"{database_url}/other")


def test_a_folder_gets_the_parts_that_another_host_made(campaign, database_url):
    elsewhere = folder_at(f"{database_url}/tiny") / "explanation" / "control"
    with Store.create(elsewhere, {}, database=database_url) as part:
        digest = part.put_sample(SAMPLE)
    own = campaign / "explanation" / "control"
    assert not is_campaign(own)
    before = (campaign / "store.json").read_text()
    assert folder_at(campaign) == campaign
    assert (campaign / "store.json").read_text() == before
    with Store.open(own) as part:
        assert np.array_equal(part.get_sample(digest), SAMPLE)


def test_what_is_made_of_a_campaign_goes_where_its_folder_points_to(tmp_path, database_url):
    stated = {"store": "postgresql://another@host/database"}
    Store.create(tmp_path / "c", stated, database=database_url).close()
    with Store.open(folder_at(f"{database_url}/c")) as store:
        assert store.campaign == {"store": database_url}
    Store.create(tmp_path / "plain", stated).close()
    with Store.open(tmp_path / "plain") as store:  # a stranger's file names no database
        assert store.campaign == {"store": None}


def test_a_campaign_that_is_used_by_its_address_is_named_by_it(campaign, database_url):
    address = f"{database_url}/tiny"
    assert campaign_text(campaign) == str(campaign)
    assert campaign_text(folder_at(address)) == address
    assert campaign_text(folder_at(address) / "none") == str(folder_at(address) / "none")
    assert campaign_status(folder_at(address)).folder == address


def test_samples_elsewhere_are_found_by_the_address(tmp_path, database_url):
    place = tmp_path / "shared"
    with Store.create(tmp_path / "c", {}, database=database_url, samples=str(place)) as store:
        digest = store.put_sample(SAMPLE)
        assert [path.name for path in store.folder.iterdir()] == ["store.json"]
    with Store.open(folder_at(f"{database_url}/c")) as store:
        assert np.array_equal(store.get_sample(digest), SAMPLE)


def test_tables_of_other_programs_are_left_out(campaign, database_url, postgres_server):
    name = database_url.rpartition("/")[2]
    for other, columns, rows in (
        ("empty", "kind text, samples text", ""),
        ("other", "id int", ""),
        ("twice", "kind text, samples text", "('campaign', NULL), ('corpus', NULL)"),
        ("strange", "kind text, samples text", "('house', NULL)"),
        ('a"b', "kind text, samples text", "('campaign', NULL)"),
    ):
        schema = '"tiny/' + other.replace('"', '""') + '"'
        postgres_server.psql(f"CREATE SCHEMA {schema}", name)
        postgres_server.psql(f"CREATE TABLE {schema}.place ({columns})", name)
        if rows:
            postgres_server.psql(f"INSERT INTO {schema}.place VALUES {rows}", name)
    assert [one.name for one in store_creation.places_at(database_url, "tiny")] == ["tiny"]


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_an_error_after_the_schema_was_made_leaves_nothing(
    tmp_path, database_url, postgres_server, monkeypatch, error
):
    def fail(folder):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(store_creation, "sync_folder", fail)
        with pytest.raises((StoreError, KeyboardInterrupt)):
            Store.create(tmp_path / "c", {}, database=database_url)
    assert schemas(postgres_server, database_url) == []
    assert not (tmp_path / "c").exists()


def test_a_name_that_is_taken(campaign, tmp_path, database_url):
    with pytest.raises(StoreError, match="'tiny' already"):
        Store.create(tmp_path / "below" / "tiny", {}, database=database_url)
    assert not (tmp_path / "below").exists()
    Store.open(campaign).close()


def test_a_killed_creation_leaves_nothing_in_the_database(tmp_path, database_url, postgres_server):
    with start_program(DIE_BEFORE_THE_END, tmp_path / "c", database_url) as process:
        assert process.wait() == -signal.SIGKILL
    assert schemas(postgres_server, database_url) == []
    with pytest.raises(StoreError, match="interrupted before"):
        Store.open(tmp_path / "c")
    Store.create(tmp_path / "again" / "c", {}, database=database_url).close()


def test_a_creation_that_fails_leaves_nothing(tmp_path, database_url, postgres_server, monkeypatch):
    def refuse(*words):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store_creation, "write_pointer", refuse)
        with pytest.raises(StoreError, match="no space"):
            Store.create(tmp_path / "c", {}, database=database_url)
    assert schemas(postgres_server, database_url) == []
    assert not (tmp_path / "c").exists()
    Store.create(tmp_path / "c", {}, database=database_url).close()


def test_what_is_discarded_or_removed_leaves_the_database(
    tmp_path, campaign, database_url, postgres_server
):
    Store.create(tmp_path / "other", {}, database=database_url).discard()
    assert not (tmp_path / "other").exists()
    assert schemas(postgres_server, database_url) == ["tiny"]
    lab = tmp_path / "lab"
    part = campaign / "explanation" / "device"
    with Store.create(part, {}, database=database_url, samples=str(lab)) as store:
        store.put_sample(SAMPLE)
    store_creation.remove_folder(campaign)
    assert schemas(postgres_server, database_url) == []
    assert not campaign.exists()
    assert not [path for path in lab.rglob("*") if path.is_file()]


def test_one_process_a_campaign_by_whatever_folder(campaign, database_url):
    handle = folder_at(f"{database_url}/tiny")
    with start_program(HOLD, campaign) as holder:
        holder.stdout.readline()
        for folder in (campaign, handle):
            assert CampaignLock.is_held(folder)
            with pytest.raises(StoreError) as caught:
                CampaignLock(folder).acquire()
            assert re.fullmatch(
                rf"{re.escape(campaign_text(folder))} is being run by process {holder.pid} on host .* since "
                r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; wait until it has ended or stop it",
                str(caught.value),
            )
        assert campaign_status(handle).state == "running"
        holder.kill()
    end = time.monotonic() + 60
    while CampaignLock.is_held(campaign):
        assert time.monotonic() < end
        time.sleep(0.05)
    with CampaignLock(handle) as lock:
        lock.acquire()
        assert CampaignLock.is_held(campaign)
        with pytest.raises(StoreError, match=f"process {os.getpid()} "):
            CampaignLock(campaign).acquire()
    assert not CampaignLock.is_held(campaign)


def test_characters_that_postgresql_can_not_store(campaign):
    with Store.open(campaign) as store:
        store.add_notice("a\0b")
        store.state.seed_origins = {"a": "a\0b"}
        assert store.notices() == ["a\ufffdb"]
        assert store.state.seed_origins == {"a": "a\0b"}


def test_a_campaign_and_its_control_have_locks_of_their_own(campaign, database_url):
    Store.create(campaign / "control", {}, database=database_url).close()
    with CampaignLock(campaign), CampaignLock(campaign / "control"):
        assert CampaignLock.is_held(campaign / "control")
