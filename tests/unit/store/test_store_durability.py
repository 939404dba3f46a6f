"""Nothing acknowledged is lost: kill -9, a full disk, a disk that turns read-only."""

import itertools
import sqlite3
import subprocess
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from programs import lines_before_kill

from edgeflare.errors import DiskFullError, StoreError
from edgeflare.store import OutcomeRecord, SeedInput, Store
from edgeflare.types import Status

ADD_FOR_EVER = """
import sys
import threading
from pathlib import Path

import numpy as np

from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, Status

store = Store.open(Path(sys.argv[1]))
printing = threading.Lock()


def acknowledge(*words):
    with printing:
        print(*words, flush=True)


def outcomes(replica):
    for number in range(2000):
        trigger = store.put_sample(np.full((8, 8, 1), number % 256, np.uint8))
        store.add_outcome(
            OutcomeRecord(f"s{number}", Status.FOUND, number, trigger=trigger, replica=replica)
        )
        acknowledge("outcome", replica, f"s{number}")


def seeds():
    for batch in range(10_000):
        names = [f"t{batch}-{number}" for number in range(20)]
        store.add_seeds(SeedInput(name, np.full((8, 8, 1), batch % 256, np.uint8)) for name in names)
        acknowledge("seeds", batch)
        store.add_seed_answers(
            [SeedAnswer(name, np.zeros(2), np.ones(2), Decision.AGREE) for name in names]
        )
        acknowledge("answers", batch)


for replica in ("pi", "jetson"):
    threading.Thread(target=outcomes, args=(replica,)).start()
seeds()
"""


@pytest.mark.parametrize("reports", [1, pytest.param(7, marks=pytest.mark.extended), 90])
def test_what_was_acknowledged_before_kill_9_is_there_and_nothing_half(tmp_path, database, reports):
    sample = np.zeros((8, 8, 1), np.uint8)
    with Store.create(tmp_path / "c", {}, database=database) as store:
        store.add_seeds(SeedInput(f"s{n}", sample) for n in range(2001))
    told = [tuple(words) for words in lines_before_kill(ADD_FOR_EVER, tmp_path / "c", reports)]
    with Store.open(tmp_path / "c") as store:
        outcomes = {("outcome", one.replica, one.seed_id): one for one in store.outcomes()}
        assert {one for one in told if one[0] == "outcome"} <= set(outcomes)
        for outcome in outcomes.values():
            assert (store.get_sample(outcome.trigger) == outcome.chain_seed % 256).all()
        batches = Counter(seed.id.split("-")[0] for seed in store.seeds() if seed.id[0] == "t")
        answered = Counter(seed.id.split("-")[0] for seed in store.pending_seeds())
        assert {f"t{one[1]}" for one in told if one[0] == "seeds"} <= set(batches)
        assert {f"t{one[1]}" for one in told if one[0] == "answers"} <= set(answered)
        assert set(batches.values()) | set(answered.values()) <= {20}
        for seed in store.seeds():
            store.get_sample(seed.sample)
        store.add_outcome(OutcomeRecord("s2000", Status.EXHAUSTED, 1, replica="pi"))


def seed_of(name, value):
    return SeedInput(name, np.full((30, 30, 3), value, np.uint8))


def test_a_full_disk_keeps_what_was_found(small_disk: Path):
    store = Store.create(small_disk / "c", {})
    added = []

    def add_for_ever():
        for number in itertools.count():
            store.add_seeds([seed_of(f"s{number}", number % 251)])
            store.add_outcome(
                OutcomeRecord(f"s{number}", Status.EXHAUSTED, number, detail="x" * 3000)
            )
            added.append(f"s{number}")

    with pytest.raises(DiskFullError, match="kept there") as caught:
        add_for_ever()
    assert str(small_disk / "c") in str(caught.value)
    assert len(added) > 10
    assert not list((small_disk / "c" / "samples").glob("*/.new-*"))
    store.close()
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    with Store.open(small_disk / "c") as reopened:
        assert set(added) <= reopened.finished_seed_ids()
        reopened.add_seeds([seed_of("after", 0)])
        reopened.add_outcome(OutcomeRecord("after", Status.EXHAUSTED, 1))


def test_a_sample_that_does_not_fit_is_a_full_disk(small_disk: Path):
    with Store.create(small_disk / "c", {}) as store:
        with pytest.raises(DiskFullError):
            store.put_sample(np.zeros((1000, 1000, 3), np.uint8))
        with pytest.raises(DiskFullError):
            store.add_seeds(seed_of(f"s{n}", n) for n in range(250))
        assert not list((small_disk / "c" / "samples").glob("*/*"))
        assert store.seed_count() == 0
        digest = store.put_sample(np.zeros((10, 10, 3), np.uint8))
        assert store.get_sample(digest).shape == (10, 10, 3)


def test_a_disk_too_small_for_a_campaign_leaves_nothing_behind(small_disk: Path):
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (900 << 10))
    with pytest.raises(DiskFullError):
        Store.create(small_disk / "c", {"note": "x" * 200_000})
    filler.unlink()
    Store.create(small_disk / "c", {"note": "short"}).close()


def test_a_read_only_disk_is_read_and_says_so(small_disk: Path):
    store = Store.create(small_disk / "c", {})
    store.add_notice("before")
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match=r"writable|Read-only"):
        Store.create(small_disk / "d", {})
    with Store.open(small_disk / "c") as reopened:
        assert reopened.notices() == ["before"]
        with pytest.raises(StoreError, match="writable"):
            reopened.add_notice("after")


def test_whoever_looks_while_a_campaign_is_made_sees_a_whole_one_or_none(tmp_path):
    # Looked at half-made, as `status --watch` would, the file's lock once stopped the campaign.
    halves = []
    done = threading.Event()

    def look():
        while not done.is_set():
            for file in tmp_path.glob("*/campaign.sqlite"):
                with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
                    tables = connection.execute("select count(*) from sqlite_master").fetchone()
                    if tables == (0,):
                        halves.append(file)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for number in range(10):
            Store.create(tmp_path / str(number), {}).close()
    finally:
        done.set()
        watcher.join()
    assert halves == []
