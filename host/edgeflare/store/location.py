"""Where the data of a folder is: in a file of its own, or in a schema of a PostgreSQL database.

Such a folder has a pointer, the file `store.json`, in place of a database file; one beside that
file says only where the samples are.
"""

import hashlib
import json
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from edgeflare._internal.files import cache_folder, read_regular, write_durably
from edgeflare._internal.text import reason
from edgeflare.errors import HostError, StoreError
from edgeflare.store.documents import read_json, validated

DATABASE_NAME = "campaign.sqlite"
CORPUS_NAME = "corpus.sqlite"
POINTER_NAME = "store.json"

Kind: TypeAlias = Literal["campaign", "corpus", "history"]

_SCHEME = "postgresql"
_EXAMPLE = "postgresql://user@host/database"
_ADDRESS = re.compile(rf"{_SCHEME}:/{{1,3}}")
_LONGEST = 63
"""Bytes of a name in PostgreSQL."""
LONGEST_NAME = 35
"""Bytes of the name of a new campaign's folder, so that there is room for its parts' behind it."""
_DIGITS = 8
_MOST_BYTES = 1 << 20
_OTHERS = re.compile(r"[^A-Za-z0-9._/-]")


class Location(NamedTuple):
    """The place of a folder's data on a database server, or of its samples alone.

    `url` names the database, without a password, `name` the schema with the tables; `url` is ""
    where the database is a file of the folder. `samples` is where the samples are: a folder, or the
    URL of a prefix in an object store; None: `samples` in the folder itself.
    """

    kind: Kind
    url: str
    name: str
    samples: str | None = None

    @property
    def address(self) -> str:
        """The text that names this place on any host, `.../database/NAME`."""
        return address_of(make_url(self.url), self.name)


_PARAMETERS = frozenset(
    {
        *("host", "port", "service", "connect_timeout", "application_name"),
        *("target_session_attrs", "channel_binding", "gssencmode", "require_auth"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslnegotiation"),
        *("ssl_min_protocol_version", "tcp_user_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""The parameters of libpq that a URL may state: none that names a file of passwords or runs SQL."""


def database_url(text: str) -> str:
    """Return the URL of a database as it is stored. Raises StoreError for any other text."""
    url = _parsed(text)
    if "/" in (url.database or ""):
        raise StoreError(
            f"{text} names something in a database; name the database alone, such as {_EXAMPLE}"
        )
    return url.render_as_string()


def split_address(text: str) -> tuple[str, str]:
    """Return a database's URL and the schema's name. Raises StoreError for any other text."""
    url = _parsed(text)
    database, _, name = (url.database or "").partition("/")
    if not name.strip("/"):
        raise StoreError(
            f"{text} names a database, not a campaign in it; add its name: {_EXAMPLE}/NAME"
        )
    return url.set(database=database).render_as_string(), name.strip("/")


def is_address(text: str | os.PathLike[str]) -> bool:
    """Whether a text names a place in a PostgreSQL database; a path, too, that was made of it."""
    return _ADDRESS.match(os.fspath(text)) is not None


def address_of(url: URL, name: str) -> str:
    """Return the address of a schema."""
    return url.set(database=f"{url.database}/{name}").render_as_string()


def _parsed(text: str) -> URL:
    if text.startswith(f"{_SCHEME}:/") and not text.startswith(f"{_SCHEME}://"):  # from a Path
        text = text.replace(":/", "://", 1)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise StoreError(  # without the text, which may have a password
            f"what is stated is not the URL of a database; write it as {_EXAMPLE}"
        ) from error
    shown = url.render_as_string()  # with *** for a password
    if url.drivername != _SCHEME:
        raise StoreError(
            f"{shown} is not a PostgreSQL database, the only kind that can be used beside SQLite in "
            f"the folder; write it as {_EXAMPLE}"
        )
    if url.password is not None or "password" in url.query:
        raise StoreError(
            f"the URL of the database {url.database} has a password, which would be stored and "
            "shown: leave it out, and state it in ~/.pgpass, PGPASSWORD or a service file"
        )
    if unknown := sorted(set(url.query) - _PARAMETERS):
        raise StoreError(
            f"the URL of the database {url.database} has {', '.join(unknown)}, which it can't have; "
            f"check the URL's parameters: there may be {', '.join(sorted(_PARAMETERS))}"
        )
    if not (url.database or "").partition("/")[0]:
        raise StoreError(f"{shown} names no database; write it as {_EXAMPLE}")
    return url


def schema_name(folder: Path, url: str) -> str:
    """Return the name of the schema for the data of a folder.

    It is the folder's own, behind that of a folder around it which is in the same database: a
    campaign's control is `NAME/control`.
    """
    folder = folder.absolute()
    head, name = "", folder.name
    for parent in folder.parents:
        around = _around(parent)
        if around is not None and around.url == url:
            head, name = f"{around.name}/", folder.relative_to(parent).as_posix()
            break
    name = _OTHERS.sub("_", name)
    if url and not head and len(name) > LONGEST_NAME:
        raise StoreError(
            f"the name of the folder {folder} has {len(name)} characters, which is too long for "
            f"data in a database: choose a folder whose name has {LONGEST_NAME} at most"
        )
    if not head and name.startswith("pg_"):  # PostgreSQL's own
        name = f"_{name}"
    return _shortened(head + name)


def _shortened(name: str) -> str:
    """Return a name that PostgreSQL takes; a hash tells apart those that begin alike."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST - _DIGITS - 1].rstrip('/.')}-{digest}"


def deletion_text(folder: Path) -> str:
    """Return what is to be deleted so that a folder's data is gone, to follow "delete"."""
    for around in (folder, *folder.parents):
        found = _around(around)
        if found is not None and found.url:
            name = found.name if around == folder else schema_name(folder, found.url)
            return f"{folder} and, in the database {found.url}, the schemas {name} and {name}/..."
    return str(folder)


def _around(folder: Path) -> Location | None:
    """Return the pointer of a folder around another one; what can't be read is another program's."""
    try:
        return _pointer(folder)
    except StoreError:
        return None


def is_schema_name(name: str) -> bool:
    """Whether `schema_name` may have made a name; it is the path of a folder below others, too."""
    return _OTHERS.search(name) is None and set(name.split("/")).isdisjoint(("", ".", ".."))


def samples_below(samples: str, name: str) -> str:
    """Return a new place of one campaign's or corpus' own below a stated place of many.

    `samples` is a folder's absolute path or a URL, `name` that of the `schema_name`. Eight digits, drawn at random,
    tell apart what has one name in several databases or hosts.
    """
    return f"{samples.rstrip('/')}/{name}-{uuid.uuid4().hex[:_DIGITS]}"


def is_drawn(samples: str) -> bool:
    """Whether a place of samples has a name that `samples_below` made: it is of one folder alone."""
    return re.fullmatch(rf".*/[^/]+-[0-9a-f]{{{_DIGITS}}}", samples) is not None


def read_pointer(folder: Path) -> Location | None:
    """Return where a folder's database is; None: in the folder. Raises StoreError where it's damaged."""
    found = _pointer(folder)
    return found if found is not None and found.url else None


def stated_samples(folder: Path) -> str | None:
    """Return where a folder's samples are; None: in the folder. Raises StoreError where it's damaged."""
    found = _pointer(folder)
    return None if found is None else found.samples


def _pointer(folder: Path) -> Location | None:
    path = folder / POINTER_NAME
    try:
        content = read_json(read_regular(path, _MOST_BYTES, inside=folder))
        if not isinstance(content, dict) or not content.keys() >= {"kind", "url", "name"}:
            return None  # another program's
        found: Location = validated(Location, content)
        if not is_schema_name(found.name):
            raise ValueError(f"{found.name!r} is not the name of a campaign")  # noqa: TRY301
        if found.url or found.samples is None:
            database_url(found.url)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} can't be read ({reason(error)}); restore it from a copy, or name the campaign by its "
            f"address, {_EXAMPLE}/NAME"
        ) from error
    return found


def stores_folder() -> Path:
    """Return the user's folder that has the folders of campaigns used by their addresses."""
    return cache_folder() / "stores"


def campaign_text(folder: str | os.PathLike[str]) -> str:
    """Return what names a campaign in commands and sentences: its address where it is used by that.

    Any other is its folder's path, as given.
    """
    with suppress(OSError, HostError, StoreError):
        path = Path(folder).resolve()
        if path.is_relative_to(stores_folder().resolve()) and (found := read_pointer(path)):
            return found.address
    return os.fspath(folder)


def write_pointer(folder: Path, location: Location) -> None:
    """Write a folder's pointer, durably. Raises OSError."""
    text = json.dumps(location._asdict(), indent=2) + "\n"
    write_durably(folder / POINTER_NAME, text.encode())


def is_campaign(folder: Path) -> bool:
    """Whether a folder is that of a campaign, whose data may be in another place."""
    return (folder / DATABASE_NAME).is_file() or _points_to(folder, "campaign")


def is_corpus(folder: Path) -> bool:
    """Whether a folder is that of a corpus, whose data may be in another place."""
    return (folder / CORPUS_NAME).is_file() or _points_to(folder, "corpus")


def _points_to(folder: Path, kind: Kind) -> bool:
    try:
        location = read_pointer(folder)
    except StoreError:  # who opens it is told
        return kind == "campaign"
    return location is not None and location.kind == kind
