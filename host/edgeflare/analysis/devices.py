"""What each device of a campaign did, and whose triggering inputs work on whom."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from edgeflare.store import OutcomeRecord, ReplayRecord
from edgeflare.types import Decision, Status


@dataclass(frozen=True)
class DeviceFigures:
    """What one device did: the seeds it finished, those searched, those found, and search queries.

    `replica` is the device's own name where each device searches for itself, else "".
    `success_rate` is found / searched, None while nothing was searched.
    """

    name: str
    replica: str
    finished: int
    searched: int
    found: int
    failed: int
    queries: int
    success_rate: float | None


@dataclass(frozen=True)
class Transfer:
    """How many triggering inputs of `replica` were tried on another device, and trigger there, too.

    Those are the inputs of status "found" and "seed-deviates". `rate` is deviating / tried.
    """

    replica: str
    on_device: str
    tried: int
    deviating: int
    rate: float


class DeviceCounts:
    """Counts the outcomes of each device as they pass by."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], Counter[str]] = {}

    def add(self, outcome: OutcomeRecord) -> None:
        """Count an outcome; one that names no device is nobody's."""
        if not outcome.device_name:
            return
        count = self._counts.setdefault((outcome.device_name, outcome.replica), Counter())
        count["finished"] += 1
        count["searched"] += outcome.searched
        count["found"] += outcome.status is Status.FOUND
        count["failed"] += outcome.status is Status.FAILED
        count["queries"] += outcome.search_queries

    def figures(self) -> tuple[DeviceFigures, ...]:
        """Return a row for each device, by name."""
        return tuple(
            DeviceFigures(
                name=name,
                replica=replica,
                finished=count["finished"],
                searched=count["searched"],
                found=count["found"],
                failed=count["failed"],
                queries=count["queries"],
                success_rate=count["found"] / count["searched"] if count["searched"] else None,
            )
            for (name, replica), count in sorted(self._counts.items())
        )


def transfers(replays: Iterable[ReplayRecord]) -> tuple[Transfer, ...]:
    """Return a row for each pair of devices that shared triggering inputs, by name."""
    tried: Counter[tuple[str, str]] = Counter()
    deviating: Counter[tuple[str, str]] = Counter()
    for replay in replays:
        pair = (replay.replica, replay.on_device)
        tried[pair] += 1
        deviating[pair] += replay.decision is Decision.DEVIATION
    return tuple(
        Transfer(*pair, count, deviating[pair], deviating[pair] / count)
        for pair, count in sorted(tried.items())
    )
