"""Private keys for logging in: files, and what the ssh-agent holds."""

import base64
import binascii
import contextlib
from collections.abc import Iterator
from pathlib import Path

import paramiko

_MAGIC = b"openssh-key-v1\0"
_KINDS: tuple[type[paramiko.PKey], ...] = (
    paramiko.Ed25519Key,
    paramiko.ECDSAKey,
    paramiko.RSAKey,
)


class LockedKeyError(Exception):
    """The key file needs a passphrase, or the one given is wrong."""


class UnusableKeyError(Exception):
    """The file is absent, unreadable or no private key; the text says which."""


def load_key(path: Path, passphrase: str | None = None) -> paramiko.PKey:
    """Read a private key file, with its certificate ``PATH-cert.pub`` where there is one.

    Raises LockedKeyError, UnusableKeyError.
    """
    locked = passphrase is not None
    for kind in _KINDS:
        try:
            key = kind.from_private_key_file(str(path), passphrase)
        except FileNotFoundError as error:
            raise UnusableKeyError("there is no such file") from error
        except UnicodeDecodeError:
            break
        except OSError as error:
            raise UnusableKeyError(f"it can't be read: {error.strerror}") from error
        except paramiko.PasswordRequiredException as error:
            raise LockedKeyError from error
        except (paramiko.SSHException, ValueError, IndexError, TypeError):
            continue
        certificate = path.with_name(f"{path.name}-cert.pub")
        if certificate.is_file():
            key.load_certificate(str(certificate))
        return key
    if locked:
        raise LockedKeyError
    raise UnusableKeyError("it is not a private key of kind Ed25519, ECDSA or RSA")


def public_blob(path: Path) -> bytes | None:
    """Return the public key that belongs to a key file, without any passphrase; None if unknown."""
    beside = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
    try:
        return base64.b64decode(beside.read_text().split()[1])
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
def agent_keys() -> Iterator[tuple[paramiko.AgentKey, ...]]:
    """Give the ssh-agent's keys, none where no agent runs; they sign only inside the block."""
    try:
        agent = paramiko.Agent()
    except (paramiko.SSHException, OSError):
        yield ()
        return
    try:
        yield agent.get_keys()
    finally:
        agent.close()
