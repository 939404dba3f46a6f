"""Where and how to reach a device over SSH: its inventory entry, then ~/.ssh/config."""

import getpass
import glob
import io
import shlex
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko
from paramiko.config import SSHConfigDict

from edgeflare._internal.files import home_folder
from edgeflare.devices.inventory import Device, check_login_word, device_from_url, device_url
from edgeflare.errors import InventoryError

_SYSTEM_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")
_INCLUDE_DEPTH = 16
_JUMP_DEPTH = 8


@dataclass(frozen=True)
class Endpoint:
    """One SSH server, with all that is needed to reach it.

    `device` is its inventory entry (a jump host has one of its own), `target` what the user calls
    the device at the end. `known_as` is its name in known_hosts files, of which the first is
    written to. It is reached through the server `jump`, the program `proxy_command` or the socket
    that `open_link` returns, else by TCP.
    """

    device: Device
    target: str
    host: str
    port: int
    user: str
    keys: tuple[Path, ...]
    only_these_keys: bool
    known_as: str
    known_hosts: tuple[Path, ...]
    connect_timeout: float
    jump: "Endpoint | None"
    proxy_command: str | None
    open_link: Callable[[], socket.socket] | None = field(default=None, compare=False)
    host_key_file: str = "/etc/ssh/ssh_host_ed25519_key.pub"
    """Where the device's owner finds the host key on the device."""
    copy_id: str = ""
    """The command that sets a key up; "": by host, port and user."""

    @property
    def key_command(self) -> str:
        """The command that sets a key up on the device."""
        port = "" if self.port == 22 else f"-p {self.port} "
        return self.copy_id or f"ssh-copy-id {port}{self.user}@{self.host}"

    @property
    def address(self) -> str:
        """``host:port`` for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """``ssh://user@host:port`` for messages and commands."""
        return device_url(self.host, self.port, self.user)


def resolve_endpoint(device: Device) -> Endpoint:
    """Return how to reach a device whose transport is SSH.

    Honoured: HostName, User, Port, IdentityFile, IdentitiesOnly, ProxyJump, ProxyCommand,
    UserKnownHostsFile, GlobalKnownHostsFile, HostKeyAlias, ConnectTimeout, Include, Match. Fields
    of the inventory win. Raises InventoryError where the SSH config makes no sense. Differences to
    OpenSSH: IdentityAgent and host certificates are not read.
    """
    return _resolve(device, device.name, None, 0)


def _resolve(
    device: Device, target: str, jumps: str | None, depth: int, default_port: int = 22
) -> Endpoint:
    """Resolve one server; `jumps` are the hops before it where another entry says so."""
    if depth > _JUMP_DEPTH:
        raise InventoryError(
            f"the ProxyJump chain to {target} has over {_JUMP_DEPTH} hops or a loop"
        )
    host = device.host or ""
    path = device.ssh_config or home_folder() / ".ssh" / "config"
    options = _lookup(path, device, host)
    name = options["hostname"]
    port = _number(options.get("port", str(default_port)), "Port", path)
    jumps = jumps or options.get("proxyjump")
    command = None if jumps else options.get("proxycommand")
    return Endpoint(
        device=device,
        target=target,
        host=name,
        port=port,
        user=options.get("user") or getpass.getuser(),
        keys=(device.key,) if device.key else _paths(options.get("identityfile", [])),
        only_these_keys=device.key is not None or options.get("identitiesonly", "no") == "yes",
        known_as=options.get("hostkeyalias") or known_name(name, port, default_port),
        known_hosts=_known_hosts_files(device, options),
        connect_timeout=_connect_timeout(device, options, path),
        jump=_jump(device, target, jumps, depth),
        proxy_command=command,
    )


def resolve_over_link(device: Device, alias: str, port: int) -> Endpoint:
    """Return how to log in over an existing link, under an alias of the SSH config.

    The alias is its name in known_hosts, too, with the port where that isn't `port`. HostName,
    ProxyJump and ProxyCommand are ignored. Raises InventoryError.
    """
    found = _resolve(device.model_copy(update={"host": alias}), device.name, "none", 0, port)
    known_as = found.known_as
    if known_as == known_name(found.host, found.port, port):
        known_as = known_name(alias, found.port, port)
    return replace(found, device=device, host=alias, known_as=known_as)


def known_name(host: str, port: int, default_port: int = 22) -> str:
    """Return the name under which known_hosts files hold a server: ``host`` or ``[host]:port``."""
    return host.lower() if port == default_port else f"[{host.lower()}]:{port}"


def _lookup(path: Path, device: Device, host: str) -> SSHConfigDict:
    """Look up a host; the inventory's user and port are put first, so they win and fill tokens.

    As with OpenSSH, only what is given in addition to the config is checked: its own values are the
    user's.
    """
    for word in filter(None, (host, device.user)):
        try:
            check_login_word(word)
        except ValueError as error:
            raise InventoryError(f"{word!r} can't be a host or user name: it {error}") from error
    first = [f"User {device.user}"] if device.user else []
    first += [f"Port {device.port}"] if device.port else []
    config = paramiko.SSHConfig()
    try:
        config.parse(io.StringIO("\n".join(first)))
        if device.ssh_config is not None or path.is_file():
            config.parse(io.StringIO("\n".join(_with_includes(path, path.parent, 0))))
        return config.lookup(host)
    except OSError as error:
        raise InventoryError(f"can't read the SSH config {path}: {error.strerror}") from error
    except (paramiko.SSHException, ValueError, KeyError) as error:
        raise InventoryError(
            f"the SSH config {path} makes no sense: {error}; `ssh -G {shlex.quote(host)}` checks it"
        ) from error


def _with_includes(path: Path, base: Path, depth: int) -> list[str]:
    """Return a config's lines with its Include files in place, which paramiko does not read."""
    if depth > _INCLUDE_DEPTH:
        raise ValueError(f"Include goes over {_INCLUDE_DEPTH} files deep")
    result = []
    block = "Host *"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        word, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if word.lower() in ("host", "match"):
            block = line
        if word.lower() != "include":
            result.append(line)
            continue
        for pattern in shlex.split(rest):
            whole = str(base / Path(pattern).expanduser())
            for found in sorted(glob.glob(whole)):  # noqa: PTH207 - the pattern may be absolute
                result += _with_includes(Path(found), base, depth + 1)
        result.append(block)
    return result


def _jump(device: Device, target: str, jumps: str | None, depth: int) -> Endpoint | None:
    if not jumps or jumps.lower() == "none":
        return None
    before, _, last = jumps.rpartition(",")
    url = device_from_url(last if last.startswith("ssh://") else f"ssh://{last.strip()}")
    hop = url.model_copy(
        update={
            "name": f"jump host {last.strip()}",
            "known_hosts": device.known_hosts,
            "ssh_config": device.ssh_config,
        }
    )
    return _resolve(hop, target, before or None, depth + 1)


def _paths(texts: str | list[str]) -> tuple[Path, ...]:
    texts = [texts] if isinstance(texts, str) else texts
    return tuple(Path(text).expanduser() for text in texts if text.lower() != "none")


def _known_hosts_files(device: Device, options: SSHConfigDict) -> tuple[Path, ...]:
    if device.known_hosts is not None:
        return (device.known_hosts,)
    user = options.get("userknownhostsfile") or str(home_folder() / ".ssh" / "known_hosts")
    everyone = options.get("globalknownhostsfile") or str(_SYSTEM_KNOWN_HOSTS)
    texts = [*shlex.split(user), *shlex.split(everyone)]
    return tuple(Path(text).expanduser() for text in texts if text.lower() != "none")


def _connect_timeout(device: Device, options: SSHConfigDict, path: Path) -> float:
    configured = options.get("connecttimeout", "none")
    if "connect_timeout_s" in device.model_fields_set or configured == "none":
        return device.connect_timeout_s
    return _number(configured, "ConnectTimeout", path) or device.connect_timeout_s


def _number(text: str, key: str, path: Path) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise InventoryError(f"the SSH config {path} has {key} {text!r}; it must be a number")
    return int(text)
