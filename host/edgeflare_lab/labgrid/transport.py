"""The SSH transport to the board of a labgrid place, which is held as long as the transport is open."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from edgeflare._internal.text import first_problem
from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.base import Completed, Stream
from edgeflare.devices.transports.ssh.transport import Ask, SshTransport
from edgeflare.errors import DeviceError, InventoryError
from edgeflare_lab.labgrid.place import HeldPlace


class PlaceTransport:
    """A connection to the board of a place, see `Transport`; `close` gives the place back.

    When the place is taken away the connection ends, and what uses it raises UnreachableError with
    the reason. Raises what `HeldPlace.acquire` and `SshTransport.connect` do.
    """

    def __init__(self, device: Device, ask: Ask | None = None) -> None:
        self._place = place = _acquire(device)
        try:
            with _reason(place):
                # A host that the user states may be another than the NetworkService's.
                password = place.service().password if device.host is None else None
                self._inner = SshTransport.connect(
                    _located(device, place), ask=ask, password=password
                )
        except BaseException:
            place.release()
            raise
        self.name = self._inner.name
        self.login = self._inner.login
        place.on_lost(self._inner.close)

    @staticmethod
    @contextmanager
    def held(device: Device) -> Iterator[Device]:
        """Hold the place for a block; gives the device with its SSH address.

        Raises what `HeldPlace.acquire` does.
        """
        place = _acquire(device)
        try:
            yield _located(device, place)
        finally:
            place.release()

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command with these arguments and wait for it."""
        with _reason(self._place):
            return self._inner.run(arguments, stdin, timeout=timeout)

    def open(self, arguments: Sequence[str]) -> "PlaceStream":
        """Start the device's Python command with these arguments; no pty, stderr separate."""
        with _reason(self._place):
            return PlaceStream(self._inner.open(arguments), self._place)

    def put(self, local: Path, remote: str) -> None:
        """Copy a file's bytes to this path, whose folder exists."""
        with _reason(self._place):
            self._inner.put(local, remote)

    def close(self) -> None:
        """End the connection and give the place back. Safe to repeat."""
        try:
            self._inner.close()
        finally:
            self._place.release()


class PlaceStream:
    """A running program's stdin and stdout, see `Stream`; it raises where the place was lost."""

    def __init__(self, inner: Stream, place: HeldPlace) -> None:
        self._inner = inner
        self._place = place

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes; ``b""`` at the end."""
        data = self._inner.read(n)
        if not data:
            self._place.check()
        return data

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks, one after the other."""
        with _reason(self._place):
            self._inner.write(blocks)

    def stderr_tail(self) -> str:
        """Return the last lines that the program wrote to stderr."""
        return self._inner.stderr_tail()

    def exit_status(self, timeout: float) -> int | None:
        """Wait for the program to end; None if it runs on."""
        self._place.check()
        return self._inner.exit_status(timeout)

    def close(self) -> None:
        """Close stdin and stdout and end the program if it goes on. Safe to repeat."""
        self._inner.close()


def _acquire(device: Device) -> HeldPlace:
    if device.labgrid is None:
        raise InventoryError(
            f'{device.name} names no labgrid place; write `labgrid = "PLACE"` in place of '
            "`transport` and `url` in its inventory entry"
        )
    return HeldPlace.acquire(device.labgrid, device.name)


def _located(device: Device, place: HeldPlace) -> Device:
    """Return the device with the address of the place's NetworkService; what is stated wins."""
    stated = device.model_dump(exclude={"labgrid"}, exclude_unset=True)
    if device.host is None:
        service = place.service()
        found = {"host": service.address, "port": service.port, "user": service.user}
        stated = {**{key: value for key, value in found.items() if value is not None}, **stated}
    try:
        return Device.model_validate(stated)
    except ValidationError as error:
        raise InventoryError(
            f"{place.name}: its NetworkService can't be used: {first_problem(error)}"
        ) from error


@contextmanager
def _reason(place: HeldPlace) -> Iterator[None]:
    """Let an error say that the place was lost, where that is the cause."""
    try:
        yield
    except DeviceError:
        place.check()
        raise
