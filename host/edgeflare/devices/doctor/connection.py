"""The way to a device: connection, key and login shell."""

from collections.abc import Iterator

from edgeflare.devices.doctor.result import CheckLine, failed, good, note
from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.base import Login, Transport
from edgeflare.errors import AuthenticationError, EdgeFlareError, HostKeyError

_SHOWN = 3
_LONGEST = 60


def connected(transport: Transport, device: Device) -> Iterator[CheckLine]:
    """Yield the lines of a connection that stands."""
    login = getattr(transport, "login", None)
    if not isinstance(login, Login):
        yield good("connection", _place(device))
        return
    to = f"{device.transport} to {login.user}@{login.address}"
    yield good("connection", f"{to}, where {login.server} answers")
    detail = f"{login.by}; host key {login.host_key} is trusted"
    advice = f"set a key up with: {login.key_command}"
    if login.by == "password":
        yield note("key", f"logged in with a {detail}", advice)
    elif login.by == "nothing":
        yield note("key", f"the server asks for neither key nor password: {detail}", None)
    else:
        yield good("key", f"logged in with {detail}" if login.by else detail)


def not_connected(error: EdgeFlareError, device: Device) -> Iterator[CheckLine]:
    """Yield the lines of a connection that failed: a server that answers is not at fault for a key."""
    from edgeflare.devices.transports.adb.phones import PhoneLockedError  # it needs paramiko

    if isinstance(error, PhoneLockedError) or not isinstance(
        error, AuthenticationError | HostKeyError
    ):
        yield failed("connection", error)
        return
    yield good("connection", f"{_place(device)}: an SSH server answers")
    line = failed("key", error)
    if isinstance(error, AuthenticationError) and device.key is not None:
        other = "name the right one as `key` in the device's inventory entry"
        line = line._replace(fix=f"{line.fix}, or {other}" if line.fix else other)
    yield line


def shell(printed: str, device: Device) -> Iterator[CheckLine]:
    """Yield the line of what the login shell prints around the answer of a command."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if not lines:
        if device.transport != "local":
            yield good("shell", "prints nothing of its own")
        return
    shown = " | ".join(line[:_LONGEST] for line in lines[:_SHOWN])
    more = f" and {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
    if device.transport == "local":
        yield note("shell", f"the Python command prints beside its answer: {shown}{more}")
        return
    yield note(
        "shell",
        f"a login prints: {shown}{more}; EdgeFlare reads past it, sftp and scp do not",
        "let only people see it: put what prints below this line in ~/.bashrc there: "
        "case $- in *i*) ;; *) return;; esac",
    )


def not_tried(first: str) -> CheckLine:
    """Return the line on what was left out until something else is mended."""
    packages = "numpy, runtimes, " if first == "python" else ""
    rest = "delegate, round trip, bandwidth, smoke inference, lease"
    return note("not tried", f"{packages}{rest}: mend {first} first")


def _place(device: Device) -> str:
    if device.transport == "local":
        return "a process on this machine"
    return f"{device.transport} to {device.host or device.serial or device.name}"
