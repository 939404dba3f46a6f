"""What the campaign's process and its workers send each other; nothing of it is large.

Both ends are of one version of edgeflare, which each worker states in `Offer`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare.errors import EdgeFlareError
from edgeflare_lab.distributed.campaign import Board

METRIC = "edgeflare"
"""The name of a worker's `Offer` among its metrics."""


class Offer(NamedTuple):
    """What a worker says of itself with each heartbeat, as JSON.

    `devices` has the names of its devices, `campaign` and `campaign_name` are the id and name of the
    campaign that it works for, "" for none, `statuses` those of this campaign's devices
    (`DeviceStatus.to_json`). Of a worker of another version fields may be missing.
    """

    version: str = ""
    name: str = ""
    host: str = ""
    devices: Sequence[str] = ()
    campaign: str = ""
    campaign_name: str = ""
    statuses: Sequence[Mapping[str, Any]] = ()


class Opening(NamedTuple):
    """Which campaign a worker is to open its devices for.

    `config` is the configuration as JSON, `files` the SHA-256 of each file that it names, `devices` the
    names of the wanted devices (None: all).
    """

    campaign: str
    name: str
    config: Mapping[str, Any]
    files: Mapping[str, str]
    devices: Sequence[str] | None


class Opened(NamedTuple):
    """What a worker has opened.

    `boards`: its devices. `environment`: its host's; empty where the models don't fit, which
    `problem` says. `missing`: why further devices could not be opened. `instead`: the name of the
    campaign that the worker works for, where it opened nothing for this one.
    """

    boards: Sequence[Board] = ()
    environment: Mapping[str, Any] = {}
    problem: EdgeFlareError | None = None
    missing: Sequence[str] = ()
    instead: str = ""


class Shard(NamedTuple):
    """A stage of a campaign for one worker, by its name: for the seeds of these ids, or for all (None).

    `store` is the campaign's folder, or its address in a database.
    """

    opening: Opening
    store: str
    stage: str
    seed_ids: Sequence[str] | None


class Done(NamedTuple):
    """How a shard ended.

    `value`: what the stage returned, after so many `seconds`. `problem`: why it could not be done
    by `worker`; others may, where `is_away`. `notices`: what to report, and whether to store it.
    """

    worker: str
    value: Any = None
    seconds: float = 0.0
    problem: EdgeFlareError | None = None
    is_away: bool = False
    notices: Sequence[tuple[str, bool]] = ()


def of_worker(name: str, problem: EdgeFlareError) -> EdgeFlareError:
    """Return a worker's problem with the worker's name in it."""
    text = str(problem)
    is_named = f"worker {name}" in text or f"@{name}" in text
    return problem if is_named else type(problem)(f"on the worker {name}: {text}")
