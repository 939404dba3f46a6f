"""One process a campaign, whatever became of the one before."""

import errno
import fcntl
import json
import os
import platform
import re
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from programs import holding

from edgeflare.errors import DiskFullError, StoreError
from edgeflare.store import CampaignLock

HOLD = """
import subprocess
import sys
from pathlib import Path

from edgeflare.store import CampaignLock

lock = CampaignLock(Path(sys.argv[1]))
lock.acquire()
child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


@contextmanager
def held_with_child(folder):
    """Another process that has the lock, and a child of its own."""
    with holding(HOLD, folder) as (holder, child):
        try:
            yield holder
        finally:
            os.kill(int(child), signal.SIGKILL)


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """A folder that another process has locked, and that process; tests may change its note."""
    folder = tmp_path_factory.mktemp("held")
    with held_with_child(folder) as holder:
        yield folder, holder


def test_the_second_process_is_refused_and_told_who_has_it(held):
    folder, holder = held
    assert CampaignLock.is_held(folder)
    with pytest.raises(StoreError) as caught:
        CampaignLock(folder).acquire()
    said = str(caught.value)
    assert f"{folder} is being run by process {holder.pid} on host {platform.node()} since" in said
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", said)


def test_a_lock_left_by_kill_9_is_free_at_once_though_a_child_lives_on(tmp_path):
    with held_with_child(tmp_path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert not CampaignLock.is_held(tmp_path)
        with CampaignLock(tmp_path):
            note = json.loads((tmp_path / "campaign.lock.json").read_text())
            assert note["pid"] == os.getpid()


def test_a_second_object_of_the_same_process_is_refused(tmp_path):
    lock = CampaignLock(tmp_path)
    with lock:
        lock.acquire()
        assert CampaignLock.is_held(tmp_path)
        with pytest.raises(StoreError, match=f"process {os.getpid()} "):
            CampaignLock(tmp_path).acquire()
    assert not CampaignLock.is_held(tmp_path)
    lock.release()
    with CampaignLock(tmp_path):
        assert CampaignLock.is_held(tmp_path)


def test_another_thread_may_release(tmp_path):
    lock = CampaignLock(tmp_path)
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    assert not CampaignLock.is_held(tmp_path)


def gone_pid():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("note", "words"),
    [
        ("{", "another process"),
        ("[]", "another process"),
        ('{"pid": 1}', "another process"),
        ({"host": platform.node(), "since": "x"}, "another process"),  # of a dead one
        (None, "another process"),
        # of another host's, whatever runs here
        ({"host": "bench-7", "since": "2030-01-02 03:04:05 UTC"}, "2030-01-02 03:04:05"),
    ],
)
def test_a_note_that_says_nothing_or_names_a_dead_process_does_not_mislead(held, note, words):
    folder, _ = held
    path = folder / "campaign.lock.json"
    before = path.read_text()
    if note is None:
        path.unlink()
    else:
        path.write_text(note if isinstance(note, str) else json.dumps({"pid": gone_pid(), **note}))
    with pytest.raises(StoreError, match=words):
        CampaignLock(folder).acquire()
    path.write_text(before)


def test_looking_leaves_nothing(tmp_path):
    assert not CampaignLock.is_held(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_those_who_look_do_not_take_each_other_or_a_beginner_for_a_run(tmp_path):
    with CampaignLock(tmp_path):
        pass
    seen = []

    def look():
        seen.extend(CampaignLock.is_held(tmp_path) for _ in range(100))

    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(look)
    assert seen == [False] * 200
    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(5):
        with CampaignLock(tmp_path):
            assert CampaignLock.is_held(tmp_path)
    thread.join()


def test_a_folder_that_is_missing(tmp_path):
    assert not CampaignLock.is_held(tmp_path / "missing")
    with pytest.raises(StoreError, match="campaign folder"):
        CampaignLock(tmp_path / "missing").acquire()
    assert not (tmp_path / "missing").exists()


@pytest.mark.filterwarnings("ignore:flock not supported")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch, number):
    def flock(_descriptor, _operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StoreError, match="system without"):
        CampaignLock(tmp_path).acquire()
    assert not CampaignLock.is_held(tmp_path)


def test_a_read_only_disk_is_reported_and_nobody_runs_a_campaign_there(small_disk):
    (small_disk / "c").mkdir()
    with CampaignLock(small_disk / "c"):
        pass
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="its permissions"):
        CampaignLock(small_disk / "c").acquire()
    assert not CampaignLock.is_held(small_disk / "c")


def test_a_lock_that_can_not_say_whose_it_is_is_given_back(small_disk):
    with CampaignLock(small_disk):
        pass
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    with pytest.raises(DiskFullError):
        CampaignLock(small_disk).acquire()
    filler.unlink()
    with CampaignLock(small_disk):
        assert CampaignLock.is_held(small_disk)
