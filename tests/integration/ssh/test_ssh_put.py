"""Files to a device: by SFTP, and through its Python where SFTP doesn't serve."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ssh_servers import AsyncsshOptions, banner_on_login, sftp_server, start_asyncssh, start_sshd

from edgeflare.devices.transports.ssh.transport import SshTransport
from edgeflare.errors import DeviceDiskFullError, DeviceError, UnreachableError


@pytest.fixture
def ten_mb(tmp_path):
    path = tmp_path / "model.tflite"
    path.write_bytes(np.random.default_rng(3).bytes(10_000_000))
    return path


def test_put_copies_10_mb_twice_at_once(transport, tmp_path, ten_mb):
    targets = [tmp_path / "first copy", tmp_path / "zweite – Kopie"]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda target: transport.put(ten_mb, str(target)), targets))
    assert [target.read_bytes() == ten_mb.read_bytes() for target in targets] == [True, True]


def test_put_by_sftp_needs_no_python(ssh_server, tmp_path, ten_mb):
    transport = SshTransport.connect(ssh_server.device(python="python9.99"))
    transport.put(ten_mb, str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == ten_mb.read_bytes()
    transport.close()


def test_put_behind_a_wrapper_goes_to_the_files_that_python_sees(ssh_server, tmp_path, ten_mb):
    # The wrapper stands for a container: Python sees its folder elsewhere than SFTP does.
    wrapper = f"cd {tmp_path} && {sys.executable}"
    transport = SshTransport.connect(ssh_server.device(python=wrapper))
    transport.put(ten_mb, "here")
    assert (tmp_path / "here").read_bytes() == ten_mb.read_bytes()
    transport.close()


@pytest.mark.sshd
def test_put_gets_past_the_banner_of_a_login_shell(tmp_path, ten_mb):
    lines = [banner_on_login(tmp_path), f"Subsystem sftp {sftp_server()}"]
    with start_sshd(lines) as server:
        transport = SshTransport.connect(server.device())
        transport.put(ten_mb, str(tmp_path / "copy"))
        assert (tmp_path / "copy").read_bytes() == ten_mb.read_bytes()
        transport.close()


def test_put_needs_no_sftp_on_the_device(tmp_path, ten_mb):
    with start_asyncssh(AsyncsshOptions(sftp=False)) as server:
        transport = SshTransport.connect(server.device())
        transport.put(ten_mb, str(tmp_path / "copy"))
        assert (tmp_path / "copy").read_bytes() == ten_mb.read_bytes()
        with pytest.raises(DeviceError, match="such file"):
            transport.put(ten_mb, str(tmp_path / "missing" / "file"))
        transport.close()


def test_put_over_a_lost_connection(tmp_path, ten_mb):
    with start_asyncssh() as server:
        transport = SshTransport.connect(server.device())
        server.kill()
        transport._connection.transport.join(10)
        with pytest.raises(UnreachableError):
            transport.put(ten_mb, str(tmp_path / "copy"))
        transport.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB; needs root."""
    if os.getuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"can't mount a small disk here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_distinguished_from_other_failures(ssh_server, small_disk, ten_mb):
    for python in (sys.executable, f"env {sys.executable}"):
        transport = SshTransport.connect(ssh_server.device(python=python))
        with pytest.raises(DeviceDiskFullError, match=r"10\.0 MB"):
            transport.put(ten_mb, str(small_disk / "model"))
        assert list(small_disk.iterdir()) == []
        transport.close()
