"""Facts of an open SSH connection: the server, and how the user was authenticated."""

from typing import NamedTuple


class Login(NamedTuple):
    """One login. `address` is ``host:port``, `server` the server's software as it names itself.

    `by` says how the user got in: ``key /home/a/.ssh/id_ed25519``, ``password`` or ``nothing`` where
    the server asked for neither; `host_key` is the trusted key's type and fingerprint;
    `key_command` sets a key up.
    """

    address: str
    user: str
    server: str
    by: str
    host_key: str
    key_command: str
