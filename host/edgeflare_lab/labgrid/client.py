"""Takes a place from a labgrid coordinator and holds it: a program of its own.

It runs with the Python of labgrid's environment, which need not be EdgeFlare's (labgrid brings a
pytest plug-in and a patched pyserial), and imports nothing of EdgeFlare::

    python client.py '{"place": "pi4", "coordinator": null, "priority": 0, "wait_s": 0, "grace_s": 60}'

`coordinator` is HOST[:PORT]; null: the variable LG_COORDINATOR, else labgrid's default. It prints
JSON objects, one a line, each with an `event`:

- ``waiting``: others have the place (`holder`, and whether they only have it `reserved`)
- ``acquired``: the place is held; `services` are its NetworkServices (name, address, port, username,
  password, whether labgrid's proxy is needed)
- ``failed``: the place isn't held, for a `reason`, with facts that depend on it; the last line
- ``lost``: the place is held no more, for a `reason`; the last line

The place is given back when stdin ends or at SIGTERM; Ctrl-C and the end of a terminal are ignored.
So a place never stays taken by a process that is gone, whatever ended it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

_CONNECT_S = 10.0
_CALL_S = 60.0  # acquiring waits for exporters, up to 10 s a resource
_POLL_S = 1.0
_GIVE_BACK_S = 3600.0  # from a coordinator that isn't reached
_GIVE_BACK_UNSURE_S = 10.0
_DEFAULT_COORDINATOR = "127.0.0.1:20408"
# gRPC codes of a call that the coordinator refused: the place was not acquired.
_REFUSED_CODES = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "PERMISSION_DENIED")


class Failure(Exception):  # noqa: N818  an event, not a fault
    """Why the place can't be had."""

    def __init__(self, reason: str, **facts: Any) -> None:
        super().__init__(reason)
        self.facts = {"reason": reason, **facts}


def open_session(coordinator: str, on_update: Callable[[], None]) -> Any:
    """Return an unstarted session with a coordinator that calls `on_update` after each change.

    Raises Failure.
    """
    try:
        from labgrid.remote.client import ClientSession
        from labgrid.util.proxy import proxymanager
    except ImportError as error:
        raise Failure("no labgrid", detail=str(error)) from error
    if not hasattr(proxymanager, "get_grpc_address"):  # before labgrid 25
        raise Failure("old labgrid")
    try:
        address = proxymanager.get_grpc_address(coordinator, default_port=20408)
    except Exception as error:
        raise Failure("no address", detail=str(error)) from error

    class Session(ClientSession):  # type: ignore[misc]
        async def on_place_changed(self, place_pb2: Any) -> None:
            await super().on_place_changed(place_pb2)
            on_update()

        async def on_place_deleted(self, name: str) -> None:
            await super().on_place_deleted(name)
            on_update()

        async def on_resource_changed(self, *resource: Any) -> None:
            await super().on_resource_changed(*resource)
            on_update()

        def cancel_pending_syncs(self) -> None:  # the connection has ended
            super().cancel_pending_syncs()
            on_update()

    return Session(address, asyncio.get_running_loop())


class PlaceClient:
    """Acquires, watches and gives back one place."""

    def __init__(self, settings: dict[str, Any], emit: Callable[..., None]) -> None:
        self._place: str = settings["place"]
        self._coordinator: str = (
            settings["coordinator"] or os.environ.get("LG_COORDINATOR") or _DEFAULT_COORDINATOR
        )
        self._priority = float(settings["priority"])
        self._wait_s = float(settings["wait_s"])
        self._grace_s = float(settings["grace_s"])
        self._emit = emit
        self._wake = asyncio.Event()
        self._stopped = False
        self._session: Any = None
        self._token: str | None = None
        self._held = False  # to be released
        self._watching = False  # the session's data confirm it
        self._changed: float | None = None  # the coordinator's time of the place's last change
        self._lost: dict[str, Any] | None = None

    def stop(self) -> None:
        """Give the place back and end."""
        self._stopped = True
        self._wake.set()

    async def run(self) -> None:
        """Hold the place until it is lost or `stop` is called."""
        try:
            await self._begin()
            await self._acquire()
            if self._watching:
                self._emit("acquired", services=self._services())
                await self._watch()
                if self._lost is not None:
                    self._emit("lost", **self._lost)
        except Failure as failure:
            self._emit("failed", **failure.facts)
        finally:
            await self._give_back()

    async def _begin(self) -> None:
        if not await self._connect():
            raise Failure("unreachable", coordinator=self._coordinator)

    async def _connect(self) -> bool:
        """Connect to the coordinator, instead of the session that there was."""
        await self._disconnect()
        session = open_session(self._coordinator, self._updated)
        try:
            await asyncio.wait_for(session.start(), _CONNECT_S)
        except Exception:  # noqa: BLE001  labgrid's ServerError, or the time is over
            session.stopping.set()
            await self._end(session)
            return False
        self._session = session
        return True

    async def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await self._end(session)

    async def _end(self, session: Any) -> None:
        session.stopping.set()  # labgrid asserts it
        with contextlib.suppress(Exception):
            await asyncio.wait_for(session.stop(), _CONNECT_S)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(session.close(), _CONNECT_S)

    @property
    def _me(self) -> str:
        return f"{self._session.gethostname()}/{self._session.getuser()}"

    def _updated(self) -> None:
        """Take note of a change at once, so that a place that is released and taken anew is lost."""
        if self._watching and self._lost is None and self._session is not None:
            self._check_held(restarted=False)
        self._wake.set()

    def _check_held(self, *, restarted: bool) -> None:
        """Find out whether the place is still held by this program.

        All processes of a user are one owner to labgrid. So after a time without the coordinator
        (`restarted`) the place must not have changed, else it may be held by another process.
        """
        place = self._session.places.get(self._place)
        if place is None:
            self._lost = {"reason": "deleted"}
        elif place.acquired == self._me and (not restarted or place.changed == self._changed):
            self._changed = place.changed
        else:
            reason = "restarted" if restarted else "released"
            self._lost = {"reason": reason, "holder": place.acquired}
        self._held = (
            place is not None and place.acquired == self._me and place.changed == self._changed
        )

    async def _sleep(self, seconds: float) -> None:
        """Wait for a change, at most so long."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()

    async def _call(self, method: str, **fields: Any) -> Any:
        """Call the coordinator. Raises grpc's errors; Failure where it is gone."""
        import grpc
        from labgrid.remote.generated import labgrid_coordinator_pb2 as messages

        request = getattr(messages, f"{method}Request")(**fields)
        try:
            return await getattr(self._session.stub, method)(request, timeout=_CALL_S)
        except grpc.aio.AioRpcError as error:
            if error.code().name in _REFUSED_CODES:
                raise
            detail = error.details() or error.code().name
            raise Failure("gone", coordinator=self._coordinator, detail=detail) from error

    async def _synchronise(self) -> None:
        """Wait until all that has happened at the coordinator is known here."""
        known = False
        with contextlib.suppress(asyncio.TimeoutError):
            known = await asyncio.wait_for(self._session.sync_with_coordinator(), _CONNECT_S)
        if not known:
            raise Failure("gone", coordinator=self._coordinator, detail="it no longer answers")

    async def _acquire(self) -> None:
        """Acquire the place, waiting for it as long as it may take. Raises Failure."""
        end = time.monotonic() + self._wait_s
        reported: dict[str, Any] | None = None
        while not self._stopped:
            problem = await self._obstacle()
            if problem is None:
                problem = await self._try_to_acquire()
            if problem is None:
                return
            if time.monotonic() >= end:
                raise Failure("busy", waited_s=self._wait_s, **problem)
            if problem != reported:
                reported = problem
                self._emit("waiting", **problem)
            await self._poll_reservation(min(_POLL_S, max(0.0, end - time.monotonic())))

    async def _obstacle(self) -> dict[str, Any] | None:
        """Return who has the place; None where it can be acquired. Raises Failure."""
        place = self._session.places.get(self._place)
        if self._session.stopping.is_set():
            raise Failure("gone", coordinator=self._coordinator, detail="it no longer answers")
        if place is None:
            known = sorted(self._session.places)
            raise Failure("no place", coordinator=self._coordinator, known=known)
        if place.acquired is not None:
            mine = place.acquired == self._me
            return {"holder": place.acquired, "reserved": False, "mine": mine}
        if place.reservation is not None and place.reservation != self._token:
            return {"holder": await self._owner(place.reservation), "reserved": True, "mine": False}
        return None

    async def _owner(self, token: str) -> str:
        answer = await self._call("GetReservations")
        return next((one.owner for one in answer.reservations if one.token == token), "somebody")

    async def _try_to_acquire(self) -> dict[str, Any] | None:
        """Acquire the free place; return who was faster. Raises Failure."""
        import grpc

        if not any(service["available"] for service in self._services()):
            raise Failure("no service", coordinator=self._coordinator)
        try:
            await self._call("AcquirePlace", placename=self._place)
        except Failure:  # it may be acquired all the same
            self._held = True
            raise
        except grpc.aio.AioRpcError as error:
            await self._synchronise()
            problem = await self._obstacle()
            if problem is None:
                raise Failure("refused", detail=error.details() or error.code().name) from error
            return problem
        self._held = True
        await self._cancel_reservation()  # a reservation would outlive the release by a minute
        await self._synchronise()
        self._watching = True
        self._check_held(restarted=False)
        return None

    async def _poll_reservation(self, seconds: float) -> None:
        """Make or poll a reservation, which expires a minute after its last poll, and wait."""
        import grpc

        if self._token is None:
            from labgrid.remote.generated import labgrid_coordinator_pb2 as messages

            wanted = messages.Reservation.Filter(filter={"name": self._place})
            answer = await self._call(
                "CreateReservation", filters={"main": wanted}, prio=self._priority
            )
            self._token = answer.reservation.token
        else:
            with contextlib.suppress(grpc.aio.AioRpcError):  # it expired
                answer = await self._call("PollReservation", token=self._token)
                if answer.reservation.state in (0, 1):  # waiting, allocated
                    await self._sleep(seconds)
                    return
            await self._cancel_reservation()  # another process of this user took what was allocated
        await self._sleep(seconds)

    async def _cancel_reservation(self) -> None:
        import grpc

        token, self._token = self._token, None
        if token is not None:
            with contextlib.suppress(grpc.aio.AioRpcError):  # it has expired
                await self._call("CancelReservation", token=token)

    def _services(self) -> list[dict[str, Any]]:
        """Return the NetworkServices that the place matches."""
        place = self._session.places.get(self._place)
        if place is None:
            return []
        found = []
        for exporter, groups in sorted(self._session.resources.items()):
            for group, entries in sorted(groups.items()):
                for name, entry in sorted(entries.items()):
                    match = place.getmatch((exporter, group, "NetworkService", name))
                    if entry.data.get("cls") != "NetworkService" or match is None:
                        continue
                    parameters = entry.data["params"]
                    found.append(
                        {
                            "name": match.rename or name,
                            "available": bool(entry.data.get("avail")),
                            "proxy": bool(parameters.get("extra", {}).get("proxy_required")),
                            **{
                                key: parameters.get(key)
                                for key in ("address", "port", "username", "password")
                            },
                        }
                    )
        return found

    async def _watch(self) -> None:
        """Wait until the place is lost or `stop` is called.

        A coordinator or an exporter may be away for the grace time: it is restarted, say. Meanwhile
        the board answers over SSH, and the coordinator gives the place to nobody else.
        """
        since = None
        while not self._stopped and self._lost is None:
            if self._session is None or self._session.stopping.is_set():
                problem = "coordinator"
                if await self._connect():
                    self._check_held(restarted=True)
                    continue
            else:
                problem = "" if self._services() else "service"
            if not problem:
                since = None
            elif since is None:
                since = time.monotonic()
            elif time.monotonic() - since >= self._grace_s:
                self._lost = {"reason": problem, "coordinator": self._coordinator}
                return
            await self._sleep(_POLL_S)

    async def _give_back(self) -> None:
        """Cancel the reservation and release the place, if it is still this program's."""
        end = time.monotonic() + (_GIVE_BACK_S if self._watching else _GIVE_BACK_UNSURE_S)
        while (self._held or self._token is not None) and time.monotonic() < end:
            gone = self._session is None or self._session.stopping.is_set()
            if gone and not await self._connect():
                await asyncio.sleep(_POLL_S)
                continue
            if gone and self._watching:
                self._check_held(restarted=True)
            with contextlib.suppress(Exception):
                await self._cancel_reservation()
            if self._held:
                with contextlib.suppress(Exception):
                    await self._call("ReleasePlace", placename=self._place, fromuser=self._me)
                    self._held = False
        await self._disconnect()


async def main(settings: dict[str, Any], emit: Callable[..., None]) -> None:
    """Hold a place until stdin ends, SIGTERM, or the place is lost."""
    loop = asyncio.get_running_loop()
    client = PlaceClient(settings, emit)
    loop.add_signal_handler(signal.SIGTERM, client.stop)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def read_to_the_end() -> None:
        while await reader.read(1 << 10):
            pass
        client.stop()

    reading = loop.create_task(read_to_the_end())
    await client.run()
    reading.cancel()


def event_writer() -> Callable[..., None]:
    """Return a function that prints an event; what libraries print goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def emit(event: str, **facts: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ValueError):  # nobody reads any more
            out.write(json.dumps({"event": event, **facts}) + "\n")
            out.flush()

    return emit


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    asyncio.run(main(json.loads(sys.argv[1]), event_writer()))
