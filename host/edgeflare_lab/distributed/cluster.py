"""The workers of a Dask scheduler, as the campaign's process sees them."""

import platform
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from edgeflare._internal import extras
from edgeflare._internal.text import names_text
from edgeflare._version import __version__
from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.events import Notice, Reporter, Stage
from edgeflare.campaign.fleet import LeaseOwner
from edgeflare.campaign.provenance import environment_differences
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.devices import DeviceStatus
from edgeflare.devices.equivalence import Bits
from edgeflare.errors import (
    DeviceAwayError,
    DeviceBusyError,
    DeviceError,
    EdgeFlareError,
    StoreError,
    UnreachableError,
    UsageError,
)
from edgeflare.models import OriginalModel
from edgeflare.store import Store
from edgeflare.store.location import read_pointer
from edgeflare_lab.distributed.boards import campaign_files
from edgeflare_lab.distributed.campaign import RemoteBoard, RemoteFleet, SharedCampaign, Worker
from edgeflare_lab.distributed.connection import (
    CONNECT_S,
    Tls,
    check_reached,
    connection_error,
    scheduler_address,
    security,
)
from edgeflare_lab.distributed.requests import (
    METRIC,
    Done,
    Offer,
    Opened,
    Opening,
    Shard,
    of_worker,
)
from edgeflare_lab.distributed.shards import Sent, Shards
from edgeflare_lab.distributed.worker import close_boards, do_shard, open_boards

if TYPE_CHECKING:
    from typing_extensions import Self

_REFRESH_S = 1.0
_WAIT_S = 0.1
_CLOSE_S = 6.0
_AWAY_S = 20.0
"""How long a worker whose devices failed is not asked again."""
_AHEAD = 2
"""Shards of each worker that Dask knows: one that runs, and one that waits."""
_RETRIES = 2
_HEARTBEATS_S = 3.0
_OPEN_S = 20.0
"""How long a campaign waits for further workers once one has opened its devices."""


class _WorkerGoneError(Exception):
    """The worker of a task is gone."""


class DaskCluster:
    """A connection to a Dask scheduler, whose workers do the stages of one campaign.

    `address` is the scheduler's, ``tls://HOST:8786``; without TLS it is refused where it isn't
    loopback, unless `insecure`. A context manager, for one campaign; all methods are called by its
    thread. Raises UsageError for an address or files of TLS that can't be used, or where the
    package `distributed` is missing, UnreachableError where the scheduler doesn't answer or a
    certificate is refused.
    """

    _request: Opening
    _config: CampaignConfig
    _reporter: Reporter
    _fleet: RemoteFleet
    _admit: Callable[[Sequence[RemoteBoard], Sequence[Bits] | None], None]

    def __init__(
        self,
        address: str,
        *,
        tls: Tls = Tls(),  # noqa: B008 - immutable
        insecure: bool = False,
    ) -> None:
        extras.distributed()
        self.address = scheduler_address(address, insecure=insecure)
        from distributed import Client

        found = security(self.address, tls)
        check_reached(self.address, found)
        try:
            self._client: Any = Client(
                self.address, timeout=CONNECT_S, security=found, set_as_default=False
            )
        except Exception as error:
            raise connection_error(self.address, error) from error
        self._numbers = count()
        self._workers: dict[str, Worker] = {}
        self._refused: dict[str, float] = {}
        self._problems: dict[str, EdgeFlareError] = {}
        self._opening: dict[str, Any] = {}
        self._busy: dict[str, str] = {}
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._refreshed = 0.0
        self._store: Store | None = None
        self._environment: Mapping[str, Any] | None = None
        self._is_probed = False

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # of a scheduler that is gone
            self._client.close(timeout=_CLOSE_S)

    # What a campaign needs: see `edgeflare.campaign.executor.Cluster`

    def open(self, config: CampaignConfig, owner: LeaseOwner, reporter: Reporter) -> RemoteFleet:
        """Let every free worker open its devices for this campaign; return these.

        Workers that take long join later. Raises UsageError, and DeviceError where no worker has a
        device that can be used.
        """
        reporter(Stage("device", f"of the workers at {self.address}"))
        self._config, self._reporter = config, reporter
        self._fleet = RemoteFleet((), self._release)
        self._request = Opening(
            owner.id,
            owner.name,
            config.model_dump(mode="json"),
            campaign_files(config),
            config.devices if "devices" in config.model_fields_set else None,
        )
        try:
            offers = self._open_all()
        except BaseException:  # Ctrl-C
            self._release()
            raise
        if not self._workers:
            self._release()
            raise self._why_no_worker(offers)
        return self._fleet

    def _open_all(self) -> dict[str, Offer]:
        """Let the workers that may take part open their devices; return what all say.

        Workers that take longer than others join later.
        """
        offers = self._offers()
        self._ask_to_open(offers)
        until = time.monotonic() + _HEARTBEATS_S
        while not self._opening and self._busy_with(offers) and time.monotonic() < until:
            time.sleep(_WAIT_S)  # what a worker says of itself may be a second old
            offers = self._offers()
            self._ask_to_open(offers)
        until = time.monotonic() + _OPEN_S
        while self._opening and not (self._workers and time.monotonic() > until):
            time.sleep(_WAIT_S)
            self._check_connection()
            offers = self._offers()
            self._take_all_opened(offers)
        return offers

    def check_environments(self, environment: Mapping[str, Any], *, allow_mixed: bool) -> list[str]:
        """Leave out the workers whose environment isn't this one, or return notices on them.

        Where all are left out, those are waited for that still open their devices. Raises UsageError
        where no worker is left.
        """
        self._environment, self._allow_mixed = environment, allow_mixed
        found = [self._check_environment(worker) for worker in tuple(self._workers.values())]
        while self._opening and not self._workers:
            time.sleep(_WAIT_S)
            self._check_connection()
            self._take_all_opened(self._offers())
            found += [self._check_environment(worker) for worker in tuple(self._workers.values())]
        if not self._workers:
            raise next(iter(self._problems.values()))
        return [text for text in found if text]

    def campaign(
        self,
        config: CampaignConfig,
        original: OriginalModel,
        sides: tuple[ModelInterface, ModelInterface],
        store: Store,
        reporter: Reporter,
    ) -> SharedCampaign:
        """Return the stages of the campaign; the workers write to its store."""
        campaign = SharedCampaign(config, original, self._fleet, sides, store, reporter, self)
        self._store, self._admit = store, campaign.admit
        pointer = read_pointer(store.folder)
        self._place = str(store.folder) if pointer is None else pointer.address
        return campaign

    # What its stages need

    def each(self, stage: str) -> list[Any]:
        """Let every worker do the stage; return what they return, in the order of the devices."""
        self._is_probed = self._is_probed or stage == "probes"
        asked = [(one, self._submit(stage, None, [one])) for one in self._workers.values()]
        found = []
        for worker, future in asked:
            try:
                done = self._result(future, worker.address)
            except _WorkerGoneError:
                self._forget(worker)
                continue
            if done.is_away:
                self._report(done)
                self._leave_unless_last(worker, done.problem)
            else:
                found.append(self._value(done))
        return found

    def run(
        self, stage: str, seed_ids: Sequence[str] | None, on_tick: Callable[[int], None]
    ) -> list[Any]:
        """Let the workers do the stage for these seeds, in shards, or one of them do all of it.

        Returns what each shard returned. `on_tick` is called several times a second with the number
        of seeds in finished shards. Raises what the stage raises, DeviceAwayError where no worker is
        left, UnreachableError where the scheduler is gone.
        """
        shards = Shards(seed_ids)
        sent: dict[str, Sent] = {}
        seen = time.monotonic()
        try:
            while shards.are_left or sent:
                self._refresh()
                now = time.monotonic()
                ready = [worker for worker in self._workers.values() if worker.away_until <= now]
                seen = now if ready else seen
                self._check_patience(now - seen)
                self._take_back(shards, sent)
                # one waits at each worker, so that none is idle until its next one has travelled
                while ready and shards.are_left and len(sent) < _AHEAD * len(ready):
                    ids = shards.take(len(ready), sum(len(one.boards) for one in ready))
                    future = self._submit(stage, ids, ready)
                    future.add_done_callback(self._events.put)
                    sent[future.key] = (future, ids, frozenset(one.address for one in ready))
                for future in self._finished():
                    if shard := sent.pop(future.key, None):
                        self._take_done(shards, future, shard[1])
                on_tick(shards.finished)
        except BaseException:
            with suppress(Exception):
                self._client.cancel([future for future, _, _ in sent.values()], force=True)
            self._release()
            raise
        return shards.values

    def _check_patience(self, away_s: float) -> None:
        """Raise why no worker is ready where that has been so for too long."""
        if away_s > self._config.fleet.patience_s:
            raise self._why_no_worker(self._offers())

    # Shards

    def _submit(self, stage: str, ids: Sequence[str] | None, workers: Sequence[Worker]) -> Any:
        return self._client.submit(
            do_shard,
            Shard(self._request, self._place, stage, ids),
            key=self._key(stage),
            workers=[worker.address for worker in workers],
            pure=False,
            retries=_RETRIES,
        )

    def _key(self, what: str) -> str:
        return f"edgeflare-{self._request.campaign}-{what}-{next(self._numbers)}"

    def _finished(self) -> Iterator[Any]:
        """Yield the futures that are done, after a short wait for the first one."""
        with suppress(queue.Empty):
            yield self._events.get(timeout=_WAIT_S)
            while True:
                yield self._events.get_nowait()

    def _take_done(self, shards: Shards, future: Any, seed_ids: Sequence[str] | None) -> None:
        done: Done = self._result(future)
        if not done.is_away:
            shards.end(seed_ids, self._value(done), done.seconds)
            return
        self._report(done)
        shards.give_back(seed_ids)
        for worker in tuple(self._workers.values()):
            if worker.name != done.worker or done.problem is None:
                continue
            if not isinstance(done.problem, DeviceError):
                self._leave_unless_last(worker, done.problem)
            else:
                worker.away_until = time.monotonic() + _AWAY_S
                self._problems[worker.address] = done.problem

    def _take_back(self, shards: Shards, sent: dict[str, Sent]) -> None:
        """Take back the shards that no worker is left for."""
        for key, (future, seed_ids, workers) in tuple(sent.items()):
            if workers.isdisjoint(self._workers):
                del sent[key]
                self._client.cancel([future], force=True)
                shards.give_back(seed_ids)

    def _value(self, done: Done) -> Any:
        """Return what a shard's stage returned. Raises what it raised."""
        self._report(done)
        if done.problem is not None:
            raise done.problem
        return done.value

    def _report(self, done: Done) -> None:
        for text, is_stored in done.notices:
            if not is_stored:
                self._reporter(Notice(text))
            elif self._store is not None and text not in self._store.notices():
                self._reporter.notice(text)

    def _result(self, future: Any, address: str | None = None) -> Any:
        """Return a task's result. Raises what it raised.

        `address`: of the only worker that may do it; _WorkerGoneError is raised where it is gone.
        """
        from distributed import CancelledError, KilledWorker
        from distributed import TimeoutError as Timeout  # another class until Python 3.10

        while True:
            try:
                return future.result(timeout=_REFRESH_S)
            except Timeout:
                self._check_connection()
                if address is not None and address not in self._offers():
                    raise _WorkerGoneError from None
            except KilledWorker as error:
                raise DeviceAwayError(
                    "several workers ended, one after the other, while they had the same seeds; see "
                    "what they printed last, then go on with `edgeflare resume`"
                ) from error
            except CancelledError as error:
                raise self._gone() from error

    # Workers

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise self._gone()

    def _gone(self) -> UnreachableError:
        return UnreachableError(
            f"the Dask scheduler at {self.address} is gone; start it and its workers again, then go "
            "on with `edgeflare resume`"
        )

    def _offers(self) -> dict[str, Offer]:
        """Return what each worker of edgeflare says of itself, by its address.

        The scheduler itself is asked: a timer of the client's overwrites what its `scheduler_info`
        returns with one that has no workers.
        """
        try:
            workers = self._client.sync(self._client.scheduler.identity)["workers"]
        except Exception as error:
            raise self._gone() from error
        stated = {address: info["metrics"].get(METRIC) for address, info in workers.items()}
        return {
            address: Offer(**{name: one[name] for name in Offer._fields if name in one})
            for address, one in stated.items()
            if one is not None
        }

    def _refresh(self) -> None:
        """Look for workers that have come or gone, about once a second."""
        self._check_connection()
        if time.monotonic() < self._refreshed + _REFRESH_S:
            return
        offers = self._offers()
        self._refreshed = time.monotonic()
        for address, worker in tuple(self._workers.items()):
            if address not in offers:
                self._forget(worker)
                seeds = "go to the others" if self._workers else "wait for another one"
                self._reporter.notice(f"the worker {worker.name} is gone; its seeds {seeds}")
                continue
            known = {status["name"]: status for status in offers[address].statuses}
            for board in worker.boards:
                if board.name in known:
                    board.last = DeviceStatus.from_json(dict(known[board.name]))
        self._ask_to_open(offers)
        self._take_all_opened(offers)

    def _ask_to_open(self, offers: Mapping[str, Offer]) -> None:
        """Ask the workers that may take part to open their devices."""
        for address, offer in offers.items():
            asked = address in self._workers or address in self._opening
            if not asked and self._is_wanted(address, offer):
                self._opening[address] = self._client.submit(
                    open_boards,
                    self._request,
                    key=self._key("open"),
                    workers=[address],
                    pure=False,
                )

    def _is_wanted(self, address: str, offer: Offer) -> bool:
        """Whether a worker can take part, as far as it says; a notice says why not, once."""
        if time.monotonic() < self._refused.get(address, 0.0):
            return False
        if offer.version != __version__:
            problem = UsageError(
                f"the worker {offer.name} has edgeflare {offer.version}, this host {__version__}; "
                "install the same on both"
            )
        elif offer.host != platform.node() and None in (self._config.store, self._config.samples):
            problem = UsageError(
                f"the worker {offer.name} is on the host {offer.host}, and the campaign is kept in "
                f"a folder of {platform.node()}; keep it where both reach it, with --store "
                "postgresql://USER@HOST/DATABASE and --samples PLACE"
            )
        else:
            names = self._request.devices
            is_free = offer.campaign in ("", self._request.campaign)
            return is_free and (names is None or not set(names).isdisjoint(offer.devices))
        self._refuse(address, problem)
        return False

    def _take_all_opened(self, offers: Mapping[str, Offer]) -> None:
        """Add the workers that have opened their devices; forget those that are gone."""
        for address, future in tuple(self._opening.items()):
            if address not in offers:  # a task of a worker that is gone never ends
                del self._opening[address]
            elif future.done():
                del self._opening[address]
                with suppress(_WorkerGoneError):
                    self._take_opened(offers[address], address, self._result(future, address))

    def _take_opened(self, offer: Offer, address: str, found: "Opened | EdgeFlareError") -> None:
        """Add a worker that has opened its devices, or leave it out."""
        if isinstance(found, EdgeFlareError):
            self._refuse(address, of_worker(offer.name, found))
            return
        if found.instead:  # it says so with its next heartbeat, too
            self._busy[address] = found.instead
            self._refused[address] = time.monotonic() + _HEARTBEATS_S
            return
        self._busy.pop(address, None)
        for text in found.missing:
            self._reporter(Notice(f"goes on without {text}"))
        boards = [RemoteBoard(board) for board in found.boards]
        worker = Worker(address, offer.name, boards, found.environment, found.problem)
        self._workers[address] = worker
        if self._store is None:
            self._fleet.add(boards)
        else:
            self._join(worker)

    def _join(self, worker: Worker) -> None:
        """Let a worker take part in a campaign that has begun, or leave it out."""
        notice = self._check_environment(worker)
        if worker.address not in self._workers:
            return
        try:
            answers = None
            if self._is_probed:
                done = self._result(self._submit("probes", None, [worker]), worker.address)
                answers = self._value(done)
            self._admit(worker.boards, answers)
        except EdgeFlareError as error:
            self._leave(worker, error)
        except _WorkerGoneError:
            self._forget(worker)
        else:
            names = ", ".join(board.name for board in worker.boards)
            self._reporter(Notice(f"the worker {worker.name} joins with {names}"))
            if notice:
                self._reporter.notice(notice)

    def _check_environment(self, worker: Worker) -> str:
        """Leave out a worker whose models don't fit, or with another environment.

        Return a notice where it may have another one.
        """
        assert self._environment is not None  # noqa: S101 - `check_environments` was called
        if worker.problem is not None:
            self._leave(worker, worker.problem)
            return ""
        found = environment_differences(self._environment, worker.environment)
        if not found:
            return ""
        text = f"the worker {worker.name} has another environment ({found})"
        if self._allow_mixed:
            return f"{text}: what it finds is marked with it"
        advice = "install the same there, or accept the difference with --allow-mixed"
        self._leave(worker, UsageError(f"{text}; {advice}"))
        return ""

    def _leave(self, worker: Worker, problem: EdgeFlareError) -> None:
        """Leave out a worker that has opened its devices."""
        self._forget(worker)
        self._refuse(worker.address, of_worker(worker.name, problem))
        self._close_on([worker.address])

    def _leave_unless_last(self, worker: Worker, problem: EdgeFlareError) -> None:
        """Leave out a worker that can't do its shards. Raises its problem where there is no other."""
        if len(self._workers) == 1 and not self._opening:
            raise of_worker(worker.name, problem)
        self._leave(worker, problem)

    def _forget(self, worker: Worker) -> None:
        self._workers.pop(worker.address, None)
        self._fleet.remove(worker.boards)

    def _refuse(self, address: str, problem: EdgeFlareError) -> None:
        """Leave out a worker, for good where more than its devices or the store is the reason."""
        is_short = isinstance(problem, DeviceError | StoreError)
        again = time.monotonic() + _AWAY_S if is_short else float("inf")
        self._refused[address] = again
        if str(problem) != str(self._problems.get(address)):
            self._problems[address] = problem
            self._reporter(Notice(f"left out: {problem}"))

    def _why_no_worker(self, offers: Mapping[str, Offer]) -> EdgeFlareError:
        """Return why no worker can do anything."""
        if self._problems:
            problems = list(self._problems.values())
            kinds = {type(problem) for problem in problems}
            kind = kinds.pop() if len(kinds) == 1 else DeviceAwayError
            return kind("; ".join(map(str, problems)))
        if busy := self._busy_with(offers):
            names, campaigns = (", ".join(dict.fromkeys(found)) for found in (busy, busy.values()))
            who = f"the worker {names} works"
            if len(busy) > 1:
                all_of = "all " if len(busy) == len(offers) else ""
                who = f"{all_of}{len(busy)} workers ({names}) work"
            what = f"campaign {campaigns}; wait until it"
            if len(set(busy.values())) > 1:
                what = f"campaigns {campaigns}; wait until one"
            return DeviceBusyError(f"{who} for the {what} has ended")
        there = sorted({name for offer in offers.values() for name in offer.devices})
        if there:
            wanted = ", ".join(self._request.devices or ())
            return UsageError(
                f"no worker at {self.address} has a device {wanted}; they have {names_text(there)}"
            )
        flags = " with the same --tls flags" if self.address.startswith("tls") else ""
        return DeviceAwayError(
            f"no worker at {self.address} offers devices; start `edgeflare worker {self.address} "
            f"--inventory devices.toml`{flags} on the hosts that have them"
        )

    def _busy_with(self, offers: Mapping[str, Offer]) -> dict[str, str]:
        """Return the campaigns' names of the workers that work for another one, by their names."""
        found = {}
        for address, one in offers.items():
            if one.campaign not in ("", self._request.campaign):
                found[one.name] = one.campaign_name
            elif address in self._busy:
                found[one.name] = self._busy[address]
        return found

    def _release(self) -> None:
        """Let every worker of this campaign stop and give its devices back."""
        addresses = [*self._workers, *self._opening]
        with suppress(Exception):  # of a scheduler that is gone
            self._client.cancel(list(self._opening.values()), force=True)
        self._workers.clear()
        self._opening.clear()
        self._close_on(addresses)

    def _close_on(self, addresses: Sequence[str]) -> None:
        """Let these workers close their devices; wait for it, not for long."""

        def close() -> None:
            with suppress(Exception):  # of a worker or scheduler that is gone
                campaign = self._request.campaign
                self._client.run(close_boards, campaign, workers=addresses, on_error="ignore")

        if addresses and self._client.status == "running":
            thread = threading.Thread(target=close, name="edgeflare-close", daemon=True)
            thread.start()
            thread.join(_CLOSE_S)
