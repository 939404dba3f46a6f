"""`check` over real SSH servers: who answers, which key, which host key, and what a login prints."""

import os
import pwd
from pathlib import Path

import pytest
from ssh_servers import (
    AsyncsshOptions,
    SshServer,
    make_key,
    sftp_server,
    start_asyncssh,
    start_sshd,
)

from edgeflare.devices import CheckLine, check_device


def named(lines: list[CheckLine], name: str) -> CheckLine:
    (found,) = (line for line in lines if line.name == name)
    return found


def test_server_key_and_host_key_are_named(ssh_server: SshServer, tmp_path: Path) -> None:
    lines = check_device(ssh_server.device(cache=str(tmp_path / "cache")))
    assert all(line.ok for line in lines), lines
    assert [line.name for line in lines][:4] == ["connection", "key", "shell", "python"]
    connection = named(lines, "connection").detail.lower()
    assert f"{ssh_server.user}@127.0.0.1:{ssh_server.port}" in connection
    assert ssh_server.implementation in connection
    assert str(ssh_server.key) in named(lines, "key").detail
    assert ssh_server.fingerprint in named(lines, "key").detail
    assert named(lines, "shell").state == "ok"
    smoke = [line.detail for line in lines if line.name == "smoke inference"]
    assert len(smoke) == 2
    assert all("equals this machine's" in detail for detail in smoke)


def test_wrong_key_is_reported_though_the_server_answers(ssh_server, tmp_path) -> None:
    wrong = make_key(tmp_path / "wrong")
    connection, key = check_device(ssh_server.device(key=wrong))
    assert (connection.name, connection.state) == ("connection", "ok")
    assert (key.name, key.state) == ("key", "fix")
    assert str(wrong) in key.detail
    assert f"ssh-copy-id -p {ssh_server.port} {ssh_server.user}@127.0.0.1" in (key.fix or "")
    assert "`key`" in (key.fix or "")


def test_unknown_host_key_is_reported_with_the_command(ssh_server, tmp_path) -> None:
    empty = tmp_path / "known_hosts"
    empty.write_text("")
    connection, key = check_device(ssh_server.device(known_hosts=empty))
    assert (connection.state, key.name, key.state) == ("ok", "key", "fix")
    assert "is unknown" in key.detail
    assert f"--fingerprint {ssh_server.fingerprint}" in (key.fix or "")


@pytest.mark.extended
def test_login_by_password_is_noted(tmp_path: Path) -> None:
    with start_asyncssh(AsyncsshOptions(password="secret")) as server:
        none = tmp_path / "no-key"
        make_key(none)
        device = server.device(cache=str(tmp_path / "cache"), key=none)
        lines = check_device(device, ask=lambda _: "secret")
    key = named(lines, "key")
    assert (key.state, "with a password" in key.detail) == ("note", True)
    assert "ssh-copy-id" in (key.fix or "")


@pytest.mark.extended
@pytest.mark.sshd
def test_banner_in_bashrc_is_shown_and_survived(tmp_path: Path) -> None:
    if Path(pwd.getpwuid(os.getuid()).pw_shell).name != "bash":
        pytest.skip("the login shell is not bash")
    (tmp_path / ".bashrc").write_text("echo 'Welcome to Board OS'\necho '12 updates'\n")
    start = [f"SetEnv HOME={tmp_path}", f"Subsystem sftp {sftp_server()}"]
    with start_sshd(start) as server:
        lines = check_device(server.device(cache=str(tmp_path / "cache")))
    shell = named(lines, "shell")
    assert shell.state == "note"
    assert "OS | 12" in shell.detail
    assert "case $- in" in (shell.fix or "")
    assert all(line.ok for line in lines), lines
    assert lines[-1].name == "lease"
