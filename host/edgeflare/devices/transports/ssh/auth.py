"""Logging in: keys from files and the ssh-agent, then a password where the user can be asked."""

import base64
import binascii
import contextlib
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import paramiko

from edgeflare._internal.files import home_folder, is_open_to_others
from edgeflare._internal.text import clean_text
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.devices.transports.ssh.errors import explain
from edgeflare.errors import AuthenticationError

_MAGIC = b"openssh-key-v1\0"
_KEY_CLASSES: tuple[type[paramiko.PKey], ...] = (
    paramiko.Ed25519Key,
    paramiko.ECDSAKey,
    paramiko.RSAKey,
)


class LockedKeyError(Exception):
    """The key file needs a passphrase, or the one given is wrong."""


class UnusableKeyError(Exception):
    """The file is absent, unreadable, others may read it, or it is no private key; the text says which."""


def _load_key(path: Path, passphrase: str | None = None) -> paramiko.PKey:
    """Read a private key file, with its certificate ``PATH-cert.pub`` where there is one.

    Raises LockedKeyError, UnusableKeyError.
    """
    locked = passphrase is not None
    for kind in _KEY_CLASSES:
        try:
            key = kind.from_private_key_file(str(path), passphrase)
        except FileNotFoundError as error:
            raise UnusableKeyError("there is no such file") from error
        except UnicodeDecodeError:
            break
        except OSError as error:
            raise UnusableKeyError(f"it can't be read: {error.strerror}") from error
        except paramiko.PasswordRequiredException as error:
            _check_private(path)
            raise LockedKeyError from error
        except (paramiko.SSHException, ValueError, IndexError, TypeError):
            continue
        _check_private(path)
        certificate = path.with_name(f"{path.name}-cert.pub")
        if certificate.is_file():
            key.load_certificate(str(certificate))
        return key
    if locked:
        raise LockedKeyError
    raise UnusableKeyError("it is not a private key of kind Ed25519, ECDSA or RSA")


def _check_private(path: Path) -> None:
    """Raise UnusableKeyError for a private key that others may read: `ssh` refuses it, too."""
    if is_open_to_others(path):
        command = shlex.join(["chmod", "600", str(path)])
        raise UnusableKeyError(
            f"others on this machine may read it, so it is refused, as `ssh` does: `{command}`"
        )


def _public_blob(path: Path) -> bytes | None:
    """Return the public key that belongs to a key file, without any passphrase; None if unknown."""
    public = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
    try:
        return base64.b64decode(public.read_text().split()[1])
    except (OSError, UnicodeDecodeError, IndexError, binascii.Error):
        pass
    try:
        lines = path.read_text().splitlines()
        data = base64.b64decode("".join(lines[1:-1]), validate=True)
    except (OSError, UnicodeDecodeError, binascii.Error):
        return None
    if not data.startswith(_MAGIC):
        return None
    message = paramiko.Message(data[len(_MAGIC) :])
    for _ in ("cipher", "key derivation", "its options"):
        message.get_binary()
    message.get_int()
    return message.get_binary()


@contextlib.contextmanager
def _agent_keys() -> Iterator[tuple[paramiko.AgentKey, ...]]:
    """Yield the ssh-agent's keys, if there is an agent; usable only inside the block."""
    try:
        agent = paramiko.Agent()
    except (paramiko.SSHException, OSError):
        yield ()
        return
    try:
        yield agent.get_keys()
    finally:
        agent.close()


Ask = Callable[[str], str | None]
"""Shows a prompt and returns the hidden input; None where no user can be asked."""

TRIES = 3
_PASSWORD_PROMPT = re.compile(r"(\([^)]*\) ?|\S+'s )?password( for [^:]*)?: *", re.IGNORECASE)
"""What a server's dialogue asks a password with; no one-time password and no code."""
_PROMPT_S = 120
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


def authenticate(
    transport: paramiko.Transport,
    endpoint: Endpoint,
    ask: Ask | None,
    password: str | None = None,
) -> str:
    """Log in over a connection whose host key was checked; return the method as in `Login`.

    The key files that inventory or SSH config name come first (through the ssh-agent where it holds
    them), then, unless only those are wanted, the agent's other keys, then ~/.ssh/id_*; at last a
    password, at most three times. Where `password` is given it answers the server's questions for
    one; the user is asked all others. Raises AuthenticationError, UnreachableError, DeviceTimeoutError.
    """
    return _Login(transport, endpoint, ask, password).run()


class _Login:
    def __init__(
        self,
        transport: paramiko.Transport,
        endpoint: Endpoint,
        ask: Ask | None,
        password: str | None,
    ) -> None:
        self._transport = transport
        self._endpoint = endpoint
        self._ask = ask
        self._password = password
        self._tried: list[str] = []
        self._prompted = False
        self._who = f"{endpoint.user}@{endpoint.address}"

    def run(self) -> str:
        methods = self._methods()
        if self._transport.is_authenticated():
            return "nothing"
        if "publickey" in methods:
            with _agent_keys() as agent_keys_found:
                for key in self._keys(agent_keys_found):
                    further = self._offer(key)
                    if self._transport.is_authenticated():
                        return f"key {self._tried[-1]}"
                    if further:
                        methods = further
                        break
        elif self._endpoint.device.key is not None:
            self._tried.append(f"{self._endpoint.device.key} (the server takes no keys)")
        if not {"password", "keyboard-interactive"} & set(methods):
            raise AuthenticationError(self._refusal())
        self._log_in_by_password(methods)
        return "password"

    def _methods(self) -> Sequence[str]:
        """Ask for the authentication methods (which logs in at once where none is needed)."""
        try:
            return self._transport.auth_none(self._endpoint.user)
        except paramiko.BadAuthenticationType as error:
            return list(error.allowed_types)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self._connection_error(error) from error

    def _keys(self, agent_keys_found: Sequence[paramiko.AgentKey]) -> Iterator[paramiko.PKey]:
        """Yield the keys to offer, in order, each described in `_tried` before."""
        files = self._endpoint.keys
        only = self._endpoint.only_these_keys
        if not files:
            folder = home_folder() / ".ssh"
            files = tuple(path for name in _DEFAULT_KEYS if (path := folder / name).is_file())
        keys_by_blob = {key.asbytes(): key for key in agent_keys_found}
        named = {blob for path in files if (blob := _public_blob(path)) in keys_by_blob}
        for path in files if self._endpoint.keys else ():
            yield from self._file_key(path, keys_by_blob)
        for blob, key in keys_by_blob.items():
            if not only and (blob not in named or not self._endpoint.keys):
                self._tried.append(f"ssh-agent's {key.comment or key.fingerprint}")
                yield key
        for path in () if self._endpoint.keys else files:
            if _public_blob(path) not in keys_by_blob:
                yield from self._file_key(path, {})

    def _file_key(
        self, path: Path, agent_keys_found: dict[bytes, paramiko.AgentKey]
    ) -> Iterator[paramiko.PKey]:
        required = path == self._endpoint.device.key
        blob = _public_blob(path)
        if blob is not None and blob in agent_keys_found:
            self._tried.append(f"{path} (by ssh-agent)")
            yield agent_keys_found[blob]
            return
        try:
            key = self._unlock(path)
        except UnusableKeyError as error:
            if required:
                raise AuthenticationError(
                    f"the key {path} for {self._who} can't be used: {error}"
                ) from error
            self._tried.append(f"{path} ({error})")
        except LockedKeyError as error:
            if required:
                raise AuthenticationError(
                    f"the key {path} for {self._who} is locked by a passphrase and there is no "
                    f"terminal to ask for it; unlock it first with: ssh-add {path}"
                ) from error
            self._tried.append(f"{path} (locked; `ssh-add {path}` unlocks it)")
        else:
            self._tried.append(str(path))
            yield key

    def _unlock(self, path: Path) -> paramiko.PKey:
        """Load a key file, asking for its passphrase; LockedKeyError where no user can be asked."""
        try:
            return _load_key(path)
        except LockedKeyError:
            for _ in range(TRIES):
                passphrase = self._ask(f"Passphrase for {path}: ") if self._ask else None
                if passphrase is None:
                    raise
                try:
                    return _load_key(path, passphrase)
                except LockedKeyError:
                    continue
        raise AuthenticationError(
            f"wrong passphrase for the key {path}, {TRIES} times; "
            f"unlock it with `ssh-add {path}` and try again"
        )

    def _offer(self, key: paramiko.PKey) -> Sequence[str]:
        """Offer one key; return the further methods that the server wants, if any."""
        try:
            return self._transport.auth_publickey(self._endpoint.user, key)
        except paramiko.AuthenticationException as error:
            if not self._transport.is_active():
                raise self._connection_error(error) from error
            return ()
        except (paramiko.SSHException, EOFError, OSError) as error:
            if self._transport.is_active():
                self._tried[-1] += f" ({error})"
                return ()
            raise self._connection_error(error) from error

    def _log_in_by_password(self, methods: Sequence[str]) -> None:
        self._transport.auth_timeout = _PROMPT_S  # prompts wait for the user
        for _ in range(TRIES):
            try:
                if "password" in methods:
                    self._transport.auth_password(
                        self._endpoint.user,
                        self._prompt(f"{self._who}'s password: ", self._password),
                        fallback=False,
                    )
                else:
                    self._transport.auth_interactive(self._endpoint.user, self._answer)
            except paramiko.AuthenticationException as error:
                if not self._transport.is_active():
                    raise self._connection_error(error, "password") from error
            except (paramiko.SSHException, EOFError, OSError) as error:
                raise self._connection_error(error, "password") from error
            if self._transport.is_authenticated():
                return
            if not self._prompted:  # the server asked nothing
                raise AuthenticationError(self._refusal())
        raise AuthenticationError(
            f"wrong password for {self._who}, {TRIES} times; check the user name and the password, "
            f"or set up a key with: {self._endpoint.key_command}"
        )

    def _answer(
        self, title: str, instructions: str, fields: Sequence[tuple[str, bool]]
    ) -> list[str]:
        del title, instructions
        return [
            self._prompt(
                f"{self._who}: {clean_text(prompt, LONGEST_LINE)}",
                self._password if _PASSWORD_PROMPT.fullmatch(prompt) and not echo else None,
            )
            for prompt, echo in fields
        ]

    def _prompt(self, prompt: str, answer: str | None) -> str:
        """Return the answer, from the user where none is given. Raises AuthenticationError."""
        if answer is None and self._ask is not None:
            answer = self._ask(prompt)
        if answer is None:
            raise AuthenticationError(
                f"{self._refusal()}; or run from a terminal, where a password can be asked"
            )
        self._prompted = True
        return answer

    def _refusal(self) -> str:
        tried = ", ".join(self._tried)
        keys = f"refused these keys: {tried}" if tried else "wants a key, and none was found here"
        return (
            f"{self._who} {keys}; name the right one as `key` in the inventory or with IdentityFile in "
            f"~/.ssh/config, or set one up with: {self._endpoint.key_command}"
        )

    def _connection_error(self, error: Exception, after: str = "") -> Exception:
        """Return the error for a connection that ended while logging in."""
        if isinstance(error, paramiko.AuthenticationException | EOFError) and "timeout" not in str(
            error
        ):
            tried = ", ".join(self._tried + ([after] if after else []))
            return AuthenticationError(
                f"{self._endpoint.address} closed the connection while {self._endpoint.user} logged in"
                + (f", after {tried}" if tried else "")
                + "; where the ssh-agent holds many keys, name the right one as `key` in the inventory "
                "or with IdentityFile and IdentitiesOnly in ~/.ssh/config"
            )
        return explain(error, self._endpoint)
