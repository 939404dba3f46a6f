"""Phones on adb: choosing one, and reconnecting an offline one."""

import contextlib
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare.devices.transports.adb.server import AdbRefusedError, AdbServer
from edgeflare.devices.transports.base import Deadline
from edgeflare.errors import AuthenticationError, DeviceError, DeviceTimeoutError, UnreachableError

_STATES = "device|offline|unauthorized|authorizing|connecting|recovery|rescue|sideload|bootloader|host|detached"
_LINE = re.compile(
    rf"(?P<serial>\S.*?)\s+(?P<state>{_STATES}|no permissions.*?|\S+)(?P<about>(?:\s+\w+:\S+)*)\s*"
)
_READY = "device"
_TRANSIENT = ("offline", "connecting", "authorizing", "unauthorized", "detached")
"""States that may end by themselves, such as those after plugging a phone in."""
_GRACE_S = 3.0
_POLL_S = 0.1
_ANSWER_S = 1.0
_RECONNECT_EVERY_S = 2.0
_ON_WIFI = re.compile(r"[\w.-]+:\d+|\[[0-9a-fA-F:]+\]:\d+")


class PhoneLockedError(AuthenticationError):
    """The phone's user has not allowed this computer to debug it."""


@dataclass(frozen=True)
class AttachedDevice:
    """A line of ``adb devices -l``. `state` is ``device`` when ready; `model` "" if unknown."""

    serial: str
    state: str
    model: str = ""

    def __str__(self) -> str:
        about = ", ".join(filter(None, [self.model, "" if self.state == _READY else self.state]))
        return f"{self.serial} ({about})" if about else self.serial


def attached(server: AdbServer, deadline: Deadline) -> list[AttachedDevice]:
    """Return the adb server's devices, in its order. Raises what `AdbServer.ask` raises."""
    lines = server.ask("host:devices-l", deadline).splitlines()
    return [found for line in lines if (found := _parse_line(line)) is not None]


def choose(server: AdbServer, serial: str | None, timeout: float) -> AttachedDevice:
    """Return the attached device with this serial once it is ready; reconnect one that is offline.

    Without a serial: ANDROID_SERIAL, else the only one that is attached. A device that is offline
    is reconnected and waited for, at most `timeout` seconds; one on Wi-Fi (``host:port``) is
    connected to where it is not attached. Raises UnreachableError where none or several fit or it
    stays offline, PhoneLockedError where the phone has not let this computer in, and what
    `AdbServer.ask` raises.
    """
    serial = serial or os.environ.get("ANDROID_SERIAL") or None
    deadline = Deadline(timeout)
    grace = Deadline(min(timeout, _GRACE_S))
    recovery = _Recovery(server, deadline)
    while True:
        devices = attached(server, _answer_deadline(deadline))
        if serial is not None and all(one.serial != serial for one in devices):
            if not recovery.reconnect_missing(serial):
                _select(devices, serial)
            continue
        device = _select(devices, serial)
        serial = device.serial
        if device.state == _READY:
            return device
        waiting = grace if device.state == "unauthorized" else deadline
        if device.state not in _TRANSIENT or waiting.expired:
            raise _not_ready_error(device, timeout)
        if device.state == "offline":
            recovery.reconnect_offline()
        time.sleep(min(_POLL_S, max(waiting.remaining(), 0.01)))


class _Recovery:
    """Reconnects a phone that is offline or missing, at intervals.

    A server restores a lost link by itself within a moment; asked to reconnect before that, version
    1.0.41 forgets phones on Wi-Fi, which then need a new connection.
    """

    def __init__(self, server: AdbServer, deadline: Deadline) -> None:
        self._server = server
        self._deadline = deadline
        self._next_reconnect = time.monotonic() + _RECONNECT_EVERY_S
        self._connect_sent = False
        self._seen_offline = False

    def reconnect_offline(self) -> None:
        """Have the server reset its links to offline phones; servers before 1.0.36 can't."""
        self._seen_offline = True
        if time.monotonic() < self._next_reconnect:
            return
        self._next_reconnect = time.monotonic() + _RECONNECT_EVERY_S
        with contextlib.suppress(AdbRefusedError):
            self._server.ask("host:reconnect-offline", _answer_deadline(self._deadline))

    def reconnect_missing(self, serial: str) -> bool:
        """Try to get a missing phone back; return whether to list the devices again."""
        if _ON_WIFI.fullmatch(serial) and not self._connect_sent:
            self._connect_sent = True
            with contextlib.suppress(AdbRefusedError, DeviceTimeoutError):
                self._server.ask(f"host:connect:{serial}", _answer_deadline(self._deadline))
            return True
        time.sleep(_POLL_S if self._seen_offline else 0)
        return self._seen_offline and not self._deadline.expired


def _select(devices: Sequence[AttachedDevice], serial: str | None) -> AttachedDevice:
    if serial is not None:
        device = next((one for one in devices if one.serial == serial), None)
        if device is not None:
            return device
        others = f"attached are {_listed(devices)}" if devices else "none is attached"
        raise UnreachableError(
            f"no phone with the serial {serial} is attached to adb ({others}); check the cable and "
            "that USB debugging is on (`adb devices -l` lists what is seen)"
        )
    if not devices:
        raise UnreachableError(
            "no phone is attached to adb; plug one in and switch USB debugging on (Settings, "
            "Developer options), or `adb connect ADDRESS` one over Wi-Fi"
        )
    if len(devices) > 1:
        raise UnreachableError(
            f"{len(devices)} devices are attached to adb: {_listed(devices)}; name one, as in "
            f"adb://{devices[0].serial}"
        )
    return devices[0]


def _not_ready_error(device: AttachedDevice, timeout: float) -> DeviceError:
    who = f"the phone {AttachedDevice(device.serial, _READY, device.model)}"
    state = device.state
    if state in ("unauthorized", "authorizing"):
        return PhoneLockedError(
            f"{who} has not allowed this computer; unlock it and confirm the dialog "
            '"Allow USB debugging?" (where none appears: Developer options, Revoke USB debugging '
            "authorizations, then plug it in again)"
        )
    if state.startswith("no permissions"):
        return UnreachableError(
            f"{who} is seen, but this user may not open it ({state.partition(';')[0]}); install udev "
            "rules (Debian: apt install android-sdk-platform-tools-common), join the group plugdev, "
            "plug the phone in again and run `adb kill-server`"
        )
    if state in _TRANSIENT:
        return UnreachableError(
            f"{who} is {state} and did not come back within {timeout:g} s; plug it in again, switch "
            "USB debugging off and on, and if that doesn't help run `adb kill-server`"
        )
    return UnreachableError(
        f"{who} is in the state {state!r}, where nothing can run; boot it into Android (`adb reboot`)"
    )


def _answer_deadline(deadline: Deadline) -> Deadline:
    """Return the deadline of one answer, at least 1 s, so that no live server is taken for dead."""
    return Deadline(max(deadline.remaining(), _ANSWER_S))


def _parse_line(line: str) -> AttachedDevice | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    about = dict(part.split(":", 1) for part in match["about"].split())
    return AttachedDevice(match["serial"], match["state"], about.get("model", "").replace("_", " "))


def _listed(devices: Sequence[AttachedDevice]) -> str:
    return ", ".join(map(str, devices))
