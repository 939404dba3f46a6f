"""The live status of a campaign: a file in its folder, for other processes."""

import json
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from edgeflare._internal.files import read_regular, write_whole
from edgeflare._internal.records import JsonRecord
from edgeflare._internal.text import counted, reason
from edgeflare.devices import DeviceStatus
from edgeflare.errors import InferenceFailedError, StoreError
from edgeflare.store import (
    CampaignLock,
    OutcomeCounts,
    Store,
    campaign_text,
)
from edgeflare.store.documents import moment, read_json, validated
from edgeflare.store.state import Counts, Fact
from edgeflare.types import TRIGGERS, Status
from edgeflare.words.campaign import KILLED, SEARCH_FINISHED


def replica_names(store: Store) -> Sequence[str]:
    """Return the replicas: "" alone where devices share the seeds, else the devices' names."""
    return list(store.state.replicas)


def count_outcomes(store: Store) -> OutcomeCounts:
    """Return the outcomes of these replicas, together."""
    tallies = [store.tally(replica) for replica in replica_names(store)]
    return OutcomeCounts(*(sum(column) for column in zip(*tallies, strict=True)))


def expected_outcomes(store: Store) -> int:
    """Return the number of outcomes of the finished campaign."""
    return store.seed_count() * len(replica_names(store))


def all_searched(store: Store) -> bool:
    """Whether every seed has an outcome of every replica."""
    seeds = store.seed_count()
    return seeds > 0 and all(store.tally(name).done >= seeds for name in replica_names(store))


def is_searched(store: Store) -> bool:
    """Whether every search and every replay is done; outcomes may have been lost since."""
    return store.state.finished and all_searched(store)


def failed_replicas(store: Store) -> dict[str, str]:
    """Return the replicas all of whose searches so far failed, and why the first one did."""
    found = {}
    for replica in replica_names(store):
        statuses = store.columns.statuses(replica)
        if set(statuses) == {Status.FAILED.value}:
            first = next(store.outcomes_of(replica))
            found[replica] = f"{first.detail} (seed {first.seed_id})"
    return found


def check_searched(store: Store) -> None:
    """Raise InferenceFailedError where a replica could search from no seed, or survey nothing.

    A survey counts where nothing else is done: with the strategy none.
    """
    for replica, why in failed_replicas(store).items():
        where = f"on {replica} " if replica else ""
        count = store.tally(replica).done
        raise InferenceFailedError(
            f"{where}nothing could be searched: a model could not answer in any of "
            f"{counted(count, 'search', 'searches')}: {why}; the searches are done again when the "
            "campaign is resumed"
        )
    surveyed, (answered, _) = store.survey_counts("survey"), store.columns.survey_alarms()
    if answered or not surveyed.seeds or store.setting("search", "strategy") != "none":
        return
    of_inputs = (one.detail for one in store.survey())
    of_seeds = (run.detail for run in store.surveyed_seeds())
    why = next(filter(None, chain(of_inputs, of_seeds)), "")  # else the original was never sure
    if why:
        raise InferenceFailedError(
            f"nothing could be surveyed: a model could not answer on any input made from "
            f"{counted(surveyed.seeds, 'seed')}: {why}; mend that, and start the campaign "
            "anew"
        )


def is_finished(store: Store) -> bool:
    """Whether every search and every replay is done, and the control where one is wanted."""
    controlled = not store.campaign.get("control") or store.state.control_finished
    return bool(controlled) and is_searched(store)


def add_queries(store: Store, kind: Fact[Counts], queries: Mapping[str, int]) -> None:
    """Add each device's queries outside of searches; `kind` of `CampaignState`."""
    if any(queries.values()):
        store.state.change(kind, lambda before: Counter(before) + Counter(queries))


def queries_before(store: Store) -> Counter[str]:
    """Return each device's queries so far: of measurements, seeds, survey and ended searches."""
    spent: Counter[str] = Counter()
    spent.update(store.state.measuring_queries)
    spent.update(store.state.seed_queries)
    spent.update(store.survey_counts().by_device)
    rows = store.columns.outcomes()
    queries = rows.search_queries + rows.confirmation_queries
    for name in rows.device_name.names:
        spent[name] += int(queries[rows.device_name.among(name)].sum())
    return spent


CONTROL_NAME = "control"
"""Name of the fact with the reason why a control can't be run."""


def control_folder(folder: Path) -> Path:
    """Return where a campaign's control is."""
    return folder / CONTROL_NAME


class Alarms(NamedTuple):
    """The numbers of a control's searches and false alarms, without searches that failed.

    `searches` queried the device, or found the seed itself to be a false alarm; `unasked` ended
    without a query, so that they could raise no false alarm. `largest_margin` is the largest of the
    false alarms' smaller margins; with a margin floor above it none of them counts, unless a
    tolerance decides. `surveyed` inputs of the survey were asked about, `survey_alarms` of them are
    confident deviations, each a false alarm, too.
    """

    searches: int
    unasked: int
    false_alarms: int
    largest_margin: float | None
    surveyed: int = 0
    survey_alarms: int = 0


def count_alarms(control: Store) -> Alarms:
    """Count the false alarms of a control."""
    rows = control.columns.outcomes()
    triggers, failed = rows.status.among(*TRIGGERS), rows.status.among(Status.FAILED)
    queried = (rows.search_queries > 0) | triggers
    margins = np.fmin(rows.original_margin, rows.deployed_margin)[triggers]
    known = margins[~np.isnan(margins)]
    surveyed, alarms = control.columns.survey_alarms()
    return Alarms(
        int((queried & ~failed).sum()),
        int((~queried & ~failed).sum()),
        int(triggers.sum()),
        float(known.max()) if known.size else None,
        surveyed,
        alarms,
    )


LIVE_NAME = "live.json"
_MOST_BYTES = 16 << 20

RunState: TypeAlias = Literal["running", "interrupted", "paused", "failed", "finished"]


@dataclass(frozen=True)
class CampaignStatus(JsonRecord):
    """How far a campaign is.

    `state`: "interrupted" by Ctrl-C, SIGTERM or a process that was killed; "paused" when no device
    was left or a query limit was reached; "failed" by another error; `message` says why. `stage`,
    `detail`, `done` and `total` are those of the stage under way (of the whole search where none
    is); `found`, `searched` and `queries` (search queries, those of searches under way included)
    count over the whole campaign. `devices`, `pid` and `host` are as the process last wrote them,
    at `updated_at`; times are ISO 8601, UTC.
    """

    folder: str
    state: RunState
    stage: str
    detail: str
    done: int
    total: int
    found: int
    searched: int
    queries: int
    devices: tuple[DeviceStatus, ...]
    message: str
    pid: int | None
    host: str
    started_at: str
    updated_at: str


def now() -> str:
    """Return the time, UTC, as the status has it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def first_status(folder: Path) -> CampaignStatus:
    """Return the first status of a campaign that this process starts or resumes."""
    return CampaignStatus(
        folder=str(folder),
        state="running",
        stage="",
        detail="",
        done=0,
        total=0,
        found=0,
        searched=0,
        queries=0,
        devices=(),
        message="",
        pid=os.getpid(),
        host=platform.node(),
        started_at=now(),
        updated_at=now(),
    )


def write_status(status: CampaignStatus) -> None:
    """Write the status into the campaign's folder, atomically. Raises OSError."""
    path = Path(status.folder) / LIVE_NAME
    write_whole(path, json.dumps(status.to_json()).encode())


def campaign_status(folder: Path) -> CampaignStatus:
    """Return how far the campaign in this folder is, whether or not a process runs it now.

    Raises StoreError where the folder is no campaign's.
    """
    with Store.open(folder) as store:
        live = _read_status(folder)
        left = live or _killed_early(store)
        running = CampaignLock.is_held(folder)
        if running and live is not None and live.state == "running":
            return replace(live, folder=campaign_text(folder))
        finished = is_finished(store)
        state: RunState = "finished" if finished and not running else _state(running, left.state)
        done = count_outcomes(store)
        return replace(
            left,
            folder=campaign_text(folder),
            state=state,
            message="" if state in ("running", "finished") else _message(left, store),
            stage="replay" if store.state.is_replay else "search",
            detail="",
            done=done.done,
            total=expected_outcomes(store),
            found=done.found,
            searched=done.searched,
            queries=done.queries,
        )


def _state(running: bool, written: RunState) -> RunState:
    if running:
        return "running"
    # "finished" of an unfinished campaign: its search is finished, its control is not.
    return "interrupted" if written in ("running", "finished") else written


def _message(left: CampaignStatus, store: Store) -> str:
    """Return why it stopped, and which part of it is finished."""
    of_search = SEARCH_FINISHED if store.state.finished else ""
    why = left.message or (KILLED if left.state == "running" else "")
    return "; ".join(filter(None, [why, of_search]))


def _read_status(folder: Path) -> CampaignStatus | None:
    path = Path(folder) / LIVE_NAME
    try:
        left: CampaignStatus = validated(
            CampaignStatus, read_json(read_regular(path, _MOST_BYTES, inside=folder))
        )
        moment(left.updated_at)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{path} can't be read ({reason(error)}); delete it: only the live view is in it"
        ) from error
    return left


def _killed_early(store: Store) -> CampaignStatus:
    """Return the status of a campaign whose process was killed before it wrote one."""
    began = store.created_at.isoformat(timespec="seconds")
    return replace(
        first_status(store.folder), pid=None, host="", started_at=began, updated_at=began
    )
