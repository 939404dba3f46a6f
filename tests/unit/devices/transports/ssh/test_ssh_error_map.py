"""Every error of paramiko has a sentence of ours."""

import errno
import inspect
import socket

import pytest
from paramiko import ssh_exception
from paramiko.sftp import SFTPError

from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.ssh.config import resolve_endpoint
from edgeflare.devices.transports.ssh.errors import MAPPED, explain, explained
from edgeflare.errors import DeviceError, DeviceTimeoutError, InventoryError, UnreachableError

THEIRS = [
    member
    for _, member in inspect.getmembers(ssh_exception, inspect.isclass)
    if issubclass(member, Exception) and member.__module__ == ssh_exception.__name__
]


@pytest.fixture
def endpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return resolve_endpoint(Device(name="pi4", host="10.0.0.7", port=2222, user="pi"))


def test_paramiko_has_errors_to_map():
    assert ssh_exception.SSHException in THEIRS
    assert len(THEIRS) > 10


@pytest.mark.parametrize("kind", THEIRS, ids=lambda kind: kind.__name__)
def test_each_error_of_paramiko_is_mapped_by_itself(kind):
    assert kind in MAPPED
    target, sentence = MAPPED[kind]
    assert issubclass(target, DeviceError | InventoryError)
    assert sentence.format(address="a", host="h", user="u", why="w")


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (socket.gaierror(-2, "Name unknown"), UnreachableError, "'10.0.0.7'"),
        (ConnectionRefusedError(111, "x"), UnreachableError, "10.0.0.7:2222 refused"),
        (OSError(errno.EHOSTUNREACH, "No route"), UnreachableError, "10.0.0.7:2222"),
        (OSError(errno.ENETUNREACH, "No net"), UnreachableError, "10.0.0.7:2222"),
        (UnicodeError("label too long"), UnreachableError, "'10.0.0.7'"),
        (TimeoutError(), DeviceTimeoutError, "10.0.0.7:2222"),
        (ConnectionResetError(104, "Reset"), UnreachableError, "connection"),
        (EOFError(), UnreachableError, "10.0.0.7:2222 closed"),
        (SFTPError("Garbage"), DeviceError, "10.0.0.7:2222 failed"),
        (ssh_exception.ChannelException(4, "full"), DeviceError, "another session"),
        (ssh_exception.IncompatiblePeer("no kex"), UnreachableError, "encryption"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_become_one_sentence(endpoint, error, kind, sentence):
    mapped = explain(error, endpoint)
    assert type(mapped) is kind
    with pytest.raises(kind, match=sentence), explained(endpoint):
        raise error
