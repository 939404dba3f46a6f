"""Every way a campaign folder can be unusable, each one sentence."""

import errno
import os
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import sqlalchemy.exc
import stored_json
from object_stores import samples_in_folder

from edgeflare._internal.files import write_durably
from edgeflare._version import __version__
from edgeflare.errors import DiskFullError, StoreError
from edgeflare.store import CampaignLock, OutcomeRecord, ReplayRecord, SeedAnswer, SeedInput, Store
from edgeflare.store.database import disk_full_error, open_engine, translate_errors
from edgeflare.store.location import read_pointer
from edgeflare.types import Decision, Status

SAMPLE = np.zeros((2, 2, 1), np.uint8)
SCORES = np.array([1.0, 0.0])


def change(store, statement):
    store.close()
    engine = open_engine(store.folder, "campaign.sqlite", read_pointer(store.folder))
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def test_creating_where_something_is(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for name in ("full", "file"):
        with pytest.raises(StoreError, match="empty folder"):
            Store.create(tmp_path / name, {})
    assert (tmp_path / "full" / "thesis.txt").read_text() == "precious"
    (tmp_path / "empty").mkdir()
    Store.create(tmp_path / "empty", {}).close()


def test_a_folder_may_be_locked_before_the_campaign_is_made_in_it(tmp_path):
    (tmp_path / "c").mkdir()
    with CampaignLock(tmp_path / "c"):
        with Store.create(tmp_path / "c", {}) as store:
            assert CampaignLock.is_held(store.folder)
        with pytest.raises(StoreError, match="empty folder"):
            Store.create(tmp_path / "c", {})


@pytest.mark.parametrize("there", [True, False])
def test_a_campaign_made_in_vain_leaves_what_was_there(tmp_path, there):
    if there:
        (tmp_path / "c").mkdir()
    store = Store.create(tmp_path / "c", {})
    with CampaignLock(tmp_path / "c"):
        store.put_sample(SAMPLE)
        store.discard()
    assert (tmp_path / "c").exists() == there
    store = Store.create(tmp_path / "c", {})
    (tmp_path / "c" / "thesis.txt").write_text("precious")
    store.discard()
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["thesis.txt"]


def test_copies_of_files_come_and_go_with_the_campaign(tmp_path):
    file = tmp_path / "seeds.npz"
    file.write_bytes(b"seeds")
    store = Store.create(tmp_path / "c", {}, files=[file])
    assert (tmp_path / "c" / "seeds.npz").read_bytes() == b"seeds"
    store.discard()
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(StoreError):
        Store.create(tmp_path / "c", {}, files=[file, tmp_path / "none"])
    assert not (tmp_path / "c").exists()


def test_a_creation_that_failed_can_be_tried_again(tmp_path):
    with pytest.raises(StoreError):
        Store.create(tmp_path / "c", {"seed": object()})
    Store.create(tmp_path / "c", {"seed": 1}).close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing", "campaign folder"),
        ("empty", r"campaign\.sqlite"),
        ("torn", "interrupted before"),
        ("theirs", "another program's"),
        ("bytes", "is damaged"),
    ],
)
def test_opening_what_is_no_campaign(tmp_path, name, words):
    for folder in ("empty", "torn", "theirs", "bytes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "torn" / "campaign.sqlite.new").write_bytes(b"")
    (tmp_path / "bytes" / "campaign.sqlite").write_bytes(b"x" * 5000)
    stored_json.change(tmp_path / "theirs" / "campaign.sqlite", "create table recipes (name text)")
    with pytest.raises(StoreError, match=words):
        Store.open(tmp_path / name)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (2, r"schema 2 can't be read any more, only schema 5 and later; run the campaign anew"),
        (99, rf"made by a newer edgeflare \(9\.9, schema 99\) .* \({__version__}, .*; upgrade"),
    ],
)
def test_a_schema_for_which_there_is_no_migration(store, version, words):
    change(store, f"update meta set schema_version = {version}, program_version = '9.9'")
    with pytest.raises(StoreError, match=words):
        Store.open(store.folder)


def test_a_database_with_a_hole_in_it(sqlite_store):
    store = sqlite_store
    store.add_seeds(SeedInput(f"s{n}" * 20, SAMPLE, n) for n in range(2000))
    store.close()
    path = store.folder / "campaign.sqlite"
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"), Store.open(store.folder) as reopened:
        list(reopened.seeds())


def test_a_seed_has_one_outcome(store):
    store.add_outcome(OutcomeRecord("a", Status.EXHAUSTED, 1))
    with pytest.raises(StoreError, match="'a' can't"):
        store.add_outcome(OutcomeRecord("a", Status.TIMEOUT, 1))
    store.add_outcome(OutcomeRecord("a", Status.TIMEOUT, 1, replica="pi"))
    with pytest.raises(StoreError, match="already"):
        store.add_outcome(OutcomeRecord("a", Status.GAVE_UP, 1, replica="pi"))
    assert [outcome.status for outcome in store.outcomes()] == [Status.EXHAUSTED, Status.TIMEOUT]


def outcome(seed_id="a", status=Status.EXHAUSTED, **fields):
    return lambda store: store.add_outcome(OutcomeRecord(seed_id, status, 1, **fields))


def replay(seed_id, trigger=None):
    def add(store):
        digest = trigger or store.put_sample(SAMPLE)
        deviates = Decision.DEVIATION
        store.add_replay(ReplayRecord(seed_id, "", "pi", digest, SCORES, 0, deviates))

    return add


def answers(store):
    one = SeedAnswer("nobody", SCORES, SCORES, Decision.AGREE)
    store.add_seed_answers([one._replace(seed_id="a"), one])


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (outcome("nobody"), "unknown"),
        (outcome(device="0" * 64), "unknown"),
        (outcome(status=Status.FOUND, trigger="0" * 64), "not put"),
        (answers, "seed 'nobody'"),
        (replay("nobody"), "unknown"),
        (replay("a", "0" * 64), "not put"),
    ],
)
def test_what_refers_to_nothing_is_refused(store, add, words):
    with pytest.raises(StoreError, match=words):
        add(store)
    assert [*store.outcomes(), *store.replays(), *store.pending_seeds()] == []


@pytest.mark.parametrize("ids", [["b", "a", "c"], ["b", "c", "b"]])
def test_seeds_that_are_there_already_are_refused_together(store, ids):
    again = "a" if "a" in ids else "b"
    with pytest.raises(StoreError, match=f"'{again}'"):
        store.add_seeds(SeedInput(seed_id, SAMPLE) for seed_id in ids)
    assert [seed.id for seed in store.seeds()] == ["a"]
    store.add_seeds([SeedInput("b", SAMPLE)])
    assert [(seed.id, seed.position) for seed in store.seeds()] == [("a", 0), ("b", 1)]


def test_an_error_of_whoever_gives_the_seeds_is_not_the_stores(store):
    def seeds():
        yield SeedInput("b", SAMPLE)
        raise FileNotFoundError(errno.ENOENT, "gone")

    with pytest.raises(FileNotFoundError):
        store.add_seeds(seeds())
    assert store.seed_ids() == {"a"}


@samples_in_folder
def test_a_damaged_or_missing_sample_is_named_and_one_half_written_is_written_again(store):
    digest = store.put_sample(SAMPLE + 1)
    path = store.folder / "samples" / digest[:2] / f"{digest}.npy"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(StoreError, match=f"{digest}.npy"):
        store.get_sample(digest)
    path.unlink()
    with pytest.raises(StoreError, match=f"{digest}.npy"):
        store.get_sample(digest)
    path.write_bytes(data[:50])
    assert store.put_sample(SAMPLE + 1) == digest
    assert np.array_equal(store.get_sample(digest), SAMPLE + 1)


def test_a_locked_database_says_so(sqlite_store, monkeypatch):
    store = sqlite_store
    monkeypatch.setattr("edgeflare.store.database._BUSY_SECONDS", 0)
    with (
        Store.open(store.folder) as second,
        closing(sqlite3.connect(store.folder / "campaign.sqlite")) as other,
    ):
        other.execute("begin immediate")
        with pytest.raises(StoreError, match="another program"):
            second.add_notice("hello")
        with pytest.raises(StoreError, match="another program"):
            second.add_seed_answers([SeedAnswer("a", SCORES, SCORES, Decision.AGREE)])
        assert second.notices() == []
        other.rollback()
        second.add_notice("hello")
        assert second.notices() == ["hello"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        Store.create(tmp_path / "c", {})


def _subclasses(kind):
    return {kind} | {leaf for child in kind.__subclasses__() for leaf in _subclasses(child)}


@pytest.mark.parametrize(
    "kind",
    sorted(_subclasses(sqlalchemy.exc.SQLAlchemyError) | _subclasses(sqlite3.Error), key=repr),
)
def test_every_error_of_sqlalchemy_and_sqlite_becomes_a_store_error(tmp_path, kind):
    needs_statement = issubclass(kind, sqlalchemy.exc.StatementError)
    error = kind("no", "select", {}, ValueError("no")) if needs_statement else kind.__new__(kind)
    with pytest.raises(StoreError), translate_errors(tmp_path):
        raise error


def test_no_space_to_begin_leaves_nothing_to_go_on_with(tmp_path, monkeypatch):
    def full(connection):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("edgeflare.store.queries.make_tables", full)
    with pytest.raises(DiskFullError, match="nothing could") as caught:
        Store.create(tmp_path / "c", {})
    assert "resume" not in str(caught.value)
    for error in (OSError(errno.ENOSPC, "No space left"), disk_full_error(tmp_path)):
        with (
            pytest.raises(DiskFullError, match="start again"),
            translate_errors(tmp_path, resumable=False),
        ):
            raise error


def test_a_file_that_cannot_be_put_in_place_is_named(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(StoreError, match=f"^{tmp_path / 'taken'} in"), translate_errors(tmp_path):
        write_durably(tmp_path / "taken", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_what_is_stored_does_not_change_what_an_error_means(store):
    with pytest.raises(StoreError, match="database"):
        store.add_notice({"database is locked": object()})


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        sqlite3.OperationalError("database or disk is full"),
    ],
)
def test_no_space_is_its_own_error(tmp_path, error):
    with pytest.raises(DiskFullError, match="found") as caught, translate_errors(tmp_path):
        raise error
    assert str(tmp_path) in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_start_that_fails_leaves_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="samples' folder"):
        Store.create(tmp_path / "campaigns" / "new", {}, samples=str(tmp_path / "file"))
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
