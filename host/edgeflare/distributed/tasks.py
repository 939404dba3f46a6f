"""What Dask runs on a worker; `edgeflare worker` gives its worker a `BoardHost`."""

import asyncio
from collections.abc import Callable
from typing import Any

from edgeflare._internal import extras
from edgeflare.distributed.boards import BoardHost, portable
from edgeflare.distributed.requests import Done, Opened, Opening, Shard
from edgeflare.errors import EdgeFlareError

HOST = "edgeflare_boards"
"""The attribute of a Dask worker that has its `BoardHost`."""
_AT_WORK = ("init", "running", "paused")


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
    host: BoardHost = getattr(worker, HOST)
    return host


def _stop_check(worker: Any, key: Any) -> Callable[[], bool]:
    """Return what tells whether the task of this key was cancelled, or its worker is closing."""

    def is_stopped() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status.name not in _AT_WORK

    return is_stopped
