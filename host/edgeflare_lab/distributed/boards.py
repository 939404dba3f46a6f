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
from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.outputs import DecoderOptions
from edgeflare.campaign.events import Event, Notice, Reporter, silent
from edgeflare.campaign.executor import opened_original
from edgeflare.campaign.fleet import Fleet, LeaseOwner, TelemetryWriter
from edgeflare.campaign.pair.model_pair import resolve_pair
from edgeflare.campaign.provenance import answer_digest, check_same_devices, environment
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.campaign.stages import Campaign
from edgeflare.devices import Device, stop_waiting_for_places
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
from edgeflare.store import Store, folder_at
from edgeflare.strategies.registry import other_originals
from edgeflare_lab.distributed.campaign import Board, with_patience
from edgeflare_lab.distributed.requests import Done, Offer, Opened, Opening, Shard

IDLE_S = 60.0
"""Seconds without a shard after which devices are given back."""
_STOP_S = 1.0


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
    return {str(file): _sha256(file, "this host") for file in files if file.is_file()}


def _sha256(file: Path, who: str) -> str:
    try:
        return file_sha256(file)
    except OSError as error:
        raise UsageError(
            f"{who} can't read {file} ({error.strerror or error}); let its user read it"
        ) from error


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

    def prepare(self, place: str) -> None:
        """Open the store, where it isn't open. Raises StoreError, UsageError, DeviceChangedError."""
        if self.opened.problem is not None:
            raise self.opened.problem
        if self._store is None:
            self._open_store(place)

    def do(self, shard: Shard) -> Any:
        """Do a shard, after `prepare`; return what its stage returns. Raises what that raises."""
        store = self._store
        assert store is not None  # noqa: S101 - it was opened by `prepare`
        assert self._sides is not None  # noqa: S101 - as `prepare` found no problem
        config = config_from(store.campaign, shard.store)
        if shard.stage != "options":  # which stores its configuration
            config = with_patience(config)
        campaign = Campaign(config, self._original, self.fleet, self._sides, store, self.reporter)
        return campaign.do(shard.stage, shard.seed_ids)

    def _check_files(self) -> None:
        for name, digest in self.opening.files.items():
            file = Path(name)
            if not file.is_file():
                raise UsageError(
                    f"the worker {self._worker} has no file {name}; models and other files of a "
                    "campaign are needed at the same paths on all hosts"
                )
            if _sha256(file, f"the worker {self._worker}") != digest:
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

    def _open_store(self, place: str) -> None:
        with ExitStack() as stack:
            store = stack.enter_context(Store.open(folder_at(place)))
            changed = check_same_devices(self._config, self.fleet, store)
            if changed and not self._config.fleet.allow_mixed:
                raise DeviceChangedError(f"{changed[0]}; it can't go on with this campaign")
            store.add_environment(dict(self.opened.environment), main=False)
            stack.enter_context(TelemetryWriter(self.fleet, store))
            self._stack.push(stack.pop_all())
        self._store = store


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
        self._present: Opening | None = None
        self._is_stopped: Callable[[], bool] = lambda: False
        self._stopped: set[str] = set()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look_after, name="edgeflare-idle", daemon=True)
        self._watch.start()

    def offer(self) -> Offer:
        """Return what the worker says of itself; from any thread, without waiting."""
        opened, present = self._open, self._present
        return Offer(
            version=__version__,
            name=self.name,
            host=platform.node(),
            devices=[device.name for device in self._devices],
            campaign="" if present is None else present.campaign,
            campaign_name="" if present is None else present.name,
            statuses=[] if opened is None else [one.to_json() for one in opened.fleet.status()],
        )

    def open(self, opening: Opening, is_stopped: Callable[[], bool]) -> Opened:
        """Open the devices for a campaign; what is open for it in the same way stays.

        Nothing is opened where another campaign has the worker. Raises DeviceAwayError where it is no
        longer wanted (`is_stopped`), the error of the devices where none can be opened, UsageError
        where the campaign's files are others here, ModelError.
        """
        with self._lock:
            if name := self._other_campaign(opening):
                return Opened(instead=name)
            return self._opened(opening, is_stopped).opened

    def do(self, shard: Shard, is_stopped: Callable[[], bool]) -> Done:
        """Do a shard, or what is possible of it until `is_stopped`."""
        began = time.monotonic()
        with self._lock:
            try:
                opened = self._opened(shard.opening, is_stopped)
            except EdgeFlareError as error:  # nothing is open, or what another campaign has
                return Done(self.name, problem=portable(error), is_away=True)
            has_begun = False
            try:
                opened.prepare(shard.store)
                has_begun = True
                value = opened.do(shard)
            except ShardStoppedError:
                self._close()
                return Done(self.name, problem=self._ending, is_away=True)
            except EdgeFlareError as error:
                is_away = not has_begun or _is_of_host(error)
                notices = opened.reporter.take()
                if is_away:
                    self._close()
                return Done(self.name, problem=portable(error), is_away=is_away, notices=notices)
            opened.used = time.monotonic()
            return Done(self.name, value, opened.used - began, notices=opened.reporter.take())

    def close(self, campaign: str | None = None) -> None:
        """Give the devices back, of this campaign or of any; what runs for it is stopped first."""
        present = self._present
        if present is None or campaign not in (None, present.campaign):
            return
        self._stopped.add(present.campaign)
        stop_waiting_for_places()
        while not self._lock.acquire(timeout=_STOP_S):
            stop_waiting_for_places()  # it may have begun to wait only now
        try:
            if self._present is not None and self._present.campaign == present.campaign:
                self._close()
            self._stopped.discard(present.campaign)
        finally:
            self._lock.release()

    def end(self) -> None:
        """Give the devices back for good."""
        self._ended.set()
        self.close()
        self._watch.join()

    def _opened(self, opening: Opening, is_stopped: Callable[[], bool]) -> _OpenCampaign:
        """Return what is open for a campaign, or open it."""
        campaign, current = opening.campaign, self._open
        if name := self._other_campaign(opening):
            raise DeviceBusyError(
                f"the worker {self.name} works for the campaign {name}; wait until that has ended"
            )

        def is_over() -> bool:
            return self._ended.is_set() or campaign in self._stopped or is_stopped()

        self._present, self._is_stopped = opening, is_over
        if current is not None and current.opening != opening:
            self._close()
            self._present, current = opening, None
        if current is None and not is_over():
            try:
                current = self._open = _OpenCampaign(opening, self._wanted(opening), self.name)
            except BaseException:
                self._present = None
                raise
        if current is None or is_over():
            self._close()
            raise self._ending
        current.reporter.is_stopped = is_over
        current.used = time.monotonic()
        return current

    def _other_campaign(self, opening: Opening) -> str:
        """Return the name of the campaign that has the devices instead of this one, "" for none."""
        other = None if self._open is None else self._open.opening
        return "" if other is None or other.campaign == opening.campaign else other.name

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

    def _close(self) -> None:
        opened, self._open, self._present = self._open, None, None
        if opened is not None:
            opened.close()

    def _look_after(self) -> None:
        """Close what was not used for long; end waiting for what is no longer wanted."""
        while not self._ended.wait(min(1.0, self._idle_s / 4)):
            if not self._lock.acquire(blocking=False):
                if self._present and self._is_stopped():
                    stop_waiting_for_places()
                continue
            try:
                if self._open and time.monotonic() - self._open.used > self._idle_s:
                    self._close()
            finally:
                self._lock.release()


def _is_of_host(error: EdgeFlareError) -> bool:
    """Whether the devices or the store of one host are the reason, so that another may do it."""
    if isinstance(error, StoreError):
        return True
    return isinstance(error, DeviceError) and not isinstance(error, InferenceFailedError)
