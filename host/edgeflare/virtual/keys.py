"""A board's own SSH keys, made here and nowhere else: the user's and the board's."""

from pathlib import Path
from typing import NamedTuple

from edgeflare._internal.files import write_whole

USER_KEY = "id_ed25519"
"""The user's private key, in the board's folder."""


class Keys(NamedTuple):
    """What the board is given: the user's public key, and its own."""

    authorized: str
    host_key: bytes
    host_public: str


def board_keys(folder: Path) -> Keys:
    """Return the keys of the board in this folder; makes them where they are not there."""
    user_key, host_key = folder / USER_KEY, folder / "host_key"
    for path in (user_key, host_key):
        if not path.is_file():
            write_whole(path, _new_key(), private=True)
    return Keys(_public(user_key), host_key.read_bytes(), _public(host_key))


def _new_key() -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )


def _public(path: Path) -> str:
    from paramiko import Ed25519Key

    key = Ed25519Key.from_private_key_file(str(path))
    return f"{key.get_name()} {key.get_base64()}"
