"""The databases that the user has named on this host: no other one is connected to.

A folder's pointer may be anybody's, and a database may ask for the user's password.
"""

import shlex
import threading
from pathlib import Path

from edgeflare._internal.files import make_folder, state_folder
from edgeflare.errors import HostError, StoreError
from edgeflare.store.location import POINTER_NAME

_FILE = "databases"
_added: set[str] = set()  # of this process, where the list can't be written
_adding = threading.Lock()


def add_database(url: str) -> None:
    """Note that the user has named a database, by its URL without a password."""
    with _adding:
        if url in _added:
            return
        _added.add(url)
        if url in _listed():
            return
        try:
            path = _path()
            make_folder(path.parent)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{url}\n")
        except (OSError, HostError):  # a read-only disk, or no home: this process knows it
            return


def check_database_known(url: str, address: str) -> None:
    """Raise StoreError unless the user has named a database; `address` is that of a folder's data."""
    if url not in _added and url not in _listed():
        raise StoreError(
            f"the database {url}, which a {POINTER_NAME} names, has not been used on this host by you: "
            f"if you trust it, name the campaign by its address once: edgeflare show {shlex.quote(address)}"
        )


def _path() -> Path:
    return state_folder() / _FILE


def _listed() -> set[str]:
    try:
        return set(_path().read_text(encoding="utf-8", errors="replace").splitlines())
    except (OSError, HostError):
        return set()
