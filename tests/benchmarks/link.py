"""What a link costs: queries per second and how busy the device is, on a recorded query stream.

python tests/benchmarks/link.py --data FOLDER [--repeats 3] [--seconds 3] [--only LeNet-1 ...] [--links local ...]

No original model and no search: samples are drawn once and asked again and again, the requests' queue
kept full. Beside each link, in the same run, stand the limit (the runtime in a loop in a process of
its own) and one request at a time over the same link, of which the gain is. All run on the same cores,
the host's end and sshd too; "cores" are all that were busy on the machine, whatever for. Medians of the
repeats; "device busy" is the agent's time at work on requests against its time in all, "host CPU" the
host process's own processor time for a query; latency is from submitting a request to its reply, the
wait in the queue that is kept full included.
"""

import argparse
import resource
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bare import bare_rate
from links import LINKS, devices
from machine import busy_core_seconds
from rich.console import Console
from rich.table import Column, Table
from shared_models import PAIRS, images_of, input_of, runtime_of
from streams import recorded_stream

from edgeflare.devices import Device, DeviceSession, open_device
from edgeflare.devices.session.replies import Reply
from edgeflare.models import InputSpec
from edgeflare.types import Sample

MODELS = ("LeNet-1", "LeNet-5", "ResNet-8", "EfficientNet-Lite0")
MODES = ("bare loop", "one at a time", "pipelined")
SAMPLES_BYTES = 8 << 20
MOST_SAMPLES = 500


class Measured(NamedTuple):
    """One run; seconds of each query, and per query of the host's own processor time."""

    queries_per_s: float
    latencies_s: Sequence[float]
    busy: float | None = None
    window: int | None = None
    host_s: float | None = None
    cores: float | None = None


class Stream:
    """Asks the samples over and over, and notes when each reply came."""

    def __init__(self, session: DeviceSession, samples: Sequence[Sample]) -> None:
        self._session = session
        self._samples = cycle(samples)
        self._changed = threading.Condition()
        self._under_way = 0
        self._low = 0
        self._failure: BaseException | None = None
        self.latencies_s: list[float] = []

    def one_at_a_time(self, until: float) -> None:
        """Ask the next when the last is answered: what people write by hand."""
        while time.perf_counter() < until:
            began = time.perf_counter()
            self._session.submit([next(self._samples)]).result()
            self.latencies_s.append(time.perf_counter() - began)

    def pipelined(self, until: float) -> None:
        """Keep more requests queued than the session's window takes."""
        while time.perf_counter() < until:
            window = self._session.window
            with self._changed:
                self._low = window + window // 2
                self._changed.wait_for(lambda: self._under_way <= self._low)
                room = 2 * window + 1 - self._under_way
            for _ in range(room):
                self._submit()
            if self._failure is not None:
                raise self._failure

    def drain(self) -> None:
        """Wait until everything asked is answered."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0)

    def _submit(self) -> None:
        with self._changed:
            self._under_way += 1
        began = time.perf_counter()

        def answered(reply: "Future[Reply]") -> None:
            self._failure = self._failure or reply.exception()
            self.latencies_s.append(time.perf_counter() - began)
            with self._changed:
                self._under_way -= 1
                if self._under_way <= self._low:
                    self._changed.notify()

        self._session.submit([next(self._samples)]).add_done_callback(answered)


def measure(
    session: DeviceSession, samples: Sequence[Sample], mode: str, seconds: float
) -> Measured:
    """Warm up until the window has settled, then measure."""
    stream = Stream(session, samples)
    run: Callable[[float], None] = stream.pipelined if mode == "pipelined" else stream.one_at_a_time
    run(time.perf_counter() + max(1.0, seconds / 4))
    session.ping()
    before, cpu, cores = session.health, _host_cpu_s(), busy_core_seconds()
    began = time.perf_counter()
    first = len(stream.latencies_s)
    run(began + seconds)
    taken = time.perf_counter() - began
    latencies = stream.latencies_s[first:]
    cpu, used = _host_cpu_s() - cpu, busy_core_seconds()
    session.ping()
    after = session.health
    window = session.window
    stream.drain()
    return Measured(
        len(latencies) / taken,
        latencies,
        (after.busy_s - before.busy_s) / (after.uptime_s - before.uptime_s),
        window,
        cpu / len(latencies),
        None if used is None or cores is None else (used - cores) / taken,
    )


def _host_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Subject(NamedTuple):
    """A deployed model with its stream."""

    name: str
    model: Path
    spec: InputSpec
    samples: list[Sample]

    @classmethod
    def of(cls, data: Path, name: str) -> "Subject":
        """Load what is asked of a model."""
        pair = PAIRS[name]
        images = images_of(data, pair)
        length = min(MOST_SAMPLES, SAMPLES_BYTES // images[0].nbytes)
        model = data / pair.deployed
        return cls(name, model, input_of(model, pair.entry), recorded_stream(images, length))


Runs = dict[tuple[str, str, str], list[Measured]]


def run_once(
    subjects: Sequence[Subject], ways: dict[str, Device], seconds: float, runs: Runs
) -> None:
    """Measure everything once, in turn."""
    for subject in subjects:
        bare = bare_rate(
            subject.model, runtime_of(subject.model), subject.spec, subject.samples, seconds
        )
        runs[subject.name, "", "bare loop"].append(Measured(bare.queries_per_s, bare.seconds))
        for name, device in ways.items():
            session = open_device(device, subject.model)
            try:
                session.configure(subject.spec, None)
                for mode in MODES[1:]:
                    measured = measure(session, subject.samples, mode, seconds)
                    runs[subject.name, name, mode].append(measured)
            finally:
                session.close()


def table_of(runs: Runs) -> Table:
    """Return the medians."""
    table = Table(
        *(Column(name, no_wrap=True) for name in ("model", "link", "requests", "queries/s")),
        *(
            "of bare", "gain", "device busy", "median ms", "p99 ms", "window", "host CPU ms",
            "cores",
        ),
    )  # fmt: skip
    last_link = next(reversed(runs))[1]
    for (model, link, mode), several in runs.items():
        rate = _median([one.queries_per_s for one in several])
        bare = _median([one.queries_per_s for one in runs[model, "", "bare loop"]])
        blocking = _median([one.queries_per_s for one in runs.get((model, link, MODES[1]), [])])
        latencies = np.concatenate([one.latencies_s for one in several]) * 1e3
        table.add_row(
            "" if link else model,
            link if mode != MODES[2] else "",
            mode,
            _shown(rate, ".0f" if rate > 200 else ".1f"),
            _shown(rate / bare, ".2f"),
            _shown(rate / blocking if mode == MODES[2] else None, ".1f", " x"),
            _shown(_median([one.busy for one in several]), ".3f"),
            _shown(float(np.median(latencies)), ".3g"),
            _shown(float(np.percentile(latencies, 99)), ".3g"),
            _shown(_median([one.window for one in several]), ".0f"),
            _shown(_median([1e3 * one.host_s for one in several if one.host_s]), ".3f"),
            _shown(_median([one.cores for one in several]), ".2f"),
            end_section=link == last_link and mode == MODES[2],
        )
    return table


def _median(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else float("nan")


def _shown(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None or value != value else f"{value:{form}}{unit}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--links", nargs="+", choices=LINKS, default=LINKS)
    arguments = parser.parse_args()
    subjects = [Subject.of(arguments.data, name) for name in arguments.only]
    runs: Runs = defaultdict(list)
    with devices(tuple(arguments.links)) as ways:
        for _ in range(arguments.repeats):
            run_once(subjects, ways, arguments.seconds, runs)
    Console(width=140).print(table_of(runs))


if __name__ == "__main__":
    main()
