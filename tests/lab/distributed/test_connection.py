"""Addresses of schedulers, and files of TLS."""

import ssl
import sys
from pathlib import Path

import pytest

from edgeflare import UsageError
from edgeflare._internal import plugins
from edgeflare.campaign import FleetConfig
from edgeflare.cli.settings import HostsSettings
from edgeflare_lab.distributed.connection import (
    Tls,
    connection_error,
    loopback_host,
    scheduler_address,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("lab", "tls://lab:8786"),
        ("tls://lab:1", "tls://lab:1"),
        ("tls://[::1]:2", "tls://[::1]:2"),
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("tcp://localhost", "tcp://localhost:8786"),
        ("tcp://[::1]", "tcp://[::1]:8786"),
    ],
)
def test_an_address_has_tls_and_a_port_by_default(text: str, address: str) -> None:
    assert scheduler_address(text, insecure=False) == address


@pytest.mark.parametrize("text", ["", "ucx://lab", "tls://", "tls://lab:x", "tls://lab/x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="Dask scheduler"):
        scheduler_address(text, insecure=True)


def test_another_host_without_tls_is_refused_unless_it_is_insecure() -> None:
    with pytest.raises(UsageError, match="no TLS"):
        scheduler_address("tcp://lab:8786", insecure=False)
    assert scheduler_address("tcp://lab:8786", insecure=True) == "tcp://lab:8786"
    assert loopback_host("tcp://lab:8786") is None
    assert loopback_host("tcp://127.0.0.1:8786") == "127.0.0.1"
    assert loopback_host("tls://127.0.0.1:8786") is None


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"),
            ": what listens there has no TLS; start it with TLS, or try tcp://lab:1",
        ),
        (
            ssl.SSLEOFError(8, "[SSL: EOF] EOF in violation (_ssl.c:1006)"),
            " over TLS ([SSL: EOF] EOF in violation); is it a scheduler that has TLS?",
        ),
    ],
)
def test_what_fails_in_tls_has_a_remedy(error: ssl.SSLError, text: str) -> None:
    said = str(connection_error("tls://lab:1", error))
    assert f"answers at tls://lab:1{text}" in said


def test_the_files_of_tls_are_three_that_exist(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("")
    with pytest.raises(UsageError, match="--tls-cert"):
        Tls(ca_file=file).check()
    with pytest.raises(UsageError, match="--tls-key names"):
        Tls(file, file, tmp_path / "gone.pem").check()
    Tls().check()
    Tls(file, file, file).check()


def test_a_key_that_others_may_read_is_named_once(tmp_path, capsys) -> None:
    key = tmp_path / "key.pem"
    key.touch()
    scheduler = HostsSettings(dask="tls://lab:8786", tls_key=key)
    for mode, notes in ((0o644, 1), (0o600, 0)):
        key.chmod(mode)
        with pytest.raises(UsageError), scheduler.cluster(FleetConfig()):
            pass
        assert capsys.readouterr().err.count(f"chmod 600 {key}") == notes


def test_a_cluster_that_cannot_be_loaded_is_told_with_its_distribution(monkeypatch) -> None:
    plugins.load.cache_clear()
    monkeypatch.setitem(sys.modules, "edgeflare_lab.distributed.cli", None)
    scheduler = HostsSettings(dask="tls://lab:8786")
    with pytest.raises(UsageError, match=r"'dask' of.*loaded"):
        scheduler.cluster(FleetConfig())
