"""The device inventory: a TOML file with one table a device, ``[devices.pi4]``."""

import difflib
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import quote, unquote

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from edgeflare._internal import plugins, toml
from edgeflare._internal.files import home_folder, state_folder
from edgeflare._internal.text import clean_text, first_problem, names_text, plain_problem
from edgeflare.devices.runtimes import DeviceOptions, RuntimeName, options_of
from edgeflare.errors import HostError, InventoryError

CompressionMode: TypeAlias = Literal["auto", "on", "off"]

_URL = re.compile(
    r"ssh://(?:(?P<user>[^@/]*)@)?(?:\[(?P<ip6>[^\]/]*)\]|(?P<host>[^:/@\[\]]*))(?::(?P<port>[^/]*))?/?"
)
_SHELL = "'\"`$\\;&<>|(){}"
BUILT_IN_TRANSPORTS = ("ssh", "local", "adb")
_LOGIN = ("port", "user", "key", "known_hosts", "ssh_config")
_PHONE = ("serial", "adb_shell")
_PHONE_CACHE = "/data/local/tmp/edgeflare"


def _expand_home(value: object) -> object:
    return toml.expand_home(value) if isinstance(value, str) and value else value


_LocalPath = Annotated[Path, BeforeValidator(_expand_home)]


class LabgridPlace(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """A place of a labgrid coordinator: the board is acquired there before it is used.

    `labgrid = "pi4"` is short for a table with `place` alone. labgrid itself is in an environment of
    its own.
    """

    place: str = Field(min_length=1, max_length=2000)
    """The place's name at the coordinator."""
    coordinator: str | None = Field(default=None, min_length=1, max_length=300)
    """``HOST`` or ``HOST:PORT``; by default LG_COORDINATOR, else 127.0.0.1:20408."""
    python: _LocalPath | None = None
    """The Python of labgrid's environment; by default that of `labgrid-client` on PATH."""
    priority: float = Field(default=0, allow_inf_nan=False)
    """Of the reservation while others have the place; the highest gets it, then the oldest."""
    wait_s: float = Field(default=0, ge=0, le=30 * 86400, allow_inf_nan=False)
    """Seconds to wait for a place that others have; 0: it is busy at once."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        return {"place": data} if isinstance(data, str) else data

    @field_validator("place", "coordinator")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        return None if value is None else check_one_line(value)


def check_one_line(value: str) -> str:
    """Return a text that is one printable line without spaces around it. Raises ValueError."""
    if not value.isprintable() or value != value.strip():
        raise ValueError("must be one line of printable text without spaces around it")
    return value


class Device(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """One device: how it is reached and what runs there. Describes; connects to nothing.

    A field left None is taken from ~/.ssh/config, then from SSH's own defaults.
    """

    name: str = Field(min_length=1, max_length=2000)
    """Its name in messages: that in the inventory, or the ``ssh://`` or ``adb://`` address."""
    transport: Annotated[str, plugins.known_name("transport", BUILT_IN_TRANSPORTS)] = "ssh"
    """How it is reached: ``ssh``, ``adb`` (a phone), ``local`` (this machine), or a plug-in's name."""
    url: str | None = Field(default=None, min_length=1)
    """Where a plug-in's transport finds it: ``NAME://`` and what that plug-in takes."""
    serial: str | None = Field(default=None, min_length=1)
    """A phone's serial number, as ``adb devices`` lists it; by default the only one attached."""
    adb_shell: bool = False
    """Use adb's own shell instead of an SSH server; that needs a Python for the shell user."""
    host: str | None = Field(default=None, min_length=1, max_length=253)
    """Name, address or alias in ~/.ssh/config; IPv6 without brackets."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """By default 22; on a phone 8022, which is Termux's."""
    user: str | None = Field(default=None, min_length=1)
    """Login name there."""
    key: _LocalPath | None = None
    """Private key file on the host; the only key that is tried where it is given."""
    python: str = Field(default="python3", min_length=1)
    """Command prefix for the device's shell, such as ``proot-distro login debian -- python3``."""
    runtime: RuntimeName | None = None
    """``tflite``, ``onnx``, ``tensorrt`` or a plug-in's; by default by the model file's extension."""
    options: DeviceOptions = Field(default_factory=DeviceOptions)
    cache: str = Field(default="~/.cache/edgeflare", min_length=1)
    """Folder on the device that holds agent and models."""
    cache_limit_mb: int = Field(default=2048, ge=1)
    """Size limit of that folder in MB."""
    labgrid: LabgridPlace | None = None
    """The place of a labgrid coordinator that the board is; its NetworkService has the address."""
    known_hosts: _LocalPath | None = None
    """By default the user's ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts."""
    ssh_config: _LocalPath | None = None
    """By default ~/.ssh/config."""
    connect_timeout_s: float = Field(default=15, gt=0, le=3600, allow_inf_nan=False)
    """Seconds that connecting may take; by default 15, or ConnectTimeout of the SSH config."""

    heartbeat_s: float = Field(default=20, ge=1, le=3600, allow_inf_nan=False)
    """Seconds without a message from the agent after which the device counts as lost."""
    timeout_s: float = Field(default=60, ge=1, le=86400, allow_inf_nan=False)
    """Seconds that the agent's start, loading the model, or one inference may take."""
    share: bool = False
    """Other campaigns may use it at the same time."""
    compression: CompressionMode = "auto"
    """Whether samples travel compressed: "auto" where that gains time; never to a local device."""

    @model_validator(mode="before")
    @classmethod
    def _usual_there(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("transport") == "local":
            return {"python": shlex.quote(sys.executable), **data}
        if isinstance(data, dict) and data.get("adb_shell") is True:
            return {"cache": _PHONE_CACHE, **data}
        return data

    @model_validator(mode="after")
    def _fits_transport(self) -> "Device":
        if self.transport == "ssh" and self.host is None and self.labgrid is None:
            raise ValueError("`host` is missing; give the device's name or address")
        meaningless: tuple[str, ...] = (*_PHONE, "url")
        where = f"where transport is {self.transport!r}"
        if self.transport == "local":
            meaningless = ("host", *_LOGIN, *_PHONE, "url", "labgrid")
        elif self.transport == "adb":
            meaningless = ("host", "url", "labgrid", *(_LOGIN if self.adb_shell else ()))
            where += " and `adb_shell` is true" if self.adb_shell else ""
        elif self.transport != "ssh":
            meaningless = (*_PHONE, "labgrid")
            if not (self.url or "").startswith(f"{self.transport}://"):
                raise ValueError(f"`url` must begin with {self.transport}://")
        given = [field for field in meaningless if getattr(self, field) not in (None, False)]
        if given:
            raise ValueError(f"`{given[0]}` has no meaning {where}")
        return self

    @property
    def is_this_interpreter(self) -> bool:
        """Whether it is this machine with the Python that EdgeFlare runs in."""
        return self.transport == "local" and self.python == LOCAL.python

    @property
    def address(self) -> str:
        """Where it is, for people: ``this machine``, or as ``ssh://`` or ``adb://`` text.

        Of a labgrid place its name, and the SSH address where one is stated.
        """
        if self.labgrid is not None:
            stated = device_url(self.host, self.port, self.user) if self.host else ""
            return f"labgrid place {self.labgrid.place}" + (f" ({stated})" if stated else "")
        if self.url is not None:
            return self.url
        if self.transport == "local":
            return "this machine"
        if self.transport == "adb":
            return adb_url(self.serial, self.user, shell=self.adb_shell)
        return device_url(self.host or "", self.port, self.user)

    @model_validator(mode="after")
    def _options_fit_runtime(self) -> "Device":
        if self.runtime is not None:
            known = options_of(self.runtime)
            foreign = [option for option in self.options if option not in known]
            if foreign:
                raise ValueError(
                    f"runtime {self.runtime} has no option `{foreign[0]}`; it has "
                    f"{', '.join(sorted(known))}"
                )
        return self

    @field_validator("name", "url", "host", "serial", "user", "python", "cache")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        return None if value is None else check_one_line(value)

    @field_validator("host", "user")
    @classmethod
    def _safe_in_shell(cls, value: str | None) -> str | None:
        return None if value is None else check_login_word(value)

    @field_validator("host")
    @classmethod
    def _host_name(cls, value: str | None) -> str | None:
        try:
            (value or "").encode("idna")
        except UnicodeError as error:
            raise ValueError(
                "must be a host name: each part between its dots has 1 to 63 characters"
            ) from error
        return value


LOCAL = Device(name="local", transport="local", share=True)
"""The machine that the host runs on, through a process of its own."""


def check_login_word(word: str) -> str:
    """Return a host or user name that a shell's command line may have without quotes.

    ProxyCommand and Match exec of the SSH config put it there. Refused is what OpenSSH refuses of a
    host. Raises ValueError.
    """
    if word.startswith("-") or any(c.isspace() for c in word):
        raise ValueError("must hold no spaces and not begin with a dash")
    if not word.isprintable() or any(c in word for c in _SHELL):
        raise ValueError(f"must hold no control characters and none of {' '.join(_SHELL)}")
    return word


def device_from_url(text: str) -> Device:
    """Return the device that ``ssh://[user@]host[:port]`` names.

    IPv6 addresses are in brackets; ``%40`` and the like are decoded. `host` may be an alias of
    ~/.ssh/config. Raises InventoryError.
    """
    match = _URL.fullmatch(text)
    if match is None or match["user"] == "":
        raise InventoryError(
            f"{text!r} is not an SSH address; write ssh://[user@]host[:port], "
            "an IPv6 address in brackets"
        )
    if match["user"] is not None and ":" in match["user"]:
        raise InventoryError(
            "an SSH address holds no password; write ssh://user@host and use a key, "
            "or type the password when asked"
        )
    port = match["port"]
    if port is not None and not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise InventoryError(f"{text!r} has the port {port!r}; a port is a number from 1 to 65535")
    try:
        return Device(
            name=text.rstrip("/"),
            host=unquote(match["ip6"] or match["host"]),
            port=None if port is None else int(port),
            user=None if match["user"] is None else unquote(match["user"]),
        )
    except ValidationError as error:
        raise InventoryError(f"{text!r} is not an SSH address: {first_problem(error)}") from error


def device_url(host: str, port: int | None = None, user: str | None = None) -> str:
    """Return the ``ssh://`` text that `device_from_url` reads back."""
    place = f"[{quote(host, safe=':')}]" if ":" in host else quote(host, safe="")
    return f"ssh://{'' if user is None else quote(user, safe='') + '@'}{place}" + (
        "" if port is None else f":{port}"
    )


def adb_url(serial: str | None, user: str | None = None, *, shell: bool = False) -> str:
    """Return the ``adb://`` text that `phone_from_url` reads back."""
    who = "" if user is None else quote(user, safe="") + "@"
    return f"adb://{who}{quote(serial or '', safe=':')}{'?shell' if shell else ''}"


_FILE = "devices.toml"


def state_root() -> Path:
    """Return the folder of virtual boards, $XDG_STATE_HOME/edgeflare/virtual."""
    return state_folder() / "virtual"


def _managed_inventories() -> list[Path]:
    """Return the inventory files of virtual boards by name; none where they can't be read."""
    try:
        folders = sorted(state_root().iterdir())
    except (OSError, HostError):  # no folder, or no home
        return []
    # os.path: a folder that this user may not enter has none, where Path.is_file raises
    return [folder / _FILE for folder in folders if os.path.isfile(folder / _FILE)]  # noqa: PTH113


def is_managed(device: Device) -> bool:
    """Return whether a device is a virtual board of this user."""
    with suppress(HostError):  # without a home there is none
        return device.key is not None and device.key.parent == state_root() / device.name
    return False


def board_stopped(device: Device) -> bool:
    """Return whether a device is a virtual board of this user that does not run."""
    return is_managed(device) and board_process(state_root() / device.name / PID_FILE) is None


PID_FILE = "qemu.pid"


def board_process(pid_file: Path) -> int | None:
    """Return the process of a running virtual board, None where there is none.

    The process must be qemu's, with this pid file on its command line, since a killed board leaves
    its pid file.
    """
    try:
        pid = int(pid_file.read_text(encoding="ascii"))
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(pid_file) in command.split(b"\0") else None


_ADB_URL = re.compile(r"adb://(?:(?P<user>[^@/?]*)@)?(?P<serial>[^/?@]*)/?(?:\?(?P<way>[^?]*))?")


def phone_from_url(text: str) -> Device:
    """Return the phone that ``adb://[user@][serial][?shell]`` names.

    Without a serial: the only one that is attached. ``%20`` and the like are decoded. With
    ``?shell`` through adb's own shell. Raises InventoryError.
    """
    match = _ADB_URL.fullmatch(text)
    if match is None or match["user"] == "" or match["way"] not in (None, "shell"):
        raise InventoryError(
            f"{text!r} does not name a phone; write adb://SERIAL as `adb devices` lists it, adb:// "
            "where only one is attached, and ?shell behind it to use adb's shell instead of SSH"
        )
    fields = {
        "name": text if text.endswith("//") else text.rstrip("/"),
        "transport": "adb",
        "serial": unquote(match["serial"]) or None,
        "user": None if match["user"] is None else unquote(match["user"]),
        "adb_shell": match["way"] == "shell",
    }
    try:
        return Device.model_validate(fields)
    except ValidationError as error:
        raise InventoryError(f"{text!r} does not name a phone: {first_problem(error)}") from error


def load_inventory(path: Path | None = None) -> dict[str, Device]:
    """Return the devices by name from this file, in its order, then the virtual boards.

    A name in the file wins over a board's. Without a path: ``devices.toml`` in the current folder,
    else ``edgeflare/devices.toml`` in the user's configuration folder ($XDG_CONFIG_HOME, else
    ~/.config), else no file. A board whose file is damaged is left out: `edgeflare devices virtual
    up` writes it anew. Raises InventoryError, naming file, line and key.
    """
    path = find_inventory(path)
    devices = {} if path is None else _read_inventory(path)
    for board in _managed_inventories():
        with suppress(InventoryError):
            for name, device in _read_inventory(board).items():
                devices.setdefault(name, device)
    return devices


def _read_inventory(path: Path) -> dict[str, Device]:
    try:
        text = toml.read(path)
        data = toml.loads(text)
    except FileNotFoundError as error:
        raise InventoryError(f"there is no device inventory at {path}") from error
    except OSError as error:
        raise InventoryError(f"can't read the inventory {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InventoryError(f"the inventory {path} is not UTF-8 text") from error
    except ValueError as error:
        raise InventoryError(f"the inventory {path} is not valid TOML: {error}") from error
    for key in data:
        if key != "devices":
            raise InventoryError(
                f"{_place(path, text, None, key)}: unknown key `{clean_text(key)}`; "
                "each device is a table such as [devices.pi4]"
            )
    tables = data.get("devices", {})
    if not isinstance(tables, dict):
        raise InventoryError(f"{path}: `devices` must hold tables such as [devices.pi4]")
    return {name: _read_device(path, text, name, table) for name, table in tables.items()}


def find_inventory(path: Path | None = None) -> Path | None:
    """Return the inventory's absolute path: this one, else in the usual places, else None."""
    if path is None:
        path = next((candidate for candidate in _usual_places() if candidate.is_file()), None)
    return path and path.absolute()


def resolve_device(text: str, inventory: Mapping[str, Device]) -> Device:
    """Return the device that the user named.

    ``local``, a name of the inventory (which wins), ``ssh://[user@]host[:port]``, or
    ``adb://[user@][serial]``, or ``scheme://...`` of a transport plug-in. Raises InventoryError
    with the nearest name.
    """
    if text in inventory:
        return inventory[text]
    if text == "local":
        return LOCAL
    if text.startswith("ssh://"):
        return device_from_url(text)
    if text.startswith("adb://"):
        return phone_from_url(text)
    scheme, separator, _ = text.partition("://")
    if separator and scheme in plugins.names("transport"):
        try:
            return Device(name=text, transport=scheme, url=text)
        except ValidationError as error:
            raise InventoryError(f"{text!r} {plain_problem(error.errors()[0]['msg'])}") from error
    known = list(dict.fromkeys(["local", *inventory]))
    if text == "virtual":
        raise InventoryError(
            "there is no virtual board yet; `edgeflare devices virtual up` builds and boots one"
        )
    raise InventoryError(
        f"no device is called {text!r}{_nearest(text, known)}; known are {names_text(known)}, "
        "and any SSH host as ssh://[user@]host[:port], any phone on adb as adb://SERIAL"
    )


def _usual_places() -> Iterator[Path]:
    yield Path("devices.toml")
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    with suppress(HostError):
        folder = configured if configured.is_absolute() else home_folder() / ".config"
        yield folder / "edgeflare" / "devices.toml"


def _read_device(path: Path, text: str, name: str, table: object) -> Device:
    where = _place(path, text, name, None)
    if not isinstance(table, dict):
        shown = clean_text(name)
        raise InventoryError(f"{where}: `{shown}` must be a table, [devices.{shown}]")
    if "name" in table:
        raise InventoryError(
            f"{_place(path, text, name, 'name')}: a device's name stands in its header, "
            f"[devices.{name}]; remove `name`"
        )
    try:
        return Device.model_validate({"name": name, **table})
    except ValidationError as error:
        problem = error.errors()[0]
        raise InventoryError(_sentence(path, text, name, problem)) from error


def _sentence(path: Path, text: str, name: str, problem: Any) -> str:
    keys = [clean_text(str(part)) for part in problem["loc"]]
    where = header = _place(path, text, name, None)
    for key in keys:  # the innermost that has a line of its own
        found = _place(path, text, name, key)
        where = where if found == header else found
    if problem["type"] == "extra_forbidden":
        tables = {"options": DeviceOptions.__annotations__, "labgrid": LabgridPlace.model_fields}
        fields = tables[keys[0]] if len(keys) > 1 else Device.model_fields
        allowed = [field for field in fields if field != "name"]
        return (
            f"{where}: device {name!r} has an unknown key `{'.'.join(keys)}`"
            f"{_nearest(keys[-1], allowed)}; allowed are {', '.join(allowed)}"
        )
    return (
        f"{where}: device {name!r}: "
        f"{'.'.join(keys)}{': ' if keys else ''}{plain_problem(problem['msg'])}"
    )


def _nearest(text: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(text, list(names), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _place(path: Path, text: str, table: str | None, key: str | None) -> str:
    """Return ``file, line n`` where the key, or else its table, is found by eye; else the file."""
    found = None
    inside = table is None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[([^\]]*)\]", line)
        if header:
            names = [part.strip().strip("\"'") for part in header[1].split(".")]
            inside = table is not None and names[:2] == ["devices", table]
            if inside or (table is None and names[0] == key):
                found = found or number
        elif inside and key is not None:
            before, equals, _ = line.partition("=")
            if equals and before.strip().strip("\"'").split(".")[-1] == key:
                return f"{path}, line {number}"
    return str(path) if found is None else f"{path}, line {found}"
