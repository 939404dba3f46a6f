"""Logging in: keys, passphrases, the ssh-agent and passwords."""

import os
import subprocess
from pathlib import Path

import pytest
from ssh_servers import AsyncsshOptions, make_key, start_asyncssh, start_sshd

from edgeflare.devices.transports.ssh.transport import SshTransport
from edgeflare.errors import AuthenticationError


def answer(device, ask=None, password=None):
    transport = SshTransport.connect(device, ask=ask, password=password)
    try:
        return transport.run(["-c", "print(42)"], timeout=30).stdout
    finally:
        transport.close()


class User:
    """Types the answers given, one a prompt."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        return self.answers.pop(0) if self.answers else None


@pytest.fixture(scope="module")
def rsa_key(tmp_path_factory):
    """A key whose making takes a second."""
    return make_key(tmp_path_factory.mktemp("keys") / "rsa", kind="rsa")


@pytest.fixture(params=["", "PEM"])
def locked_key(request, ssh_server, rsa_key, tmp_path):
    """The server's key in a file locked by the passphrase "open sesame"."""
    path = tmp_path / "locked"
    path.write_bytes(ssh_server.key.read_bytes())
    path.chmod(0o600)
    if request.param:
        path.write_bytes(rsa_key.read_bytes())
        public = Path(f"{rsa_key}.pub").read_text()
        accepted = ssh_server.folder / "authorized_keys"
        accepted.write_text(accepted.read_text() + public)
    change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(path)]
    change += ["-m", request.param] if request.param else []
    subprocess.run(change, check=True, capture_output=True)
    return path


@pytest.fixture
def agent(monkeypatch, tmp_path):
    """A running ssh-agent; gives a function that puts a key into it."""
    run = ["ssh-agent", "-D", "-a", str(tmp_path / "agent")]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    yield lambda key: subprocess.run(["ssh-add", "-q", str(key)], check=True, env=os.environ)
    process.terminate()
    process.wait()
    process.stdout.close()


def test_a_key_that_is_refused_is_named_with_user_and_remedy(ssh_server, tmp_path):
    key = make_key(tmp_path / "wrong")
    with pytest.raises(AuthenticationError) as caught:
        SshTransport.connect(ssh_server.device(key=key))
    text = str(caught.value)
    assert f"{ssh_server.user}@127.0.0.1:{ssh_server.port} refused" in text
    assert f"ssh-copy-id -p {ssh_server.port} {ssh_server.user}@127.0.0.1" in text


def test_a_key_file_that_is_missing_or_no_key(ssh_server, tmp_path):
    with pytest.raises(AuthenticationError, match="absent for"):
        SshTransport.connect(ssh_server.device(key=tmp_path / "absent"))
    for content in (b"", b"not a key\n", b"\xff\xfe\x00", ssh_server.key.read_bytes()[:200]):
        (tmp_path / "junk").write_bytes(content)
        with pytest.raises(AuthenticationError, match="private key"):
            SshTransport.connect(ssh_server.device(key=tmp_path / "junk"))


def test_a_locked_key_opens_with_the_passphrase(ssh_server, locked_key):
    user = User("wrong", "open sesame")
    assert answer(ssh_server.device(key=locked_key), user) == b"42\n"
    assert user.prompts == [f"Passphrase for {locked_key}: "] * 2


def test_a_locked_key_without_a_terminal(ssh_server, locked_key):
    for nobody in (None, User()):
        with pytest.raises(AuthenticationError, match=f"ssh-add {locked_key}"):
            SshTransport.connect(ssh_server.device(key=locked_key), ask=nobody)


def test_a_wrong_passphrase_is_asked_for_three_times(ssh_server, locked_key):
    user = User("a", "b", "c", "open sesame")
    with pytest.raises(AuthenticationError, match="3 times"):
        SshTransport.connect(ssh_server.device(key=locked_key), ask=user)
    assert len(user.prompts) == 3


def test_the_agent_holds_the_key_of_a_locked_file(ssh_server, locked_key, agent):
    agent(ssh_server.key)
    locked_key.with_name("locked.pub").write_text(Path(f"{ssh_server.key}.pub").read_text())
    assert answer(ssh_server.device(key=locked_key)) == b"42\n"


def test_the_agents_keys_are_tried_where_none_is_named(ssh_server, agent, tmp_path):
    agent(make_key(tmp_path / "other"))
    agent(ssh_server.key)
    device = ssh_server.device().model_copy(update={"key": None})
    assert answer(device) == b"42\n"


def test_only_the_named_key_is_tried(ssh_server, agent, tmp_path):
    agent(ssh_server.key)
    with pytest.raises(AuthenticationError, match=r"keys: [^,]*/wrong"):
        SshTransport.connect(ssh_server.device(key=make_key(tmp_path / "wrong")))


def test_the_users_default_keys_are_tried(ssh_server, tmp_path):
    folder = tmp_path / "home" / ".ssh"
    folder.mkdir()
    make_key(folder / "id_rsa", "secret", kind="rsa")
    device = ssh_server.device().model_copy(update={"key": None})
    with pytest.raises(AuthenticationError, match=r"`ssh-add .*id_rsa`"):
        SshTransport.connect(device)
    (folder / "id_ed25519").write_bytes(ssh_server.key.read_bytes())
    (folder / "id_ed25519").chmod(0o600)
    assert answer(device) == b"42\n"


def test_a_key_that_others_may_read_is_refused_as_ssh_does(ssh_server, tmp_path):
    key = tmp_path / "home" / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    key.write_bytes(ssh_server.key.read_bytes())
    key.chmod(0o640)
    for device in (
        ssh_server.device(key=key),
        ssh_server.device().model_copy(update={"key": None}),
    ):
        with pytest.raises(AuthenticationError, match="`chmod 600"):
            SshTransport.connect(device)
    key.chmod(0o600)
    assert answer(ssh_server.device(key=key)) == b"42\n"


@pytest.mark.sshd
def test_a_server_that_closes_after_too_many_keys(agent, tmp_path):
    with start_sshd(["MaxAuthTries 2"]) as server:
        for number in range(4):
            agent(make_key(tmp_path / f"key{number}"))
        device = server.device().model_copy(update={"key": None})
        with pytest.raises(AuthenticationError, match=r"(?s)closed the connection.*IdentitiesOnly"):
            SshTransport.connect(device)


@pytest.fixture(params=["password", "dialogue"])
def password_server(request):
    options = AsyncsshOptions(password="swörd", interactive=request.param == "dialogue", keys=False)
    with start_asyncssh(options) as server:
        yield server


def test_a_password_is_asked_for(password_server):
    user = User("wrong", "swörd")
    assert answer(password_server.device(), user) == b"42\n"
    assert len(user.prompts) == 2
    assert all(f"{password_server.user}@127.0.0.1" in prompt for prompt in user.prompts)


def test_a_known_password_is_not_asked_for(password_server):
    user = User()
    assert answer(password_server.device(), user, "swörd") == b"42\n"
    assert user.prompts == []


@pytest.mark.parametrize("prompt", ["Verification code: ", "One-time password (OATH) for `root': "])
def test_a_known_password_answers_no_other_question(prompt):
    user = User("123456")
    options = AsyncsshOptions(password="123456", interactive=True, prompt=prompt, keys=False)
    with start_asyncssh(options) as server:
        assert answer(server.device(), user, "swörd") == b"42\n"
    assert len(user.prompts) == 1


def test_a_wrong_password_is_asked_for_three_times(password_server):
    user = User("a", "b", "c", "swörd")
    with pytest.raises(AuthenticationError, match="3 times"):
        SshTransport.connect(password_server.device(), ask=user)
    assert len(user.prompts) == 3


def test_a_password_without_a_terminal(password_server):
    for nobody in (None, User()):
        with pytest.raises(AuthenticationError, match="a terminal"):
            SshTransport.connect(password_server.device(), ask=nobody)


@pytest.mark.sshd
@pytest.mark.parametrize("named", [True, False])
def test_a_server_that_asks_for_no_password_is_not_told_a_wrong_one(named, tmp_path):
    key = make_key(tmp_path / "wrong")
    with start_sshd(["KbdInteractiveAuthentication yes", "UsePAM no"]) as server:
        for user in (None, User("secret")):
            with pytest.raises(AuthenticationError) as caught:
                SshTransport.connect(server.device(key=key if named else None), ask=user)
            wanted = (
                f"refused these keys: {key};" if named else "wants a key, and none was found here;"
            )
            assert wanted in str(caught.value)
            assert "as `key`" in str(caught.value)
