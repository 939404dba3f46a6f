"""A place of a labgrid coordinator, held for this process by a program of labgrid's environment.

That program (`client.py`, beside this file) gives the place back when its stdin ends: when the place
is released here, and when this process is gone, killed or not.
"""

import json
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from edgeflare._internal.text import clean_text, duration
from edgeflare.devices.inventory import LabgridPlace
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transports.base import waiting_for_place
from edgeflare.errors import (
    DeviceBusyError,
    DeviceError,
    EdgeFlareError,
    InventoryError,
    UnreachableError,
)

GRACE_S = 60.0
"""Seconds that the coordinator, or the exporter of the place's NetworkService, may be away."""
RETRY_AFTER_S = 60.0
"""Seconds for which a place that was taken away is not asked for again: who took it acquires it."""

_CLIENT = Path(__file__).with_name("client.py")
_ANSWER_S = 120.0
_RELEASE_S = 15.0
_INSTALL = (
    "install it in an environment of its own (python3 -m venv labgrid; labgrid/bin/pip install "
    "labgrid) and name that one's Python as `python` in the device's table `labgrid`"
)

_taken_away: dict[tuple[str, str | None], float] = {}
_lock = threading.Lock()  # of `_taken_away`


class NetworkService(NamedTuple):
    """Where the board of a place answers."""

    address: str
    port: int | None
    user: str | None
    password: str | None


class HeldPlace:
    """A place that is held until `release`, or until it is lost.

    `services` are the place's NetworkServices; `lost` is the error to raise once the place is taken
    away, else None.
    """

    def __init__(self, wanted: LabgridPlace, name: str) -> None:
        self.name = f"{name}: labgrid place {wanted.place}"
        self.services: list[dict[str, Any]] = []
        self.lost: UnreachableError | None = None
        self._key = (wanted.place, wanted.coordinator)
        self._on_lost: Callable[[], None] | None = None
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._state = threading.Lock()
        self._released = False
        self._given_up = False
        settings = {**wanted.model_dump(exclude={"python"}), "grace_s": GRACE_S}
        python = find_python(wanted)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  `release` closes it
        try:
            self._process = subprocess.Popen(
                [python, str(_CLIENT), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C is for the campaign, which then releases
            )
        except OSError as error:
            self._errors.close()
            raise InventoryError(
                f"{self.name}: can't run labgrid's Python {python}: {error.strerror}; {_INSTALL}"
            ) from error
        self._reader = threading.Thread(target=self._read, name="edgeflare-labgrid", daemon=True)
        self._reader.start()

    @classmethod
    def acquire(cls, wanted: LabgridPlace, name: str) -> "HeldPlace":
        """Acquire a place, waiting for it as long as `wanted` says; `name` is the device's.

        Raises DeviceBusyError where others have it, UnreachableError where coordinator or exporter
        don't answer, InventoryError where there is no such place or no labgrid, DeviceError.
        """
        check_may_ask(wanted, name)
        place = cls(wanted, name)
        try:
            with waiting_for_place(place.stop_waiting):
                place._await(wanted)
        except BaseException:
            place.release()
            raise
        return place

    def service(self) -> NetworkService:
        """Return the place's NetworkService.

        Raises UnreachableError where none is available, InventoryError where several are, or one that
        can't be used.
        """
        usable = [one for one in self.services if one["available"]]
        if not usable:
            raise UnreachableError(
                f"{self.name} has no NetworkService that is available any more; see that its exporter "
                "runs (labgrid-client resources)"
            )
        names = ", ".join(clean_text(str(one["name"])) for one in usable)
        if len(usable) != 1:
            raise InventoryError(
                f"{self.name} has several NetworkServices ({names}); give the address of the one "
                "that is meant as `host`, or leave one match in the place"
            )
        if usable[0]["proxy"]:
            raise InventoryError(
                f"{self.name}: its NetworkService is behind a proxy of labgrid's; give an alias of "
                "~/.ssh/config with ProxyJump as `host`"
            )
        address, port, user, password = (
            usable[0][key] for key in ("address", "port", "username", "password")
        )
        return NetworkService(str(address), port, user or None, password or None)

    def on_lost(self, call: Callable[[], None]) -> None:
        """Call this when the place is lost, from another thread; at once if it is already."""
        with self._state:
            self._on_lost = call
            lost = self.lost is not None
        if lost:
            call()

    def check(self) -> None:
        """Raise UnreachableError where the place is lost."""
        if self.lost is not None:
            raise copy(self.lost)

    def release(self) -> None:
        """Give the place back, and wait until it is. Safe to repeat, and from any thread.

        From a coordinator that isn't reached the program gives it back later, within an hour.
        """
        with self._state:
            if self._released:
                return
            self._released = True
        self.stop_waiting()
        try:
            self._process.wait(_RELEASE_S)
        except subprocess.TimeoutExpired:
            threading.Thread(target=self._process.wait, daemon=True).start()
        else:
            if threading.current_thread() is not self._reader:
                self._reader.join()
        self._errors.close()

    def stop_waiting(self) -> None:
        """Let the program end; `acquire` then raises."""
        self._given_up = True
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _await(self, wanted: LabgridPlace) -> None:
        """Wait until the place is held."""
        end = time.monotonic() + wanted.wait_s + _ANSWER_S
        while True:
            try:
                event = self._events.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise DeviceError(
                    f"{self.name}: labgrid gave no answer within {duration(wanted.wait_s + _ANSWER_S)}"
                ) from None
            if event["event"] == "acquired":
                self.services = event["services"]
                return
            if event["event"] == "failed":
                raise failure(self.name, event)
            if event["event"] == "ended":
                raise DeviceError(str(self._ended()))

    def _read(self) -> None:
        """Read the program's events, to its end."""
        lost: dict[str, Any] | None = None
        with cast("IO[bytes]", self._process.stdout) as out:
            for line in out:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if event["event"] == "lost":
                    lost = event
                    break
                self._events.put(event)
        self._events.put({"event": "ended"})
        self._lose(lost)

    def _lose(self, event: dict[str, Any] | None) -> None:
        with self._state:
            if self._released:
                return
            error = self._ended() if event is None else loss(self.name, event)
            if event is not None and event["reason"] == "released":
                error.retry_after_s = RETRY_AFTER_S
                with _lock:
                    _taken_away[self._key] = time.monotonic()
            self.lost, call = error, self._on_lost
        if call is not None:
            call()

    def _ended(self) -> UnreachableError:
        if self._given_up:
            return UnreachableError(f"{self.name}: it was not waited for any longer")
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        last = [clean_text(line.strip(), LONGEST_LINE) for line in lines if line.strip()][-1:]
        how = f": {last[0]}" if last else " and printed no error"
        return UnreachableError(f"{self.name}: labgrid's client ended{how}")


def check_may_ask(wanted: LabgridPlace, name: str) -> None:
    """Raise DeviceBusyError for a while after the place was taken away from this process."""
    with _lock:
        since = _taken_away.get((wanted.place, wanted.coordinator))
    left = 0.0 if since is None else since + RETRY_AFTER_S - time.monotonic()
    if left > 0:
        error = DeviceBusyError(
            f"{name}: labgrid place {wanted.place} was taken away; EdgeFlare asks for it again in "
            f"{duration(left)}, so that the client that released it can acquire it"
        )
        error.retry_after_s = left
        raise error


def find_python(wanted: LabgridPlace) -> str:
    """Return the Python that has labgrid: the stated one, else that of `labgrid-client`.

    Raises InventoryError.
    """
    if wanted.python is not None:
        return str(wanted.python)
    client = shutil.which("labgrid-client")
    if client is None:
        raise InventoryError(f"labgrid is needed for place {wanted.place}; {_INSTALL}")
    try:
        with Path(client).open("rb") as script:
            first = script.readline(4096).decode(errors="replace").strip()
    except OSError:
        first = ""
    stated = re.fullmatch(r"#! *(/[^ ]*python[0-9.]*)", first)
    if stated is not None:
        return stated[1]
    return str(Path(client).resolve().with_name("python3"))


def failure(name: str, event: dict[str, Any]) -> EdgeFlareError:
    """Return the error for a place that couldn't be acquired; `name` is the device's and its."""
    facts = {key: clean_text(str(value), LONGEST_LINE) for key, value in event.items()}
    reason, coordinator, detail = (
        facts.get(key, "") for key in ("reason", "coordinator", "detail")
    )
    if reason == "busy":
        return _busy(name, event, facts["holder"])
    if reason == "no place":
        known = [clean_text(str(one)) for one in event["known"]]
        there = f"it has {', '.join(known[:20])}" if known else "it has none yet"
        more = f" and {len(known) - 20} more" if len(known) > 20 else ""
        return InventoryError(f"{name} is unknown to the coordinator {coordinator}; {there}{more}")
    if reason == "no service":
        return UnreachableError(
            f"{name} has no NetworkService that is available; see that its exporter runs "
            "(labgrid-client resources) and that a match of the place names it (labgrid-client show)"
        )
    if reason == "unreachable":
        return UnreachableError(
            f"{name}: no labgrid coordinator answers at {coordinator}; start it, or give its address "
            "as `coordinator` in the device's table `labgrid` or as LG_COORDINATOR"
        )
    if reason == "gone":
        return UnreachableError(f"{name}: the coordinator {coordinator} was lost: {detail}")
    if reason == "no address":
        return InventoryError(
            f"{name}: the coordinator's address is not valid ({detail}); write HOST or HOST:PORT"
        )
    if reason == "no labgrid":
        return InventoryError(f"{name}: its Python has no labgrid ({detail}); {_INSTALL}")
    if reason == "old labgrid":
        return InventoryError(f"{name}: labgrid there is older than 25.0; {_INSTALL}")
    return DeviceError(f"{name} can't be acquired: {detail}; see what the coordinator prints")


def _busy(name: str, event: dict[str, Any], holder: str) -> DeviceBusyError:
    does = "is reserved for" if event["reserved"] else "is held by"
    text = f"{name} {does} {holder}"
    if event["mine"]:
        text += (
            ", which is you; if nothing of yours uses it, release it with labgrid-client release"
        )
    if event["waited_s"]:
        return DeviceBusyError(f"{text}; it was not free within {duration(event['waited_s'])}")
    return DeviceBusyError(f"{text}; take another, or wait for it with `wait_s`")


def loss(name: str, event: dict[str, Any]) -> UnreachableError:
    """Return the error for a place that was lost; `name` is the device's and its."""
    holder = clean_text(str(event.get("holder") or ""))
    now = f"; {holder} has it now" if holder else ""
    how = {
        "released": f"was taken away: another client released it{now}",
        "restarted": f"is no longer held: the coordinator forgot it, perhaps restarted{now}",
        "deleted": "was taken away: it was deleted at the coordinator",
        "coordinator": f"may be another's by now: the coordinator {event.get('coordinator')} was "
        f"not reached for {duration(GRACE_S)}",
        "service": f"has had no NetworkService for {duration(GRACE_S)}: is its exporter down?",
    }.get(event["reason"], "was lost")
    return UnreachableError(f"{name} {how}")
