"""Whether the seconds that a bench computes for a longer way to the device are those that are measured there.

python tests/benchmarks/delays.py --data FOLDER [--pair LeNet-5 ...] [--seeds 10] [--delays 0 5 20 100]

The same searches, one at a time, on this machine as the device; each byte that its agent sends arrives the delay
later, so that every round trip takes so much longer. "Measured" is the wall clock of the search stage for each
seed; "computed" is the bench's seconds (work, no waiting) without a delay, and the delay times the counted round trips and
those that confirm the findings, one each here. What a seed's search waits for besides (threads, the store) is in
the first only, and is seen at no delay. "Added" is by how much the wall clock grew for each round trip; that is to be
the delay. What is found must be the same.
"""

import argparse
import queue
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from machine import own_home
from rich.console import Console
from rich.table import Table
from shared_models import PAIRS

from edgeflare import Event, config_from, run_campaign
from edgeflare.campaign import Stage, Step
from edgeflare.devices import Completed, Device, Stream, Transport, connect
from edgeflare.errors import DeviceError
from edgeflare.store import Store

STRATEGIES: dict[str, dict[str, Any]] = {
    "dflare-reference": {"strategy": "dflare", "options": {"variant": "reference"}},
    "boundary": {"strategy": "boundary", "options": {"crossing": "least-l2", "effort": 64}},
}
"""Stated in full, since what is left open depends on the time of a query, and so on the delay."""
_CHUNK = 1 << 16


class LateStream:
    """A stream whose bytes arrive `delay_s` seconds after the program has written them."""

    def __init__(self, inner: Stream, delay_s: float) -> None:
        self._inner = inner
        self._delay_s = delay_s
        self._under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        self._arrived = b""
        self._ended = False
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        data = b"some"
        while data:
            try:
                data = self._inner.read(_CHUNK)
            except (DeviceError, OSError, ValueError):  # a link that fails, or is closed, ends here
                data = b""
            self._under_way.put((time.perf_counter() + self._delay_s, data))

    def read(self, n: int) -> bytes:
        """Return what has arrived, waiting for it; ``b""`` at the end."""
        if not self._arrived and not self._ended:
            due, self._arrived = self._under_way.get()
            self._ended = not self._arrived
            time.sleep(max(0.0, due - time.perf_counter()))
        data, self._arrived = self._arrived[:n], self._arrived[n:]
        return data

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks at once."""
        self._inner.write(blocks)

    def stderr_tail(self) -> str:
        """Return the last lines of stderr."""
        return self._inner.stderr_tail()

    def exit_status(self, timeout: float) -> int | None:
        """Wait for the program to end."""
        return self._inner.exit_status(timeout)

    def close(self) -> None:
        """End the program."""
        self._inner.close()


class LateTransport:
    """A transport whose streams are late."""

    def __init__(self, inner: Transport, delay_s: float) -> None:
        self.name = inner.name
        self._inner = inner
        self._delay_s = delay_s

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command, without a delay."""
        return self._inner.run(arguments, stdin, timeout=timeout)

    def open(self, arguments: Sequence[str]) -> Stream:
        """Start the device's Python command."""
        return LateStream(self._inner.open(arguments), self._delay_s)

    def put(self, local: Path, remote: str) -> None:
        """Copy a file, without a delay."""
        self._inner.put(local, remote)

    def close(self) -> None:
        """End the connection."""
        self._inner.close()


class Watch:
    """Takes the time of the search stage."""

    def __init__(self) -> None:
        self._began = self._ended = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stage) and event.name == "search":
            self._began = time.perf_counter()
        elif isinstance(event, Step) and self._began:
            self._ended = time.perf_counter()

    @property
    def seconds(self) -> float:
        """From its begin to the end of its last search."""
        return self._ended - self._began


class Run(NamedTuple):
    """Means of the searches of one campaign, each confirmed by one round trip more, and what they found."""

    wall_s: float
    seconds: float
    round_trips: float
    confirmations: float
    found: frozenset[tuple[str, str, str | None]]


def run(data: Path, pair: str, strategy: str, seeds: int, delay_s: float) -> Run:
    """Run one campaign."""
    files = PAIRS[pair]

    def late(device: Device, ask: Callable[[str], str | None] | None = None) -> Transport:
        return LateTransport(connect(device, ask), delay_s)

    with TemporaryDirectory() as folder:
        values: dict[str, Any] = {
            "original": {"path": data / files.original, "input": files.entry},
            "deployed": {"path": data / files.deployed, "input": files.entry},
            "seeds": {"path": data / files.images, "limit": seeds},
            "search": {
                "max_queries": 5000,
                "timeout_s": 0,
                "confirmations": 1,
                **STRATEGIES[strategy],
            },
            "devices": ["local"],
            "concurrency": 1,
            "out": Path(folder) / "campaign",
        }
        watch = Watch()
        config = config_from(values, "benchmark")
        with Store.open(run_campaign(config, connect=late, progress=watch)) as store:
            outcomes = list(store.outcomes())
    searched = [one for one in outcomes if one.searched]
    return Run(
        watch.seconds / len(searched),
        statistics.fmean(one.seconds for one in searched),
        statistics.fmean(one.round_trips for one in searched),
        statistics.fmean(one.confirmation_queries for one in searched),
        frozenset((one.seed_id, one.status.value, one.trigger) for one in outcomes),
    )


def table_of(data: Path, pairs: Sequence[str], seeds: int, delays_ms: Sequence[float]) -> Table:
    """Return measured beside computed seconds. Ends the program where findings differ."""
    table = Table(
        *("pair", "strategy", "delay ms", "round trips", "confirmed"),
        *("measured s", "computed s", "ratio", "added ms a trip"),
    )
    for pair in pairs:
        for strategy in STRATEGIES:
            here = run(data, pair, strategy, seeds, 0.0)
            for delay_ms in delays_ms:
                there = run(data, pair, strategy, seeds, delay_ms / 1e3) if delay_ms else here
                if there.found != here.found:
                    raise SystemExit(f"{pair}: {strategy} finds other things {delay_ms} ms away")
                trips = here.round_trips + here.confirmations
                computed = here.seconds + trips * delay_ms / 1e3
                table.add_row(
                    *(pair, strategy, f"{delay_ms:g}", f"{here.round_trips:.1f}", f"{trips:.1f}"),
                    *(f"{there.wall_s:.3f}", f"{computed:.3f}"),
                    f"{there.wall_s / computed:.2f}",
                    f"{1e3 * (there.wall_s - here.wall_s) / trips:.1f}" if delay_ms else "",
                )
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pair", nargs="+", choices=list(PAIRS), default=["LeNet-5"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--delays", nargs="+", type=float, default=[0, 5, 20, 100], metavar="MS")
    arguments = parser.parse_args()
    with own_home():
        table = table_of(arguments.data, arguments.pair, arguments.seeds, arguments.delays)
        Console(width=140).print(table)


if __name__ == "__main__":
    main()
