"""The devices of a campaign, their telemetry, and the base of the stages that query them."""

import getpass
import platform
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from edgeflare._internal.text import first_of, names_text
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.devices import Connect as Connect  # noqa: PLC0414 - its documented place
from edgeflare.devices import (
    ConnectOptions,
    Device,
    DeviceMinute,
    DeviceSession,
    DeviceState,
    DeviceStatus,
    Lease,
    PlaceWaits,
    Prompt,
    ReconnectingSession,
    load_inventory,
    open_device,
    resolve_device,
)
from edgeflare.devices.telemetry import MINUTE_S
from edgeflare.errors import DeviceError, EdgeFlareError, StoreError, UsageError
from edgeflare.store import Store
from edgeflare.words.campaign import ALL_UP

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


OnNotice: TypeAlias = Callable[[str], None]


class LeaseOwner(NamedTuple):
    """The campaign as the owner of device leases: its id, and its name for people."""

    id: str
    name: str

    def lease(self, device: str) -> Lease:
        """Return the lease for one device."""
        about = f"campaign {self.name} of {_user()}@{platform.node()}"
        return Lease(self.id, f"{self.id}/{device}", about)


def fleet_devices(config: CampaignConfig) -> list[Device]:
    """Return the campaign's devices; one that is named several times gets a number.

    Raises InventoryError.
    """
    inventory = load_inventory(config.inventory)
    found: list[Device] = []
    for text in config.devices:
        device = resolve_device(text, inventory)
        if config.python is not None:
            device = device.model_copy(update={"python": config.python})
        same = sum(one.name.partition("#")[0] == device.name for one in found)
        if same:
            device = device.model_copy(update={"name": f"{device.name}#{same + 1}"})
        found.append(device)
    return found


def _ignore(text: str) -> None:
    del text


class Fleet(AbstractContextManager["Fleet"]):
    """Open devices, in the campaign's order; `missing` are the others, with their errors."""

    def __init__(
        self, sessions: Sequence[ReconnectingSession], missing: Sequence[tuple[str, EdgeFlareError]]
    ) -> None:
        self.sessions = tuple(sessions)
        self.missing = tuple(missing)

    @classmethod
    def open(
        cls,
        devices: Sequence[Device],
        config: CampaignConfig,
        owner: LeaseOwner,
        *,
        on_upload: OnNotice = _ignore,
        on_notice: OnNotice = _ignore,
        need_all: bool,
        **reach: "Unpack[ConnectOptions]",
    ) -> "Fleet":
        """Open all devices in parallel; without `need_all` those that can be.

        `ask` is called once for each question. `on_upload` is called with uploads, `on_notice` with
        lost and reconnected devices, both from other threads. Raises what `open_device` raises.
        """
        ask = reach.get("ask")
        prompts = PromptCache(ask) if ask is not None else None
        reach["ask"] = prompts

        def opener(device: Device, progress: OnNotice | None = None) -> DeviceSession:
            return open_device(
                device,
                config.deployed.path,
                runtime=config.deployed.runtime,
                options=config.deployed.options,
                progress=progress,
                lease=owner.lease(device.name),
                **reach,
            )

        def attempt(device: Device) -> DeviceSession | EdgeFlareError:
            try:
                return opener(device, on_upload)
            except EdgeFlareError as error:
                return error

        with (
            PlaceWaits() as waits,
            ThreadPoolExecutor(len(devices), "edgeflare-open", initializer=waits.use) as pool,
        ):
            attempts = [pool.submit(attempt, device) for device in devices]
            try:
                opened = [one.result() for one in attempts]
            except BaseException:
                waits.end()
                # those under way go on in their threads, and nobody else would close what they open
                for one in attempts:
                    one.add_done_callback(_close_what_opened)
                raise
        if prompts is not None:
            prompts.stop_asking()
        sessions = [
            ReconnectingSession(
                session,
                partial(opener, device),
                rng=random.Random(f"{owner.id}/{device.name}"),  # noqa: S311 - spreads retries
                on_notice=on_notice,
            )
            for device, session in zip(devices, opened, strict=True)
            if isinstance(session, DeviceSession)
        ]
        missing = [
            (device.name, error)
            for device, error in zip(devices, opened, strict=True)
            if isinstance(error, EdgeFlareError)
        ]
        fleet = cls(sessions, missing)
        if missing and (need_all or not sessions):
            fleet.close()
            raise _combined([error for _, error in missing])
        return fleet

    def __iter__(self) -> Iterator[ReconnectingSession]:
        return iter(self.sessions)

    def __len__(self) -> int:
        return len(self.sessions)

    def status(self) -> tuple[DeviceStatus, ...]:
        """Return the present status of every device."""
        return tuple(session.status() for session in self.sessions)

    def described(self, config: CampaignConfig) -> str:
        """Return the devices' names as events have them: as the configuration names them."""
        return names_text(config.devices)

    def describe_unavailable(self) -> str:
        """Return which devices are not up, and why."""
        found = [
            f"{session.name}: {session.detail}"
            for session in self.sessions
            if session.state is not DeviceState.UP
        ]
        return first_of(found) or ALL_UP

    def close(self) -> None:
        """End every agent."""
        with ThreadPoolExecutor(max(1, len(self.sessions))) as pool:
            for session in self.sessions:
                pool.submit(session.close)

    def __exit__(self, *_: object) -> None:
        self.close()


def check_one_model(fleet: Fleet) -> None:
    """Raise UsageError where the devices' runtimes describe the model differently."""
    first = fleet.sessions[0]
    for session in fleet.sessions[1:]:
        if _described(session) != _described(first):
            raise UsageError(
                f"{first.name} and {session.name} describe the deployed model differently: "
                f"{first.model.inputs + first.model.outputs} and "
                f"{session.model.inputs + session.model.outputs}; use the same runtime on both"
            )


def _described(session: ReconnectingSession) -> tuple[object, ...]:
    model = session.model
    return model.inputs, model.outputs, model.decoder


def _close_what_opened(attempt: "Future[DeviceSession | EdgeFlareError]") -> None:
    if attempt.exception() is None and isinstance(session := attempt.result(), DeviceSession):
        session.close()


class PromptCache:
    """Caches the user's answers, so that a device that reconnects does not ask again."""

    def __init__(self, ask: Prompt) -> None:
        self._ask: Prompt = ask
        self._answers: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def stop_asking(self) -> None:
        """Stop asking the user, who may be away; known answers are still given."""
        self._ask = lambda _: None

    def __call__(self, question: str) -> str | None:
        """Return the user's answer to this question."""
        with self._lock:
            if question not in self._answers:
                self._answers[question] = self._ask(question)
            return self._answers[question]


def _combined(errors: Sequence[EdgeFlareError]) -> EdgeFlareError:
    """Return one error for several devices."""
    if len(errors) == 1:
        return errors[0]
    text = first_of([str(error) for error in errors])
    kinds = {type(error) for error in errors}
    return (kinds.pop() if len(kinds) == 1 else DeviceError)(text)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return "somebody"


_DELAY_S = 0.5


class TelemetryWriter:
    """Writes the devices' telemetry into the store once a minute, in a thread of its own.

    What can't be written is tried again with the next minute. `__exit__` writes the rest, and
    raises StoreError where that fails and no other error is being raised.
    """

    def __init__(self, fleet: Fleet, store: Store) -> None:
        self._fleet = fleet
        self._store = store
        self._pending: list[DeviceMinute] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="edgeflare-telemetry", daemon=True)

    def __enter__(self) -> "Self":
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stop.set()
        self._thread.join()
        try:
            self._write(all_of_it=True)
        except StoreError:
            if error is None:
                raise

    def _run(self) -> None:
        while not self._stop.wait(MINUTE_S - time.time() % MINUTE_S + _DELAY_S):
            try:
                self._write(all_of_it=False)
            except StoreError:
                continue  # the search meets the same error, and raises it

    def _write(self, *, all_of_it: bool) -> None:
        for session in self._fleet:
            self._pending += session.minutes.take(all_of_it=all_of_it)
        self._store.add_telemetry(self._pending)
        self._pending = []
