"""Nothing acknowledged is lost: kill -9, a full disk, a disk that turns read-only."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgeflare.errors import DiskFullError, StoreError
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import Status

ADD_FOR_EVER = """
import sys
from pathlib import Path
import numpy as np
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import Status

store = Store.open(Path(sys.argv[1]))
for number, seed in enumerate(store.seeds()):
    trigger = store.put_sample(np.full((8, 8, 1), number % 256, np.uint8))
    store.add_outcome(OutcomeRecord(seed.id, Status.FOUND, number, trigger=trigger))
    print(seed.id, flush=True)
"""


@pytest.mark.parametrize("reports", [1, 7, 60])
def test_every_outcome_reported_before_kill_9_is_there(tmp_path, reports):
    sample = np.zeros((8, 8, 1), np.uint8)
    with Store.create(tmp_path / "c", {}) as store:
        store.add_seeds([(f"s{n}", sample, None) for n in range(2000)])
    program = [sys.executable, "-c", ADD_FOR_EVER, str(tmp_path / "c")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as child:
        reported = [child.stdout.readline().strip() for _ in range(reports)]
        child.send_signal(signal.SIGKILL)
        reported += child.stdout.read().split("\n")[:-1]
    assert child.returncode == -signal.SIGKILL
    with Store.open(tmp_path / "c") as store:
        outcomes = {outcome.seed_id: outcome for outcome in store.outcomes()}
        assert set(reported) <= set(outcomes)
        assert len(outcomes) <= len(reported) + 1
        for outcome in outcomes.values():
            assert (store.get_sample(outcome.trigger) == outcome.chain_seed % 256).all()
        store.add_outcome(OutcomeRecord("s1999", Status.EXHAUSTED, 1))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MB, made and unmade by root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root on Linux can mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk could be mounted: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_keeps_what_was_found(small_disk: Path):
    store = Store.create(small_disk / "c", {})
    added = []

    def add_for_ever():
        for number in itertools.count():
            store.add_seed(f"s{number}", np.full((30, 30, 3), number % 251, np.uint8))
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
        reopened.add_seed("after", np.zeros((30, 30, 3), np.uint8))
        reopened.add_outcome(OutcomeRecord("after", Status.EXHAUSTED, 1))


def test_a_sample_that_does_not_fit_is_a_full_disk(small_disk: Path):
    with Store.create(small_disk / "c", {}) as store:
        with pytest.raises(DiskFullError):
            store.put_sample(np.zeros((1000, 1000, 3), np.uint8))
        assert not list((small_disk / "c" / "samples").glob("*/*"))
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
