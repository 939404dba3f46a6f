"""How inventory and SSH config together say where a device is."""

import getpass
from pathlib import Path

import pytest
from shown_numbers import numbers

from edgeflare.devices.inventory import Device, resolve_device
from edgeflare.devices.transports.ssh.config import resolve_endpoint
from edgeflare.errors import InventoryError

CONFIG = """
Host pi4
  HostName 10.0.0.7
  User pi
  Port 2222
  IdentityFile ~/.ssh/one
  IdentityFile /keys/two
  IdentitiesOnly yes
  ConnectTimeout 40
  UserKnownHostsFile ~/known "/with space/known"
  ProxyCommand nc -x proxy %h %p %r
Host lab-*
  HostName %h.example.org
  ProxyJump admin@gate:2022,[::1]:23
Host gate
  HostName gate.example.org
Match host secret
  User agent
Host *
  ServerAliveInterval 5
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(CONFIG)
    return tmp_path


def test_an_alias(home):
    endpoint = resolve_endpoint(resolve_device("ssh://pi4", {}))
    assert (endpoint.host, endpoint.port, endpoint.user) == ("10.0.0.7", 2222, "pi")
    assert endpoint.keys == (home / ".ssh" / "one", Path("/keys/two"))
    assert endpoint.only_these_keys
    assert endpoint.connect_timeout == 40
    assert endpoint.known_as == "[10.0.0.7]:2222"
    assert endpoint.known_hosts[:2] == (home / "known", Path("/with space/known"))
    assert numbers(endpoint.proxy_command) == "10.0.0.7 2222"
    assert endpoint.url == "ssh://pi@10.0.0.7:2222"


def test_the_inventory_wins_and_fills_the_tokens(home):
    device = Device(
        name="x", host="pi4", user="me", port=22, key="/k", known_hosts="/known",
        connect_timeout_s=15,
    )  # fmt: skip
    endpoint = resolve_endpoint(device)
    assert (endpoint.host, endpoint.port, endpoint.user) == ("10.0.0.7", 22, "me")
    assert (endpoint.keys, endpoint.known_hosts) == ((Path("/k"),), (Path("/known"),))
    assert (endpoint.known_as, endpoint.connect_timeout) == ("10.0.0.7", 15)
    assert numbers(endpoint.proxy_command) == "10.0.0.7 22"


def test_a_host_without_any_entry(home):
    endpoint = resolve_endpoint(Device(name="x", host="Plain.Example"))
    assert (endpoint.port, endpoint.user) == (22, getpass.getuser())
    assert (endpoint.known_as, endpoint.keys) == ("plain.example", ())
    assert endpoint.connect_timeout == 15
    assert endpoint.known_hosts[0] == home / ".ssh" / "known_hosts"
    assert endpoint.jump is None


def test_jump_hosts_have_entries_of_their_own(home):
    endpoint = resolve_endpoint(Device(name="x", host="lab-3"))
    assert endpoint.host == "lab-3.example.org"
    inner = endpoint.jump
    assert (inner.host, inner.port, inner.user) == ("::1", 23, getpass.getuser())
    gate = inner.jump
    assert (gate.host, gate.port, gate.user) == ("gate.example.org", 2022, "admin")
    assert gate.jump is None
    assert {endpoint.target, inner.target, gate.target} == {"x"}


def test_what_follows_an_include_belongs_to_its_own_block(home):
    (home / ".ssh" / "config").write_text("User everyone\nInclude more\nPort 99\n")
    (home / ".ssh" / "more").write_text("Host other\n  User somebody\n")
    endpoint = resolve_endpoint(Device(name="x", host="board"))
    assert (endpoint.user, endpoint.port) == ("everyone", 99)


def test_an_include_of_itself_ends(home):
    (home / ".ssh" / "config").write_text("Include config\n")
    with pytest.raises(InventoryError, match="16 files"):
        resolve_endpoint(Device(name="x", host="board"))


@pytest.mark.parametrize("field", ["host", "user"])
@pytest.mark.parametrize("line", ["ProxyCommand nc %h %p %r", 'Match exec "true %h %r"'])
def test_no_command_hides_in_a_host_or_a_user(home, field, line):
    (home / ".ssh" / "config").write_text(f"{line}\n")
    # An entry that was not made by reading one is not trusted more.
    device = Device(name="x", host="h", user="u").model_copy(
        update={field: f"$(touch {home}/made)"}
    )
    with pytest.raises(InventoryError, match="user name"):
        resolve_endpoint(device)
    assert not (home / "made").exists()


def test_what_the_users_own_config_says_is_taken_as_it_is(home):
    (home / ".ssh" / "config").write_text(
        "Host board\n  HostName %h.lab\n  User LAB\\\\me\n  ProxyCommand nc '%h' | tee $HOME/x\n"
    )
    endpoint = resolve_endpoint(Device(name="x", host="board"))
    assert (endpoint.host, endpoint.user) == ("board.lab", "LAB\\\\me")
    assert "'board.lab' | tee" in endpoint.proxy_command
