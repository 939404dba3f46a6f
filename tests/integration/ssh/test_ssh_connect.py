"""Ways to a device: ~/.ssh/config, jump hosts, proxy commands, IPv6; and what goes wrong on them."""

import contextlib
import socket
import sys
import threading

import paramiko
import pytest
from ssh_servers import free_port, has_ipv6, known_line, make_key, start_asyncssh

from edgeflare.devices.inventory import Device, resolve_device
from edgeflare.devices.transports.ssh.transport import SshTransport
from edgeflare.devices.transports.ssh.trust import fetch_host_key, trust_host_key
from edgeflare.errors import DeviceTimeoutError, HostKeyError, InventoryError, UnreachableError


def answer(device):
    transport = SshTransport.connect(device)
    try:
        return transport.run(["-c", "print(42)"], timeout=30).stdout
    finally:
        transport.close()


def entry(server, name, **more):
    """A Host block of an SSH config for this server."""
    options = {
        "HostName": server.host, "Port": server.port, "User": server.user,
        "IdentityFile": server.key, "IdentitiesOnly": "yes",
        "UserKnownHostsFile": server.known_hosts, **more,
    }  # fmt: skip
    return f"Host {name}\n" + "".join(f"  {k} {v}\n" for k, v in options.items() if v is not None)


def alias(name, config):
    return Device(name=name, host=name, python=sys.executable, ssh_config=config)


def test_an_alias_of_the_ssh_config(ssh_server, tmp_path):
    config = tmp_path / "config"
    config.write_text(entry(ssh_server, "pi4"))
    assert answer(alias("pi4", config)) == b"42\n"


def test_the_users_own_config_and_its_includes_are_read(asyncssh_server, tmp_path):
    folder = tmp_path / "home" / ".ssh"
    (folder / "conf.d").mkdir(parents=True)
    (folder / "config").write_text("Include conf.d/*\n\nHost *\n  ConnectTimeout 20\n")
    (folder / "conf.d" / "boards").write_text(entry(asyncssh_server, "pi4"))
    device = resolve_device("ssh://pi4", {}).model_copy(update={"python": sys.executable})
    assert answer(device) == b"42\n"


def test_fields_of_the_inventory_win_over_the_config(ssh_server, tmp_path):
    config = tmp_path / "config"
    wrong = {"Port": 1, "User": "nobody", "IdentityFile": "/nowhere", "UserKnownHostsFile": "/none"}
    config.write_text(entry(ssh_server, "pi4", **wrong))
    assert answer(ssh_server.device(name="pi4", host="pi4", ssh_config=config)) == b"42\n"


def test_a_host_key_alias_names_the_key(ssh_server, tmp_path):
    known, config = tmp_path / "known", tmp_path / "config"
    line = known_line("x", 1, ssh_server.host_key)
    known.write_text(f"board-7 {line.partition(' ')[2]}")
    changes = {"HostKeyAlias": "board-7", "UserKnownHostsFile": known}
    config.write_text(entry(ssh_server, "pi4", **changes))
    assert answer(alias("pi4", config)) == b"42\n"


def test_a_chain_of_jump_hosts_and_each_key_is_checked(ssh_server, tmp_path):
    known, config = tmp_path / "known", tmp_path / "config"
    known.touch()
    names = ("gate", "inner", "board")
    own = {name: {"HostKeyAlias": name, "UserKnownHostsFile": known} for name in names}
    own["board"]["ProxyJump"] = "gate,inner"
    config.write_text("".join(entry(ssh_server, name, **own[name]) for name in names))
    device = alias("board", config)
    for name in names:
        with pytest.raises(HostKeyError, match="board --fingerprint"):
            SshTransport.connect(device)
        trust_host_key(device, fetch_host_key(device).fingerprint)
        assert known.read_text().splitlines()[-1].startswith(f"{name} ")
    assert answer(device) == b"42\n"


def test_a_jump_host_that_cannot_reach_the_device_is_named(ssh_server, tmp_path):
    config = tmp_path / "config"
    config.write_text(
        entry(ssh_server, "gate")
        + entry(ssh_server, "board", ProxyJump="gate", HostName="127.0.0.1", Port=free_port())
    )
    with pytest.raises(UnreachableError, match=f"host 127.0.0.1:{ssh_server.port}"):
        SshTransport.connect(alias("board", config))


def test_jump_hosts_in_a_circle_are_refused(ssh_server, tmp_path):
    config = tmp_path / "config"
    config.write_text(entry(ssh_server, "a", ProxyJump="b") + entry(ssh_server, "b", ProxyJump="a"))
    with pytest.raises(InventoryError, match="over 8"):
        SshTransport.connect(alias("a", config))


RELAY = """
import os, socket, sys, threading
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536): link.sendall(data)
    os._exit(0)
threading.Thread(target=up, daemon=True).start()
while data := link.recv(65536): os.write(1, data)
"""


def test_a_proxy_command_carries_the_connection(ssh_server, tmp_path):
    relay, config = tmp_path / "relay.py", tmp_path / "config"
    relay.write_text(RELAY)
    command = f"{sys.executable} {relay} %h %p"
    config.write_text(entry(ssh_server, "pi4", ProxyCommand=command))
    assert answer(alias("pi4", config)) == b"42\n"


def test_a_proxy_command_that_ends_is_no_endless_wait(ssh_server, tmp_path):
    config = tmp_path / "config"
    config.write_text(entry(ssh_server, "pi4", ProxyCommand="exit 1"))
    with pytest.raises(UnreachableError):
        SshTransport.connect(alias("pi4", config))


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
def test_ipv6(ssh_server):
    device = resolve_device(f"ssh://{ssh_server.user}@[::1]:{ssh_server.port}", {})
    fields = ("key", "python", "known_hosts", "ssh_config")
    known = {field: getattr(ssh_server.device(), field) for field in fields}
    assert answer(device.model_copy(update=known)) == b"42\n"


def test_a_port_where_nobody_listens(ssh_server):
    with pytest.raises(UnreachableError, match="SSH server"):
        SshTransport.connect(ssh_server.device(port=free_port()))


def test_a_name_that_is_not_known(ssh_server):
    with pytest.raises(UnreachableError, match=r"'no-such-host\.invalid'"):
        SshTransport.connect(ssh_server.device(host="no-such-host.invalid"))


@pytest.fixture
def talker():
    """A server that is not SSH: says what it is given, then waits for the client to go."""
    listener = socket.create_server(("127.0.0.1", 0))
    greeting = []

    def serve():
        link, _ = listener.accept()
        with link, contextlib.suppress(ConnectionResetError):
            link.sendall(greeting[0])
            while link.recv(1024):
                pass

    def start(text):
        greeting.append(text)
        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    yield start
    listener.close()


def test_a_port_that_is_not_ssh(asyncssh_server, talker):
    port = talker(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)
    with pytest.raises(UnreachableError, match="SSH server"):
        SshTransport.connect(asyncssh_server.device(port=port, connect_timeout_s=5))


def test_a_port_that_stays_silent(asyncssh_server, talker):
    with pytest.raises(DeviceTimeoutError, match="from 127"):
        SshTransport.connect(asyncssh_server.device(port=talker(b""), connect_timeout_s=0.5))


def test_a_server_that_hangs_after_its_banner(asyncssh_server, talker):
    port = talker(b"SSH-2.0-stuck\r\n")
    with pytest.raises(DeviceTimeoutError, match="from 127"):
        SshTransport.connect(asyncssh_server.device(port=port, connect_timeout_s=0.5))


def test_a_config_that_makes_no_sense_is_named(ssh_server, tmp_path):
    config = tmp_path / "config"
    config.write_text("Host pi4\n  Port twenty\n")
    with pytest.raises(InventoryError, match="Port 'twenty'"):
        SshTransport.connect(alias("pi4", config))
    config.write_text("Host 'pi4\n")
    with pytest.raises(InventoryError, match="sense: Unparsable"):
        SshTransport.connect(alias("pi4", config))
    with pytest.raises(InventoryError, match="SSH config"):
        SshTransport.connect(alias("pi4", tmp_path / "absent"))


def test_connecting_again_after_the_server_came_back():
    with start_asyncssh() as server:
        assert answer(server.device()) == b"42\n"
        server.kill()
        assert answer(server.device()) == b"42\n"


def test_no_key_is_offered_to_a_server_that_is_not_trusted(ssh_server, tmp_path):
    asked = []
    key = make_key(tmp_path / "locked", "secret")
    device = ssh_server.device(known_hosts=tmp_path / "known", key=key)
    with pytest.raises(HostKeyError):
        SshTransport.connect(device, ask=asked.append)
    assert asked == []


def test_quick_cipher_is_offered_first_and_none_that_paramiko_would_not_offer(ssh_server):
    transport = SshTransport.connect(ssh_server.device())
    connected = transport._connection.transport
    offered = connected.get_security_options().ciphers
    assert sorted(offered) == sorted(paramiko.Transport._preferred_ciphers)
    assert connected.local_cipher == connected.remote_cipher == "aes128-gcm@openssh.com"
    transport.close()
