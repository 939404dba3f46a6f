"""The process of a lab host: a Dask worker that has its devices, and the tasks that it runs."""

import asyncio
import platform
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from edgeflare._internal import extras
from edgeflare.devices import load_inventory, resolve_device
from edgeflare.errors import EdgeFlareError, UnreachableError, UsageError
from edgeflare_lab.distributed.boards import BoardHost, portable
from edgeflare_lab.distributed.connection import (
    CONNECT_S,
    Tls,
    check_reached,
    connection_error,
    loopback_host,
    scheduler_address,
    security,
)
from edgeflare_lab.distributed.requests import METRIC, Done, Opened, Opening, Shard

_HOST = "edgeflare_boards"
"""The attribute of a Dask worker that has its `BoardHost`."""
_AT_WORK = ("init", "running", "paused")
_LIGHT = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
"""Settings of Dask: what it measures of its own wakes a thread up to 100 times a second, which slows
searches down."""


def run_worker(
    scheduler: str,
    *,
    inventory: Path | None = None,
    devices: Sequence[str] = (),
    name: str | None = None,
    tls: Tls = Tls(),  # noqa: B008 - immutable
    insecure: bool = False,
    on_start: Callable[[str], None] = lambda _: None,
) -> None:
    """Offer devices to campaigns, until SIGINT or SIGTERM, or the scheduler is gone.

    `devices` are what ``--device`` takes; without them the whole inventory. `name` is this host's
    where None; the names of devices in campaigns end with it. `on_start` is called with a sentence
    once the scheduler knows the worker. Raises UsageError, InventoryError, and UnreachableError
    where the scheduler can't be reached, or is gone.
    """
    extras.distributed()
    address = scheduler_address(scheduler, insecure=insecure)
    known = load_inventory(inventory)
    found = [resolve_device(text, known) for text in devices] or list(known.values())
    if not found:
        raise UsageError(
            "there is no device to offer: name an inventory with --inventory, or devices with "
            "--device"
        )
    host = BoardHost(name or platform.node(), found)
    try:
        asyncio.run(_serve(host, address, tls, on_start))
    finally:
        host.end()


async def _serve(host: BoardHost, address: str, tls: Tls, on_start: Callable[[str], None]) -> None:
    import dask
    from distributed import Worker

    found = security(address, tls)
    check_reached(address, found)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    with (
        tempfile.TemporaryDirectory(prefix="edgeflare-worker-") as folder,
        dask.config.set(_LIGHT),
    ):
        worker: Any = Worker(
            address,
            nthreads=1,
            name=host.name,
            security=found or {},
            host=loopback_host(address),
            memory_limit=0,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
            local_directory=folder,
            death_timeout=CONNECT_S,
            metrics={METRIC: lambda _: host.offer()._asdict()},
        )
        setattr(worker, _HOST, host)
        try:
            await worker
        except Exception as error:
            cause = error.__cause__ or error
            if f"name taken, {host.name}" in str(cause):
                raise UsageError(
                    f"another worker at {address} is called {host.name}; choose another --name"
                ) from error
            raise connection_error(address, cause) from error
        names = ", ".join(host.offer().devices)
        on_start(f"the worker {host.name} offers {names} at {address}")
        signalled = asyncio.create_task(stopped.wait())
        gone = asyncio.create_task(worker.finished())
        await asyncio.wait([signalled, gone], return_when=asyncio.FIRST_COMPLETED)
        if stopped.is_set():
            await asyncio.to_thread(host.end)
            await worker.close(reason="signal")
            return
        raise UnreachableError(
            f"the Dask scheduler at {address} is gone; start it, then this worker again"
        )


# What Dask runs on a worker: found there by its name


def open_boards(opening: Opening) -> "Opened | EdgeFlareError":
    """Open this worker's devices; return what went wrong where they can't be."""
    worker = extras.distributed().get_worker()
    try:
        return _host(worker).open(opening, _stop_check(worker, worker.get_current_task()))
    except EdgeFlareError as error:
        return portable(error)


def do_shard(shard: Shard) -> Done:
    """Do a shard with this worker's devices."""
    worker = extras.distributed().get_worker()
    return _host(worker).do(shard, _stop_check(worker, worker.get_current_task()))


async def close_boards(campaign: str, dask_worker: Any) -> None:
    """Give a worker's devices back, where it works for this campaign; a shard is stopped first."""
    await asyncio.to_thread(_host(dask_worker).close, campaign)


def _host(worker: Any) -> BoardHost:
    host: BoardHost = getattr(worker, _HOST)
    return host


def _stop_check(worker: Any, key: Any) -> Callable[[], bool]:
    """Return what tells whether the task of this key was cancelled, or its worker is closing."""

    def is_stopped() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status.name not in _AT_WORK

    return is_stopped
