"""Provisioning and pruning a real folder through the local transport."""

import hashlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgeflare.devices import Device, prune_device
from edgeflare.devices.provisioning.probe import probe
from edgeflare.devices.provisioning.upload import Provisioned, provision
from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import DeviceDiskFullError, DeviceError, ModelError

TWO_HOURS = 7200


class CountingTransport(LocalTransport):
    """Notes what is put; the first `damaged` uploads lose their last byte's value on the way."""

    def __init__(self, damaged: int = 0) -> None:
        super().__init__("bench")
        self.put_sizes: list[int] = []
        self.damaged = damaged

    def put(self, local: Path, remote: str) -> None:
        super().put(local, remote)
        self.put_sizes.append(local.stat().st_size)
        if self.damaged:
            self.damaged -= 1
            content = Path(remote).read_bytes()
            Path(remote).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "Some Model.TFLite"
    path.write_bytes(os.urandom(300_000))
    return path


def bring(transport: LocalTransport, device: Device, model: Path) -> Provisioned:
    return provision(transport, probe(transport, device), device, model)


def cached(device: Device) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in Path(device.cache).rglob("*") if path.is_file()
    }


def age(path: Path) -> None:
    then = time.time() - TWO_HOURS
    os.utime(path, (then, then))


def test_files_are_named_by_their_content(device: Device, model: Path) -> None:
    there = bring(LocalTransport("bench"), device, model)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    assert there.model_name == f"{digest}.tflite"
    assert there.model_sha256 == digest
    assert Path(there.model_path).read_bytes() == model.read_bytes()
    agent = Path(there.agent_path)
    assert agent.name == f"{hashlib.sha256(agent.read_bytes()).hexdigest()}.pyz"
    assert len(cached(device)) == 2


def test_second_time_uploads_nothing_and_marks_the_files_as_used(device, model) -> None:
    transport = CountingTransport()
    first = bring(transport, device, model)
    file = Path(first.model_path)
    age(file)
    second = bring(transport, device, model)
    assert len(transport.put_sizes) == 2
    assert (len(first.uploaded), second.uploaded) == (2, ())
    assert time.time() - file.stat().st_mtime < TWO_HOURS / 2


def test_file_of_another_size_is_replaced(device: Device, model: Path) -> None:
    there = bring(LocalTransport("bench"), device, model)
    file = Path(there.model_path)
    file.write_bytes(b"cut off")
    assert bring(LocalTransport("bench"), device, model).uploaded == (there.model_name,)
    assert file.read_bytes() == model.read_bytes()


@pytest.mark.parametrize("which", ["agent_path", "model_path"])
def test_a_file_of_other_bytes_and_the_same_size_is_never_used(device, model, which) -> None:
    there = bring(LocalTransport("bench"), device, model)
    file = Path(getattr(there, which))
    whole = file.read_bytes()
    file.write_bytes(whole[:1000] + b"9 changed" + whole[1009:])
    assert bring(LocalTransport("bench"), device, model).uploaded == (file.name,)
    assert file.read_bytes() == whole


def test_a_file_that_others_may_change_after_it_was_hashed_is_replaced(
    device: Device, model: Path, tmp_path: Path
) -> None:
    there = bring(LocalTransport("bench"), device, model)
    agent = Path(there.agent_path)
    agent.chmod(0o666)
    assert bring(LocalTransport("bench"), device, model).uploaded == (agent.name,)
    assert agent.stat().st_mode & 0o777 == 0o600
    agent.rename(tmp_path / "elsewhere")
    agent.symlink_to(tmp_path / "elsewhere")
    assert bring(LocalTransport("bench"), device, model).uploaded == (agent.name,)
    assert not agent.is_symlink()


def test_file_that_vanished_after_the_probe_is_uploaded(device: Device, model: Path) -> None:
    transport = LocalTransport("bench")
    bring(transport, device, model)
    seen = probe(transport, device)
    prune_device(device, everything=True)
    assert len(provision(transport, seen, device, model).uploaded) == 2
    assert len(cached(device)) == 2


def test_damage_on_the_way_is_mended_by_one_more_upload(device: Device, model: Path) -> None:
    transport = CountingTransport(damaged=1)
    there = bring(transport, device, model)
    assert len(transport.put_sizes) == 3
    assert Path(there.model_path).read_bytes() == model.read_bytes()
    assert len(cached(device)) == 2


def test_damage_twice_is_an_error_and_leaves_nothing_wrong(device: Device, model: Path) -> None:
    transport = CountingTransport(damaged=100)
    with pytest.raises(DeviceError, match="arrived damaged"):
        bring(transport, device, model)
    assert len(transport.put_sizes) == 4
    assert cached(device) == {}


def test_two_hosts_at_once(device: Device, model: Path) -> None:
    barrier = threading.Barrier(2)
    results: list[Provisioned] = []

    def host() -> None:
        transport = LocalTransport("bench")
        seen = probe(transport, device)
        barrier.wait(60)
        results.append(provision(transport, seen, device, model))

    threads = [threading.Thread(target=host) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 2
    assert results[0] == results[1]
    content = cached(device)
    assert len(content) == 2
    assert content[results[0].model_name] == model.read_bytes()


def test_least_recently_used_files_go_until_the_limit(device: Device, model: Path) -> None:
    small = device.model_copy(update={"cache_limit_mb": 1})
    root = Path(probe(LocalTransport("bench"), small).root)
    for hours, name in ((4, "oldest"), (3, "older"), (2, "old")):
        path = root / "models" / name
        path.write_bytes(bytes(350_000))
        then = time.time() - hours * 3600
        os.utime(path, (then, then))
    (root / "models" / "recent").write_bytes(bytes(2_000))
    bring(LocalTransport("bench"), small, model)
    names = cached(small).keys()
    assert {"oldest", "older"}.isdisjoint(names)
    assert {"old", "recent"} < names


def test_files_of_the_last_hour_stay_over_the_limit(device: Device, model: Path) -> None:
    small = device.model_copy(update={"cache_limit_mb": 1})
    root = Path(probe(LocalTransport("bench"), small).root)
    (root / "models" / "in use").write_bytes(bytes(3_000_000))
    bring(LocalTransport("bench"), small, model)
    assert "in use" in cached(small)


def test_uploads_that_were_given_up_go_after_an_hour(device: Device, model: Path) -> None:
    root = Path(probe(LocalTransport("bench"), device).root)
    given_up, under_way = root / "models" / "a.part", root / "models" / "b.part"
    for path in (given_up, under_way):
        path.write_bytes(b"half")
    age(given_up)
    bring(LocalTransport("bench"), device, model)
    assert not given_up.exists()
    assert under_way.exists()


def test_prune_removes_what_was_not_used_lately(device: Device, model: Path) -> None:
    there = bring(LocalTransport("bench"), device, model)
    age(Path(there.model_path))
    report = prune_device(device)
    assert (report.files, report.bytes) == (1, 300_000)
    assert list(cached(device)) == [Path(there.agent_path).name]
    assert prune_device(device, everything=True).files == 1
    assert cached(device) == {}


def test_model_that_cannot_be_read(device: Device, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model .*missing\.onnx"):
        bring(LocalTransport("bench"), device, tmp_path / "missing.onnx")


@pytest.fixture
def one_megabyte(tmp_path: Path) -> Iterator[Path]:
    """A folder with 1 MB of space, on a file system of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_is_reported_before_the_upload(one_megabyte: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(bytes(2_000_000))
    small = Device(name="tiny", transport="local", cache=f"{one_megabyte}/cache")
    transport = CountingTransport()
    with pytest.raises(DeviceDiskFullError, match=r"and 2\d+") as caught:
        bring(transport, small, model)
    assert "edgeflare devices prune" in str(caught.value)
    assert transport.put_sizes == []


def test_disk_that_fills_up_meanwhile_keeps_no_half_file(one_megabyte, tmp_path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(bytes(2_000_000))
    small = Device(name="tiny", transport="local", cache=f"{one_megabyte}/cache")
    transport = LocalTransport("tiny")
    seen = replace(probe(transport, small), free_bytes=10**9)
    with pytest.raises(DeviceDiskFullError, match="edgeflare devices"):
        provision(transport, seen, small, model)
    assert not any(
        "m.onnx" in name or name.startswith(hashlib.sha256(model.read_bytes()).hexdigest())
        for name in cached(small)
    )
