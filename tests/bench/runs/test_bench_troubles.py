"""What can go wrong around a bench's cells: devices that change, full disks, torn beginnings."""

import errno
from pathlib import Path
from typing import Any

import pytest
from benches import demo_suite
from campaigns import found_in

from edgeflare.campaign import BatchProgress, Notice, Stage, Step
from edgeflare.devices import fingerprint
from edgeflare.errors import DiskFullError, StoreError, UnreachableError, UsageError
from edgeflare.store import Store
from edgeflare_bench import Bench, open_bench, resume_bench
from edgeflare_bench.cells import write_bench
from edgeflare_bench.run import run_bench

SUITE = demo_suite(max_queries=10)
CHANGED = r"local is not what it was in other cells of LeNet 5: kernel was .*, is 99\.0"


def update_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every device says that its kernel is another."""

    def updated(device: dict[str, Any], runtime: dict[str, Any]) -> dict[str, Any]:
        return fingerprint({**device, "kernel": "99.0"}, runtime)

    monkeypatch.setattr("edgeflare.devices.session.session.fingerprint", updated)


def interrupted(told: type, home: Path) -> Path:
    """A bench that was interrupted in its second cell, before a device was asked anything there."""

    def watch(progress: BatchProgress) -> None:
        if progress.number == 2 and isinstance(progress.event, told):
            raise KeyboardInterrupt

    folder = home / "bench"
    with pytest.raises(KeyboardInterrupt):
        run_bench(SUITE, folder, progress=watch)
    return folder


def full(path: Path, data: bytes) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


def away(device: Any, ask: Any) -> Any:
    raise UnreachableError(f"{device.name} is away")


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(Stage, id="between cells"),
        pytest.param(Step, marks=pytest.mark.extended, id="while seeds are stored"),
    ],
)
def test_a_device_that_changed_between_cells_is_refused(tmp_path, monkeypatch, told) -> None:
    folder = interrupted(told, tmp_path)
    with monkeypatch.context() as patch:
        update_kernel(patch)
        with pytest.raises(UsageError, match=f"{CHANGED}.*--force"):
            resume_bench(folder)
    bench = open_bench(folder)
    assert [bench.state(cell) for cell in bench.cells] == ["finished", "missing"]
    assert bench.failed == {}
    resume_bench(folder)  # the device is what it was again
    assert [bench.state(cell) for cell in bench.cells] == ["finished", "finished"]


@pytest.mark.extended
def test_with_force_it_goes_on_and_says_so_for_good(tmp_path, monkeypatch) -> None:
    folder = interrupted(Stage, tmp_path)
    update_kernel(monkeypatch)
    told: list[str] = []

    def watch(progress: BatchProgress) -> None:
        if isinstance(progress.event, Notice):
            told.append(progress.event.text)

    resume_bench(folder, force=True, progress=watch)
    bench = open_bench(folder)
    assert [bench.state(cell) for cell in bench.cells] == ["finished", "finished"]
    (notice,) = [text for text in told if "not what it was" in text]
    with Store.open(bench.campaign(bench.cells[1])) as store:
        assert notice in store.notices()


@pytest.mark.extended
def test_a_device_that_changes_while_the_bench_runs_ends_it(tmp_path, monkeypatch) -> None:
    def watch(progress: BatchProgress) -> None:
        if progress.number == 2 and progress.event is None:
            update_kernel(monkeypatch)

    with pytest.raises(UsageError, match=CHANGED):
        run_bench(SUITE, tmp_path / "bench", progress=watch)
    bench = open_bench(tmp_path / "bench")
    assert [bench.state(cell) for cell in bench.cells] == ["finished", "missing"]
    assert len(found_in(bench.campaign(bench.cells[0]))) == 2


def test_a_disk_that_is_full_at_the_start_leaves_nothing_to_resume(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "bench"
    with monkeypatch.context() as patch:
        patch.setattr("edgeflare.campaign.batch.write_durably", full)
        with pytest.raises(DiskFullError, match="nothing could") as told:
            run_bench(SUITE, folder)
    assert "resume" not in str(told.value)
    with pytest.raises(UnreachableError):  # it begins in the same folder
        run_bench(SUITE, folder, connect=away)
    assert open_bench(folder).suite.name == "small"


@pytest.mark.parametrize("place", ["edgeflare.campaign.batch", "edgeflare.store.lock"])
def test_a_disk_that_is_full_later_says_how_to_resume_the_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    write_bench(Bench(tmp_path, SUITE, ("local",)))
    monkeypatch.setattr(f"{place}.write_durably", full)
    with pytest.raises(DiskFullError, match=f"resume {tmp_path}`"):
        resume_bench(tmp_path, devices=["local", "local"])


def _killed_at_the_start(folder: Path) -> Path:
    folder.mkdir()
    (folder / "campaign.lock").touch()
    torn = folder / f".new-{32 * '0'}"
    torn.write_bytes(b"{")
    return torn


def test_what_a_kill_at_the_start_left_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    torn = _killed_at_the_start(folder)
    with pytest.raises(UnreachableError):
        run_bench(SUITE, folder, connect=away)
    assert not torn.exists()
    assert open_bench(folder).suite.name == "small"


@pytest.mark.parametrize(
    "make", [lambda path: path.write_bytes(b"x"), lambda path: path.mkdir()], ids=["file", "folder"]
)
def test_what_is_the_user_s_is_not_taken_for_a_leftover(tmp_path, make) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    mine = folder / ".new-notes"
    make(mine)
    with pytest.raises(UsageError, match="empty folder"):
        run_bench(SUITE, folder, connect=away)
    assert mine.exists()


def test_a_folder_that_cannot_be_written_is_not_a_cell_s_own_failure(tmp_path, monkeypatch) -> None:
    def read_only(path: Path, data: bytes) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("edgeflare_bench.made_models.write_durably", read_only)
    with pytest.raises(StoreError, match=r"LeNet-5\.onnx .*Read-only"):
        run_bench(
            demo_suite(pair={"deployed": None, "perturb": {"percent": 50}}), tmp_path / "bench"
        )
    assert open_bench(tmp_path / "bench").failed == {}


def test_devices_are_told_the_cell_that_uses_them(tmp_path, monkeypatch) -> None:
    abouts = []

    def open_device(device: Any, *args: Any, lease: Any, **options: Any) -> Any:
        abouts.append(lease.about)
        raise UnreachableError(f"{device.name} is away")

    monkeypatch.setattr("edgeflare.campaign.fleet.open_device", open_device)
    with pytest.raises(UnreachableError):
        run_bench(SUITE, tmp_path / "bench")
    (about,) = abouts
    assert "campaign LeNet-5/short/0" in about
