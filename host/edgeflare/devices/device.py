"""What is known of a device before it is reached: one entry of the inventory."""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from edgeflare import plugins, toml
from edgeflare.devices.compression import CompressionMode
from edgeflare.devices.runtimes import DeviceOptions, RuntimeName, options_of
from edgeflare.errors import InventoryError
from edgeflare.text import first_problem

_URL = re.compile(
    r"ssh://(?:(?P<user>[^@/]*)@)?(?:\[(?P<ip6>[^\]/]*)\]|(?P<host>[^:/@\[\]]*))(?::(?P<port>[^/]*))?/?"
)
_SHELL = "'\"`$\\;&<>|(){}"
BUILT_IN_TRANSPORTS = ("ssh", "local", "adb")
_LOGIN = ("port", "user", "key", "known_hosts", "ssh_config")
_PHONE = ("serial", "adb_shell")
_PHONE_CACHE = "/data/local/tmp/edgeflare"


def _expand_home(value: object) -> object:
    return toml.expanded(value) if isinstance(value, str) and value else value


_LocalPath = Annotated[Path, BeforeValidator(_expand_home)]


class Device(BaseModel):
    """One device: how it is reached and what runs there. Describes; connects to nothing.

    A field left None is taken from ~/.ssh/config, then from SSH's own defaults.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=2000)
    """What to call it in messages: its name in the inventory, or the ``ssh://`` or ``adb://`` text."""
    transport: Annotated[str, plugins.known_name("transport", BUILT_IN_TRANSPORTS)] = "ssh"
    """``adb``: a phone on adb, through it to the SSH server of an app such as Termux. Or the scheme of a plug-in."""
    url: str | None = Field(default=None, min_length=1)
    """Where a plug-in's transport finds it: ``scheme://`` and what that plug-in takes."""
    serial: str | None = Field(default=None, min_length=1)
    """The phone's, as ``adb devices`` lists it; None: the only one that is attached."""
    adb_shell: bool = False
    """Use adb's own shell instead of an SSH server; that needs a Python for the shell user."""
    host: str | None = Field(default=None, min_length=1, max_length=253)
    """Name, address or alias in ~/.ssh/config; IPv6 without brackets."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """None: 22; 8022, Termux's, on a phone."""
    user: str | None = Field(default=None, min_length=1)
    key: _LocalPath | None = None
    """Private key file on the host; the only key that is tried where it is given."""
    python: str = Field(default="python3", min_length=1)
    """Command prefix for the device's shell, such as ``proot-distro login debian -- python3``."""
    runtime: RuntimeName | None = None
    """None: by the model file's extension."""
    options: DeviceOptions = Field(default_factory=DeviceOptions)
    cache: str = Field(default="~/.cache/edgeflare", min_length=1)
    """Folder on the device that holds agent and models."""
    cache_limit_mb: int = Field(default=2048, ge=1)
    """Size limit of that folder in MB."""
    known_hosts: _LocalPath | None = None
    """None: the user's ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts."""
    ssh_config: _LocalPath | None = None
    """None: ~/.ssh/config."""
    connect_timeout_s: float = Field(default=15, gt=0, le=3600, allow_inf_nan=False)
    """Seconds until a connection must stand; where it is not given, the SSH config's ConnectTimeout."""

    heartbeat_s: float = Field(default=20, ge=1, le=3600, allow_inf_nan=False)
    """Seconds without a word from the agent after which the device counts as lost."""
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
        if self.transport == "ssh" and self.host is None:
            raise ValueError("`host` is missing; give the device's name or address")
        meaningless: tuple[str, ...] = (*_PHONE, "url")
        where = f"where transport is {self.transport!r}"
        if self.transport == "local":
            meaningless = ("host", *_LOGIN, *_PHONE, "url")
        elif self.transport == "adb":
            meaningless = ("host", "url", *(_LOGIN if self.adb_shell else ()))
            where += " and `adb_shell` is true" if self.adb_shell else ""
        elif self.transport != "ssh":
            meaningless = _PHONE
            if not (self.url or "").startswith(f"{self.transport}://"):
                raise ValueError(f"`url` must begin with {self.transport}://")
        given = [field for field in meaningless if getattr(self, field) not in (None, False)]
        if given:
            raise ValueError(f"`{given[0]}` has no meaning {where}")
        return self

    @property
    def address(self) -> str:
        """Where it is, for people: ``this machine``, or as ``ssh://`` or ``adb://`` text."""
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
        if value is not None and (not value.isprintable() or value != value.strip()):
            raise ValueError("must be one line of printable text without spaces around it")
        return value

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
    """Return a host or user name that may stand in a shell's command line without quotes.

    ProxyCommand and Match exec of the SSH config put it there. Refused is what OpenSSH refuses of a host.
    Raises ValueError.
    """
    if word.startswith("-") or any(c.isspace() for c in word):
        raise ValueError("must hold no spaces and not begin with a dash")
    if not word.isprintable() or any(c in word for c in _SHELL):
        raise ValueError(f"must hold no control characters and none of {' '.join(_SHELL)}")
    return word


def device_from_url(text: str) -> Device:
    """Return the device that ``ssh://[user@]host[:port]`` names.

    IPv6 addresses stand in brackets; ``%40`` and the like are decoded. `host` may be an alias of
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
    """Return the ``adb://`` text that `adb_url.phone_from_url` reads back."""
    who = "" if user is None else quote(user, safe="") + "@"
    return f"adb://{who}{quote(serial or '', safe=':')}{'?shell' if shell else ''}"
