"""Whatever a server refuses is one sentence that says what to do; one that restarts is waited for."""

import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from postgres_server import own_server, start_program
from sqlalchemy.exc import DBAPIError

from edgeflare.errors import DiskFullError, StoreAwayError, StoreError
from edgeflare.store import (
    CampaignLock,
    CampaignState,
    OutcomeRecord,
    SeedInput,
    Store,
    folder_at,
    servers,
    tables,
)
from edgeflare.store import creation as store_creation
from edgeflare.store.location import read_pointer, write_pointer
from edgeflare.store.servers import add_database
from edgeflare.types import Status
from edgeflare_lab.stores import postgres
from edgeflare_whitebox.units.inspection import UnitScore

pytestmark = pytest.mark.extended

SAMPLE = np.zeros((2, 2, 1), np.uint8)

COMPETE = """
import sys, time
from pathlib import Path

from edgeflare.errors import StoreError
from edgeflare.store import CampaignLock

lock = CampaignLock(Path(sys.argv[1]))
while True:
    try:
        lock.acquire()
    except StoreError:
        time.sleep(0.01)
    else:
        break
print("held", flush=True)
sys.stdin.read()
"""


def wait_until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_refused(use):
    try:
        use()
    except StoreError:
        return True
    return False


def refusal(url, tmp_path):
    with pytest.raises(StoreError) as caught:
        Store.create(tmp_path / "c", {}, database=url)
    with pytest.raises(StoreError):
        folder_at(f"{url}/c")
    text = str(caught.value)
    assert "\n" not in text
    assert not (tmp_path / "c").exists() or not any((tmp_path / "c").iterdir())
    return text


@pytest.fixture(scope="module")
def server():
    """A server that asks for passwords, with TLS of a certificate that nobody signed."""
    with own_server() as made:
        data = made.folder / "data"
        owner = data.stat()
        words = "openssl req -new -x509 -days 2 -nodes -subj /CN=elsewhere -out crt -keyout key"
        done = subprocess.run(words.split(), cwd=made.folder, capture_output=True)
        if done.returncode:
            pytest.skip("openssl is not installed")
        for name in ("crt", "key"):
            path = made.folder / name
            path.chmod(0o600)
            os.chown(path, owner.st_uid, owner.st_gid)
        with (data / "postgresql.conf").open("a") as file:
            file.write(f"ssl = on\nssl_cert_file = '{made.folder}/crt'\n")
            file.write(f"ssl_key_file = '{made.folder}/key'\nmax_connections = 12\n")
        (data / "pg_hba.conf").write_text(
            "host all asked 127.0.0.1/32 scram-sha-256\nhost all strange 127.0.0.1/32 reject\n"
            "host all all 127.0.0.1/32 trust\nlocal all all trust\n"
        )
        made.stop()
        made.start()
        made.psql("CREATE ROLE asked LOGIN PASSWORD 'right'")
        made.psql("CREATE ROLE poor LOGIN")
        made.psql("CREATE ROLE strange LOGIN")
        made.psql("CREATE ROLE few LOGIN CONNECTION LIMIT 0")
        yield made


def test_no_server_there(tmp_path):
    text = refusal("postgresql://u@127.0.0.1:1/d", tmp_path)
    assert "database postgresql://u@127.0.0.1:1/d" in text
    assert "server runs" in text


def test_no_such_host(tmp_path):
    assert "can't be reached" in refusal("postgresql://u@no-such-host.invalid/d", tmp_path)


@pytest.mark.parametrize(
    ("user", "database", "parameters", "words"),
    [
        ("asked", "postgres", "", "refuses the login .* ~/.pgpass"),
        ("strange", "postgres", "", "refuses the login"),
        ("nobody", "postgres", "", "refuses the login"),
        ("poor", "nowhere", "", "is not there .* `createdb`"),
        ("poor", "postgres", "", "GRANT CREATE ON DATABASE"),
        ("few", "postgres", "", "has no connection left .* max_connections"),
        ("poor", "postgres", "?sslmode=verify-full", "is not trusted .* sslrootcert"),
        ("poor", "postgres", "?sslrootcert=CRT&sslmode=verify-full", "is not trusted"),
        ("poor", "postgres", "?service=nowhere", "can't be reached .* service"),
        ("poor", "postgres", "?nonsense=1", "check the URL's parameters"),
    ],
)
def test_what_a_server_refuses(server, tmp_path, monkeypatch, user, database, parameters, words):
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    monkeypatch.setenv("HOME", str(tmp_path))
    crt = tmp_path / "crt"
    crt.write_bytes((server.folder / "crt").read_bytes())
    url = server.url_of(database, user) + parameters.replace("CRT", str(crt))
    text = refusal(url, tmp_path)
    assert re.search(words, text), text


def test_a_wrong_and_a_right_password(server, tmp_path, monkeypatch):
    url = server.url_of("postgres", "asked")
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert "refuses the login" in refusal(url, tmp_path)
    monkeypatch.setenv("PGPASSWORD", "right")
    server.psql("GRANT CREATE ON DATABASE postgres TO asked")
    with Store.create(tmp_path / "c", {}, database=url) as store:
        store.discard()


def test_a_server_that_restarts_is_waited_for_and_the_lock_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr("edgeflare_lab.stores.server_lock._RENEWAL_S", 0.1)
    with own_server() as server:
        url = server.new_database()
        with Store.create(tmp_path / "c", {}, database=url) as store, CampaignLock(store.folder):
            store.add_seeds(SeedInput(f"s{n}", SAMPLE) for n in range(3))
            store.add_outcome(OutcomeRecord("s0", Status.EXHAUSTED, 0))
            server.stop()
            again = threading.Timer(1, server.start)
            again.start()
            store.add_outcome(OutcomeRecord("s1", Status.EXHAUSTED, 0))
            again.join()
            assert store.finished_seed_ids() == {"s0", "s1"}
            wait_until(lambda: CampaignLock.is_held(store.folder))
            with pytest.raises(StoreError, match="being run"):
                CampaignLock(store.folder).acquire()


def test_a_lock_that_another_process_takes_meanwhile_ends_the_campaign(tmp_path, monkeypatch):
    monkeypatch.setattr("edgeflare_lab.stores.server_lock._RENEWAL_S", 0.1)
    with (
        own_server() as server,
        Store.create(tmp_path / "c", {}, database=server.new_database()) as store,
    ):
        lock = CampaignLock(store.folder)
        lock.acquire()
        with start_program(COMPETE, store.folder) as competitor:
            with lock._on_server._using:  # the other process is the first after the restart
                server.stop()
                server.start()
                assert competitor.stdout.readline() == "held\n"
            wait_until(lambda: is_refused(lambda: store.add_notice("x")))
            for write in (
                lambda: store.add_notice("x"),
                lambda: setattr(store.state, "wall_s", 1.0),
                lambda: store.add_outcome(OutcomeRecord("s", Status.EXHAUSTED, 0)),
            ):
                with pytest.raises(StoreError, match=f"process {competitor.pid}"):
                    write()
            lock.release()
            store.add_notice("y")
            competitor.kill()


def test_a_release_does_not_wait_for_a_server_that_is_away(tmp_path, monkeypatch):
    monkeypatch.setattr("edgeflare_lab.stores.server_lock._RENEWAL_S", 0.1)
    with (
        own_server() as server,
        Store.create(tmp_path / "c", {}, database=server.new_database()) as store,
    ):
        lock = CampaignLock(store.folder)
        lock.acquire()
        server.stop("immediate")
        releasing = threading.Thread(target=lock.release, daemon=True)
        releasing.start()
        releasing.join(20)
        assert not releasing.is_alive()


def test_a_server_that_stays_away(tmp_path, monkeypatch):
    waits: list[float] = []
    sleep = time.sleep
    monkeypatch.setattr(postgres, "PATIENCE_S", 0.5)
    monkeypatch.setattr(postgres.time, "sleep", lambda s: (waits.append(s), sleep(s)))
    with own_server() as server:
        url = server.new_database()
        with Store.create(tmp_path / "c", {}, database=url) as store:
            store.add_seeds([SeedInput("s", SAMPLE)])
            server.stop("immediate")
            for use in (store.seed_count, lambda: store.add_notice("x")):
                with pytest.raises(StoreError, match="`edgeflare resume`") as caught:
                    use()
                assert url in str(caught.value)
                assert len(waits) == 1  # by the first use alone
            with pytest.raises(StoreError, match="be reached"):
                Store.open(store.folder)
            server.start()
            assert store.seed_count() == 1


END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'edgeflare'"


def test_a_connection_that_ends_in_the_middle_is_waited_for_as_one_that_is_refused(
    tmp_path, monkeypatch
):
    with own_server() as server:
        url = server.new_database()
        with Store.create(tmp_path / "c", {}, database=url) as store:
            store.add_seeds([SeedInput("s", SAMPLE)])
            starting = threading.Timer(1, server.start)

            def stop_once(before):
                if starting.ident is None:
                    server.stop("immediate")
                    starting.start()
                return (before or 0) + 1

            store.state.change(CampaignState.wall_s, stop_once)
            starting.join()
            assert store.state.wall_s == 1

            position = store._position

            def lost_before(connection, seed_id):
                found = position(connection, seed_id)
                server.psql(f"{END} AND datname = '{url.rpartition('/')[2]}'")
                monkeypatch.setattr(store, "_position", position)
                return found

            monkeypatch.setattr(store, "_position", lost_before)
            assert store.add_outcome(OutcomeRecord("s", Status.EXHAUSTED, 0))
            assert store.finished_seed_ids() == {"s"}


def test_a_connection_that_ends_each_time_ends_the_statement(
    tmp_path, database_url, postgres_server, monkeypatch
):
    monkeypatch.setattr(servers, "_PAUSE_S", 0.01)
    with Store.create(tmp_path / "c", {}, database=database_url) as store:

        def lose(before):
            postgres_server.psql(f"{END} AND datname = '{database_url.rpartition('/')[2]}'")
            return 0.5

        with pytest.raises(StoreAwayError, match="`edgeflare resume`"):
            store.state.change(CampaignState.wall_s, lose)
        assert store.state.wall_s is None
        store.add_notice("whole")
        assert store.notices() == ["whole"]


def test_scores_of_units_are_whole_where_the_connection_ends_as_they_are_stored(
    tmp_path, database_url, postgres_server, monkeypatch
):
    monkeypatch.setattr(servers, "_PAUSE_S", 0.01)
    score = UnitScore("conv", 0, "dark", "pearson", 0.5, 0.4, 0.6, 9)
    begun = []

    def rows():
        begun.append(None)
        if len(begun) == 1:
            postgres_server.psql(f"{END} AND datname = '{database_url.rpartition('/')[2]}'")
        return map(vars, [replace(score, unit=unit) for unit in range(3)])

    with Store.create(tmp_path / "c", {}, database=database_url) as store:
        store.add_result("units", score, units=rows)
        units = store._database.rows(tables.unit_scores, lambda row: row.unit)
    assert (len(begun), units) == (2, [0, 1, 2])


def test_each_method_that_begins_again_is_a_stores():
    names = {*servers._OF_ONE_TRANSACTION, *servers._OF_ONE_STATEMENT}
    assert {name for name in names if hasattr(vars(Store).get(name), "__wrapped__")} == names


def test_an_outcome_that_was_stored_as_its_connection_was_lost_counts_once(tmp_path, database_url):
    lost = OSError("the connection is lost")
    with Store.create(tmp_path / "c", {}, database=database_url) as store:
        store.add_seeds([SeedInput("s", SAMPLE)])
        attempts = []

        def add():
            attempts.append(store.add_outcome(OutcomeRecord("s", Status.EXHAUSTED, 0)))
            away = StoreAwayError("lost in the middle")
            away.repeatable = True
            raise away from DBAPIError("INSERT", {}, lost)

        assert servers.beginning_again(add, is_statement=True)()
        assert attempts == [True]
        assert [one.seed_id for one in store.outcomes()] == ["s"]


def test_a_full_disk_of_the_server(tmp_path, database_url):
    # PostgreSQL's own words for it, where a disk of this size can't be had.
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
    with Store.create(tmp_path / "c", {}, database=database_url) as store:
        with (
            pytest.raises(DiskFullError, match="`edgeflare resume`"),
            store._database.writing() as connection,
        ):
            connection.exec_driver_sql(full)
        store.add_notice("there is room again")


def test_a_schema_that_was_removed(tmp_path, database_url, postgres_server):
    with Store.create(tmp_path / "c", {}, database=database_url) as store:
        postgres_server.psql("DROP SCHEMA c CASCADE", database_url.rpartition("/")[2])
        with pytest.raises(StoreError, match="restore"):
            store.add_notice("x")
    with pytest.raises(StoreError, match="interrupted before"):
        Store.open(tmp_path / "c")


def test_a_role_without_rights_to_a_campaign(server, tmp_path):
    Store.create(tmp_path / "c", {}, database=server.url).close()
    location = read_pointer(tmp_path / "c")
    url = server.url_of("postgres", "poor")
    write_pointer(tmp_path / "c", location._replace(url=url))
    add_database(url)
    with pytest.raises(StoreError, match="schema 'c'"):
        Store.open(tmp_path / "c")
    with pytest.raises(StoreError, match="GRANT SELECT"):
        folder_at(server.url_of("postgres", "poor") + "/c")
    server.psql("GRANT USAGE ON SCHEMA c TO poor; GRANT SELECT ON ALL TABLES IN SCHEMA c TO poor")
    with Store.open(tmp_path / "c") as store:
        assert store.notices() == []
        with pytest.raises(StoreError, match="permission denied"):
            store.add_notice("x")
    write_pointer(tmp_path / "c", location)
    store_creation.remove_folder(tmp_path / "c")


def test_without_psycopg(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"install 'edgeflare\[postgres\]'"):
        Store.create(tmp_path / "c", {}, database="postgresql://u@127.0.0.1:1/d")
