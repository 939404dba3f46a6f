"""A worker's devices: opened for one campaign at a time, and asked by the shards of it."""

import platform
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from edgeflare import errors
from edgeflare._internal.files import file_sha256
from edgeflare._version import __version__
from edgeflare.campaign.cluster import Board, with_patience
from edgeflare.campaign.events import Event, Notice, Reporter, silent
from edgeflare.campaign.executor import opened_original
from edgeflare.campaign.fleet import Fleet, LeaseOwner, TelemetryWriter
from edgeflare.campaign.pair.interface import ModelInterface
from edgeflare.campaign.pair.model_pair import resolve_pair
from edgeflare.campaign.provenance import answer_digest, check_same_devices, environment
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.campaign.stages import Campaign
from edgeflare.devices import Device
from edgeflare.distributed.requests import Done, Offer, Opened, Opening, Shard
from edgeflare.errors import (
    DeviceAwayError,
    DeviceBusyError,
    DeviceChangedError,
    DeviceError,
    EdgeFlareError,
    InferenceFailedError,
    StoreError,
    UsageError,
)
from edgeflare.models import OriginalModel
from edgeflare.models.outputs import DecoderOptions
from edgeflare.store import Store, folder_at
from edgeflare.strategies.registry import other_originals

IDLE_S = 60.0
"""Seconds without a shard after which devices are given back."""


class ShardStoppedError(Exception):
    """The campaign no longer wants the shard; what is finished of it is stored."""


def campaign_files(config: CampaignConfig) -> dict[str, str]:
    """Return the SHA-256 of each file that a worker needs at the same path, by that."""
    found = [config.original.path, config.deployed.path, config.values.gallery]
    for model in (config.original, config.deployed):
        found += [model.repair, model.fixed_inputs]
        if isinstance(model.decoder, DecoderOptions):
            found.append(model.decoder.vocabulary)
    found += other_originals(config.search.strategy, config.search.options)
    files = (file.absolute() for file in found if file is not None)
    return {str(file): file_sha256(file) for file in files if file.is_file()}


def portable(error: EdgeFlareError) -> EdgeFlareError:
    """Return an error that any process of edgeflare can read: of a class of `edgeflare.errors`."""
    kinds = (one for one in type(error).__mro__ if getattr(errors, one.__name__, None) is one)
    found: EdgeFlareError = next(kinds)(str(error))
    return found


class _ShardReporter(Reporter):
    """Collects notices for the campaign's process; stops a shard that is no longer wanted."""

    def __init__(self) -> None:
        super().__init__(silent)
        self.is_stopped: Callable[[], bool] = lambda: False
        self._notices: list[tuple[str, bool]] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._notices.append((event.text, False))
        if self.is_stopped():
            raise ShardStoppedError

    def notice(self, text: str) -> None:
        self._notices.append((text, True))

    def tick(self) -> None:
        """Do nothing: the campaign's process writes the live status."""

    def take(self) -> list[tuple[str, bool]]:
        """Return the notices since the last call, and whether each is to be stored."""
        while not self._queued.empty():
            self._notices.append((self._queued.get(), True))
        taken, self._notices = self._notices, []
        return taken


class _OpenCampaign:
    """The original, the devices and the store of the campaign that a worker works for."""

    def __init__(self, opening: Opening, devices: Sequence[Device], worker: str) -> None:
        """Open the original and the devices. Raises what opening them raises."""
        self.opening = opening
        self.used = time.monotonic()
        self.reporter = _ShardReporter()
        self._worker = worker
        self._config = config_from(dict(opening.config), "the campaign's configuration")
        self._store: Store | None = None
        self._sides: tuple[ModelInterface, ModelInterface] | None = None
        with ExitStack() as stack:
            self._check_files()
            self._original: OriginalModel = stack.enter_context(opened_original(self._config))
            self.fleet: Fleet = stack.enter_context(self._open_fleet(devices))
            self.opened = self._describe()
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End the agents, and with them the leases; close the store."""
        self._stack.close()

    def do(self, shard: Shard) -> Any:
        """Do a shard; return what its part returns. Raises what that raises."""
        store = self._store or self._open_store(shard.store)
        assert self._sides is not None  # noqa: S101 - the campaign refuses workers without
        config = config_from(store.campaign, shard.store)
        if shard.part != "options":  # which stores its configuration
            config = with_patience(config)
        campaign = Campaign(config, self._original, self.fleet, self._sides, store, self.reporter)
        return campaign.do(shard.part, shard.seed_ids)

    def _check_files(self) -> None:
        for name, digest in self.opening.files.items():
            file = Path(name)
            if not file.is_file():
                raise UsageError(
                    f"the worker {self._worker} has no file {name}; models and other files of a "
                    "campaign are needed at the same paths on all hosts"
                )
            if file_sha256(file) != digest:
                raise UsageError(
                    f"the worker {self._worker} has another file {name} than the campaign's host; "
                    "copy that one there"
                )

    def _open_fleet(self, devices: Sequence[Device]) -> Fleet:
        owner = LeaseOwner(f"{self.opening.campaign}@{self._worker}", self.opening.name)
        return Fleet.open(
            [self._named(device) for device in devices],
            self._config,
            owner,
            on_notice=self.reporter.queue_notice,
            need_all=False,
        )

    def _named(self, device: Device) -> Device:
        update: dict[str, Any] = {"name": f"{device.name}@{self._worker}"}
        if self._config.python is not None:
            update["python"] = self._config.python
        return device.model_copy(update=update)

    def _describe(self) -> Opened:
        boards = [Board(one.name, one.model, one.fingerprint) for one in self.fleet]
        missing = [f"{name}: {error}" for name, error in self.fleet.missing]
        try:
            self._sides = resolve_pair(self._config, self._original, self.fleet)
        except UsageError as error:
            return Opened(boards, problem=portable(error), missing=missing)
        found = environment(self._config.search)
        found |= answer_digest(self._original, self._sides[0].spec)
        return Opened(boards, found, missing=missing)

    def _open_store(self, place: str) -> Store:
        with ExitStack() as stack:
            store = stack.enter_context(Store.open(folder_at(place)))
            changed = check_same_devices(self._config, self.fleet, store)
            if changed and not self._config.fleet.allow_mixed:
                raise DeviceChangedError(f"{changed[0]}; it can't go on with this campaign")
            store.add_environment(dict(self.opened.environment), main=False)
            stack.enter_context(TelemetryWriter(self.fleet, store))
            self._stack.push(stack.pop_all())
        self._store = store
        return store


class BoardHost:
    """The devices of one worker, which work for one campaign at a time.

    They are opened by its first request, and stay open, with their leases, until the campaign ends,
    its process is gone or nothing was asked for `idle_s` seconds.
    """

    def __init__(self, name: str, devices: Sequence[Device], idle_s: float = IDLE_S) -> None:
        self.name = name
        self._devices = tuple(devices)
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._open: _OpenCampaign | None = None
        self._stopped: set[str] = set()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._close_idle, name="edgeflare-idle", daemon=True)
        self._watch.start()

    def offer(self) -> Offer:
        """Return what the worker says of itself; from any thread, without waiting."""
        opened = self._open
        return Offer(
            version=__version__,
            name=self.name,
            host=platform.node(),
            devices=[device.name for device in self._devices],
            campaign="" if opened is None else opened.opening.campaign,
            statuses=[] if opened is None else [one.to_json() for one in opened.fleet.status()],
        )

    def open(self, opening: Opening) -> Opened:
        """Open the devices for a campaign; what is open for it in the same way stays.

        Raises DeviceBusyError where another campaign has the worker, the error of the devices where
        none can be opened, UsageError where the campaign's files are others here, ModelError.
        """
        with self._lock:
            return self._opened(opening).opened

    def do(self, shard: Shard, is_stopped: Callable[[], bool]) -> Done:
        """Do a shard, or what is possible of it until `is_stopped`. Raises StoreError."""
        campaign = shard.opening.campaign
        began = time.monotonic()
        with self._lock:
            self._stopped.discard(campaign)
            if self._ended.is_set():
                return Done(self.name, problem=self._ending, is_away=True)
            try:
                opened = self._opened(shard.opening)
                opened.reporter.is_stopped = lambda: is_stopped() or campaign in self._stopped
                value = opened.do(shard)
            except ShardStoppedError:
                self._close()
                return Done(self.name, problem=self._ending, is_away=True)
            except StoreError:
                raise  # the shard is tried again
            except EdgeFlareError as error:
                failed = isinstance(error, InferenceFailedError)
                away = isinstance(error, DeviceError) and not failed
                notices = self._take()
                if away:
                    self._close()
                return Done(self.name, problem=portable(error), is_away=away, notices=notices)
            opened.used = time.monotonic()
            return Done(self.name, value, opened.used - began, notices=self._take())

    def close(self, campaign: str | None = None) -> None:
        """Give the devices back, of this campaign or of any; a shard that runs is stopped first."""
        opened = self._open
        if opened is None or campaign not in (None, opened.opening.campaign):
            return
        self._stopped.add(opened.opening.campaign)
        with self._lock:
            self._close()
            self._stopped.clear()

    def end(self) -> None:
        """Give the devices back for good."""
        self._ended.set()
        self.close()
        self._watch.join()

    def _opened(self, opening: Opening) -> _OpenCampaign:
        current = self._open
        if current is not None and current.opening.campaign != opening.campaign:
            raise DeviceBusyError(
                f"the worker {self.name} works for the campaign {current.opening.name}; wait until "
                "that has ended"
            )
        if current is not None and current.opening != opening:
            self._close()
            current = None
        if current is None:
            current = self._open = _OpenCampaign(opening, self._wanted(opening), self.name)
        current.used = time.monotonic()
        return current

    def _wanted(self, opening: Opening) -> list[Device]:
        names = opening.devices
        found = [one for one in self._devices if names is None or one.name in names]
        if not found:
            raise DeviceAwayError(
                f"the worker {self.name} has no device of {', '.join(names or ())}"
            )
        return found

    @property
    def _ending(self) -> EdgeFlareError:
        return DeviceAwayError(f"the worker {self.name} was stopped")

    def _take(self) -> list[tuple[str, bool]]:
        return [] if self._open is None else self._open.reporter.take()

    def _close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def _close_idle(self) -> None:
        while not self._ended.wait(min(1.0, self._idle_s / 4)):
            if not self._lock.acquire(blocking=False):
                continue
            try:
                if self._open and time.monotonic() - self._open.used > self._idle_s:
                    self._close()
            finally:
                self._lock.release()
