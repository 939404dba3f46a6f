"""Host keys: always checked, refused with the command that trusts them, trusted on demand."""

import stat
import subprocess

import pytest
from ssh_servers import fingerprint_of, known_line, make_key, start_sshd

from edgeflare.devices.transports.ssh.transport import SshTransport
from edgeflare.devices.transports.ssh.trust import HostKey, fetch_host_key, trust_host_key
from edgeflare.errors import HostKeyError


def answer(device):
    transport = SshTransport.connect(device)
    try:
        return transport.run(["-c", "print(42)"], timeout=30).stdout
    finally:
        transport.close()


def test_an_unknown_key_is_refused_with_the_command_that_trusts_it(ssh_server, tmp_path):
    device = ssh_server.device(known_hosts=tmp_path / "known")
    with pytest.raises(HostKeyError) as caught:
        SshTransport.connect(device)
    command = f"edgeflare devices trust {ssh_server.url} --fingerprint {ssh_server.fingerprint}"
    assert str(caught.value).endswith(command)
    assert not (tmp_path / "known").exists()


def test_an_inventory_device_is_trusted_by_its_name(ssh_server, tmp_path):
    device = ssh_server.device(name="pi4", known_hosts=tmp_path / "known")
    with pytest.raises(HostKeyError, match="pi4 --fingerprint"):
        SshTransport.connect(device)


def test_trust_then_connect(ssh_server, tmp_path):
    known = tmp_path / "new" / "known_hosts"
    device = ssh_server.device(known_hosts=known)
    key = fetch_host_key(device)
    assert key == HostKey(ssh_server.host, ssh_server.port, "ssh-ed25519", ssh_server.fingerprint)
    assert trust_host_key(device, key.fingerprint) == known
    assert answer(device) == b"42\n"
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    assert stat.S_IMODE(known.parent.stat().st_mode) == 0o700
    assert known.read_text() == known_line(ssh_server.host, ssh_server.port, ssh_server.host_key)
    trust_host_key(device, key.fingerprint)
    assert len(known.read_text().splitlines()) == 1


def test_trust_writes_to_the_users_own_known_hosts_by_default(asyncssh_server, tmp_path):
    device = asyncssh_server.device().model_copy(update={"known_hosts": None})
    assert (
        trust_host_key(device, asyncssh_server.fingerprint)
        == tmp_path / "home" / ".ssh" / "known_hosts"
    )
    assert answer(device) == b"42\n"


def test_trust_keeps_what_the_file_holds_and_ends_its_last_line(asyncssh_server, tmp_path):
    known = tmp_path / "known"
    before = "# mine\nother ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="
    known.write_text(before)
    device = asyncssh_server.device(known_hosts=known)
    trust_host_key(device, asyncssh_server.fingerprint)
    added = known_line(asyncssh_server.host, asyncssh_server.port, asyncssh_server.host_key)
    assert known.read_text() == f"{before}\n{added}"


def test_trust_refuses_another_fingerprint(ssh_server, tmp_path):
    other = fingerprint_of(make_key(tmp_path / "other"))
    device = ssh_server.device(known_hosts=tmp_path / "known")
    with pytest.raises(HostKeyError, match=f"trusted.*{ssh_server.port} presents"):
        trust_host_key(device, other)
    assert not (tmp_path / "known").exists()


def test_a_changed_key_names_file_and_line_and_is_not_trusted_over(ssh_server, tmp_path):
    other = make_key(tmp_path / "other")
    known = tmp_path / "known"
    known.write_text("# comment\n" + known_line(ssh_server.host, ssh_server.port, other))
    device = ssh_server.device(known_hosts=known)
    for attempt in (
        SshTransport.connect,
        lambda device: trust_host_key(device, ssh_server.fingerprint),
    ):
        with pytest.raises(HostKeyError) as caught:
            attempt(device)
        text = str(caught.value)
        assert f"{known}, line 2" in text
        assert fingerprint_of(other) in text
        assert f"ssh-keygen -R '[{ssh_server.host}]:{ssh_server.port}'" in text
    assert len(known.read_text().splitlines()) == 2


def test_a_revoked_key_is_refused(ssh_server, tmp_path):
    line = known_line(ssh_server.host, ssh_server.port, ssh_server.host_key)
    known = tmp_path / "known"
    known.write_text(f"{line}@revoked * {line.partition(' ')[2]}")
    device = ssh_server.device(known_hosts=known)
    with pytest.raises(HostKeyError, match="line 2"):
        SshTransport.connect(device)
    with pytest.raises(HostKeyError, match="as revoked"):
        trust_host_key(device, ssh_server.fingerprint)


def test_hashed_names_are_recognised(ssh_server, tmp_path):
    known = tmp_path / "known"
    known.write_text(known_line(ssh_server.host, ssh_server.port, ssh_server.host_key))
    subprocess.run(["ssh-keygen", "-H", "-f", str(known)], check=True, capture_output=True)
    assert known.read_text().startswith("|1|")
    assert answer(ssh_server.device(known_hosts=known)) == b"42\n"


@pytest.mark.sshd
@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_the_kind_of_key_that_is_known_is_asked_for(tmp_path, kind):
    other = make_key(tmp_path / "other", kind=kind)
    with start_sshd([f"HostKey {other}"]) as server:
        (tmp_path / "known").write_text(known_line(server.host, server.port, other))
        device = server.device(known_hosts=tmp_path / "known")
        assert answer(device) == b"42\n"
        assert fetch_host_key(device).fingerprint == fingerprint_of(other)
