"""Unit costs from which a large lab is reckoned: transactions, samples, bytes, a query's work on the host.

python tests/benchmarks/lab/scale.py --data FOLDER [--repeats 5] [--only store samples host devices dask]

FOLDER has the shared models. Rows are those of campaigns of LeNet-5's pair and 100 seeds on this machine, one with
`boundary`, one with `dflare` (100 queries at most a search). They are added again, under names of other seeds, to a campaign in SQLite and in PostgreSQL (Debian's server on loopback, its
data beside SQLite's), by 1 and by 10 processes. Samples go to a folder and to moto's S3 server, a process of its own on
loopback: a stand-in that costs more than a real server's software, and has no network. "host" counts this process's
processor time and the bytes of the link while it searches with a local agent; the original's inference is in it.
EfficientNet-Lite0 has inputs of 224x224x3. "devices" runs the same campaign with 1 and with 9
devices. "dask" is a no-op task of a LocalCluster of 2 workers. Prints Markdown: medians, least and most.
"""

import argparse
import json
import logging
import os
import pickle
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeflare import config_from, run_campaign, summarize
from edgeflare.campaign import Stage
from edgeflare.devices import connect
from edgeflare.errors import StoreError
from edgeflare.store import SeedInput, Store
from edgeflare.store.records import SeedAnswer
from edgeflare.store.samples import open_samples

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "helpers"))

from machine import own_home
from memory import peak_bytes
from shared_models import PAIRS, images_of

STRATEGIES = ("boundary", "dflare")
_SMALL, _LARGE = "LeNet-5", "EfficientNet-Lite0"
SEEDS = 100
QUERIES = 100
"""Of a search of `dflare`, at most."""
SHAPES = ((28, 28, 1), (224, 224, 3))
WRITERS = (1, 10)
OUTCOMES = 400
"""Rows that each writer adds."""
TASKS = 10_000
DEVICES = (1, 9)


class Cost(NamedTuple):
    """What was measured, in which unit, and the values of all runs."""

    what: str
    unit: str
    values: Sequence[float]


# Searches on this machine


class CountingStream:
    """A stream that adds the bytes of both directions to `sizes`; all else is the inner one's."""

    def __init__(self, inner: Any, sizes: list[int]) -> None:
        self._inner = inner
        self._sizes = sizes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        self._sizes[0] += sum(memoryview(one).nbytes for one in blocks)
        self._inner.write(blocks)

    def read(self, n: int) -> bytes:
        got: bytes = self._inner.read(n)
        self._sizes[1] += len(got)
        return got


class CountingTransport:
    """A transport whose streams count their bytes."""

    def __init__(self, inner: Any, sizes: list[int]) -> None:
        self._inner = inner
        self._sizes = sizes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, arguments: Sequence[str]) -> Any:
        return CountingStream(self._inner.open(arguments), self._sizes)


def processor_s() -> float:
    """Return this process's own processor seconds: agents are processes of their own."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def searched(case: str, data: Path, devices: int, keep: Path | None) -> dict[str, float]:
    """Run a campaign in this process; return its counts from the beginning of the searches on."""
    sizes = [0, 0]
    at_search: list[float] = []
    most = {"threads": 0, "files": 0}

    def watch(event: Any) -> None:
        most["threads"] = max(most["threads"], threading.active_count())
        most["files"] = max(most["files"], sum(1 for _ in Path("/proc/self/fd").iterdir()))
        if isinstance(event, Stage) and event.name == "search":
            at_search[:] = time.perf_counter(), processor_s(), *sizes

    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder) / "devices.toml"
        names = [f"board{index}" for index in range(devices)]
        inventory.write_text("".join(f'[devices.{one}]\ntransport = "local"\n' for one in names))
        changes: dict[str, Any] = {"devices": names, "inventory": inventory, "workers": 0}
        pair = PAIRS[_LARGE if case == _LARGE else _SMALL]
        images = Path(folder) / "seeds.npz"
        np.savez(images, images=images_of(data, pair)[: 8 if case == _LARGE else SEEDS])
        budget = {"dflare": QUERIES, _LARGE: 20}.get(case)
        values = {
            "original": {"path": data / pair.original, "input": pair.entry},
            "deployed": {"path": data / pair.deployed, "input": pair.entry},
            "seeds": {"path": images},
            "search": {"strategy": "boundary" if case == "boundary" else "dflare", "timeout_s": 0}
            | ({} if budget is None else {"max_queries": budget}),
            "allow_disagreement": True,
            "out": keep or Path(folder) / "c",
        }
        config = config_from(values | changes, "benchmark")
        campaign = run_campaign(
            config,
            progress=watch,
            connect=lambda device, ask: CountingTransport(connect(device, ask), sizes),  # type: ignore[arg-type,return-value]
        )
        ended = time.perf_counter(), processor_s(), *sizes
        wall, cpu, up, down = (
            after - before for before, after in zip(at_search, ended, strict=True)
        )
        summary = summarize(campaign)
        queries = summary.total_queries["search"] + summary.total_queries["confirmation"]
        database = campaign / "campaign.sqlite"
        with Store.open(campaign) as store:
            files = [size for _, size in open_samples(store.samples_place).sizes()]
            seeds = store.seed_count()
        return {
            "wall": wall,
            "cpu": cpu,
            "up": up,
            "down": down,
            "queries": queries,
            "all": sum(summary.total_queries.values()) - summary.total_queries["host_only"],
            "seeds": seeds,
            "database": database.stat().st_size,
            "samples": len(files),
            "bytes": sum(files),
            "peak": peak_bytes(),
            **most,
        }


def in_process(*words: str | Path) -> dict[str, Any]:
    """Run this script for one measurement in a process of its own."""
    command = [sys.executable, __file__, *map(str, words)]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return result


def host_costs(data: Path, repeats: int) -> Iterator[Cost]:
    """A query's and a search's work on the host, and its bytes on the link."""
    for case in (*STRATEGIES, _LARGE):
        runs = [in_process("--data", data, "--search", case) for _ in range(repeats)]
        named = {"boundary": "`boundary`, LeNet-5 28x28x1", "dflare": "`dflare`, LeNet-5 28x28x1"}
        name = named.get(case, f"`dflare`, {case} 224x224x3")

        def per(
            top: str, bottom: str, factor: float = 1, runs: list[dict[str, Any]] = runs
        ) -> list[float]:
            return [factor * run[top] / run[bottom] for run in runs]

        yield Cost(
            f"{name}: processor of the host a search query", "ms", per("cpu", "queries", 1e3)
        )
        yield Cost(
            f"{name}: clock a search query, 1 local device", "ms", per("wall", "queries", 1e3)
        )
        yield Cost(f"{name}: processor of the host a search", "ms", per("cpu", "seeds", 1e3))
        yield Cost(f"{name}: link, to the device, a query", "bytes", per("up", "queries"))
        yield Cost(f"{name}: link, from the device, a query", "bytes", per("down", "queries"))
        if case in STRATEGIES:
            yield Cost(f"{name}: device queries a seed, all stages", "", per("all", "seeds"))
            yield Cost(
                f"{name}: database a seed, all tables and indexes",
                "bytes",
                per("database", "seeds"),
            )
            yield Cost(f"{name}: sample files a seed", "", per("samples", "seeds"))
            yield Cost(f"{name}: bytes of samples a seed", "bytes", per("bytes", "seeds"))


def device_costs(data: Path, repeats: int) -> Iterator[Cost]:
    """What another device costs the campaign's process."""
    runs = {
        count: [
            in_process("--data", data, "--search", "dflare", "--devices", str(count))
            for _ in range(repeats)
        ]
        for count in DEVICES
    }
    few, many = DEVICES
    yield Cost(
        f"campaign's process: peak memory, {few} device",
        "MB",
        [one["peak"] / 1e6 for one in runs[few]],
    )
    for name, unit, scale in (("peak", "MB", 1e6), ("threads", "", 1), ("files", "", 1)):
        more = [
            (b[name] - a[name]) / (many - few) / scale
            for a, b in zip(runs[few], runs[many], strict=True)
        ]
        yield Cost(f"campaign's process: {name} each further device", unit, more)


# The store


def writer(folder: Path, records: Path, first: int, count: int) -> None:
    """Add outcomes, once the parent says so; print when it began and ended."""
    outcomes = pickle.loads(records.read_bytes())
    with Store.open(folder) as store:
        store.add_outcome(replace(outcomes[0], seed_id=f"s{first}"))  # connected, and imported
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.time()
        done = 0
        with suppress(StoreError):  # SQLite's lock was not got within 10 s
            for number in range(1, count):
                chosen = outcomes[number % len(outcomes)]
                store.add_outcome(replace(chosen, seed_id=f"s{first + number}"))
                done += 1
        print(json.dumps([began, time.time(), done]), flush=True)


class Written(NamedTuple):
    """Milliseconds a transaction of one process, transactions a second of all, and who gave up."""

    each_ms: float
    a_second: float
    gave_up: int


def written(folder: Path, records: Path, writers: int, first: int) -> Written:
    """Let processes write side by side."""
    command = [sys.executable, __file__, "--data", ".", "--write", folder, "--records", records]
    started = [
        subprocess.Popen(
            [*map(str, command), "--first", str(first + index * OUTCOMES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(writers)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    times = [json.loads(one.communicate()[0].splitlines()[-1]) for one in started]
    each = sum(ended - began for began, ended, _ in times) / sum(done for *_, done in times)
    span = max(ended for _, ended, _ in times) - min(began for began, *_ in times)
    gave_up = sum(done < OUTCOMES - 1 for *_, done in times)
    return Written(1e3 * each, sum(done for *_, done in times) / span, gave_up)


def filled(folder: Path, source: Path, seeds: int, database: str | None) -> tuple[Store, Path]:
    """Make a campaign with so many seeds, and the outcomes of `source` to be added to it."""
    store = Store.create(folder, {"seed": 1}, environment={"numpy": "2"}, database=database)
    device = store.add_device({"board": "pi"}, "pi")
    image = np.zeros((28, 28, 1), np.uint8)
    store.add_seeds(SeedInput(f"s{number}", image) for number in range(seeds))
    with Store.open(source) as other:
        outcomes = [replace(one, device=device) for one in other.outcomes()]
        for one in outcomes:
            if one.trigger:
                store.put_sample(other.get_sample(one.trigger))
    records = folder.with_suffix(".pickle")
    records.write_bytes(pickle.dumps(outcomes))
    return store, records


def stored_bytes(store: Store, table: str) -> int:
    """Return the bytes of a table with its indexes."""
    with store._database.reading() as connection:
        if connection.dialect.name == "postgresql":
            query = f"SELECT pg_total_relation_size('{table}')"
        else:
            query = (
                "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN "
                f"(SELECT name FROM sqlite_master WHERE tbl_name = '{table}')"
            )
        return int(connection.exec_driver_sql(query).scalar_one())


def store_costs(data: Path, repeats: int) -> Iterator[Cost]:
    """Outcomes in SQLite and in PostgreSQL: time of a transaction, bytes of a row."""
    from postgres_server import own_server

    with tempfile.TemporaryDirectory() as name, own_server() as server:
        folder = Path(name)
        sources = {one: folder / one for one in STRATEGIES}
        for strategy, source in sources.items():
            in_process("--data", data, "--search", strategy, "--keep", source)
        for kind in ("SQLite", "PostgreSQL"):
            for strategy, source in sources.items():
                rows: list[float] = []
                answers: list[float] = []
                costs: dict[int, list[Written]] = {count: [] for count in WRITERS}
                for number in range(repeats):
                    url = server.new_database() if kind == "PostgreSQL" else None
                    seeds = sum(WRITERS) * OUTCOMES
                    store, records = filled(
                        folder / f"{kind}-{strategy}-{number}", source, seeds, url
                    )
                    with store:
                        first = 0
                        for count in WRITERS if strategy == STRATEGIES[0] else WRITERS[:1]:
                            costs[count].append(written(store.folder, records, count, first))
                            first += count * OUTCOMES
                        rows.append(stored_bytes(store, "outcomes") / count_of(store, "outcomes"))
                        with Store.open(source) as other:
                            known = [one.outputs for one in other.seeds("") if one.outputs]
                        if known and number == 0:
                            added = [answer_on(i, known[i % len(known)]) for i in range(seeds)]
                            store.add_seed_answers(added)
                            answers.append(stored_bytes(store, "seed_answers") / seeds)
                for count, each in costs.items():
                    if each:
                        writers = f"{count} writer" + "s" * (count > 1)
                        yield Cost(
                            f"{kind}: an outcome of `{strategy}`, {writers}",
                            "ms",
                            [one.each_ms for one in each],
                        )
                        yield Cost(
                            f"{kind}: outcomes of `{strategy}` together, {writers}",
                            "a second",
                            [one.a_second for one in each],
                        )
                if many := costs[WRITERS[-1]]:
                    gave_up = [one.gave_up for one in many]
                    yield Cost(f"{kind}: of 10 writers, gave up after 10 s", "", gave_up)
                yield Cost(
                    f"{kind}: a row of outcomes of `{strategy}`, with its indexes", "bytes", rows
                )
                if answers:
                    yield Cost(f"{kind}: a row of seed answers, with its indexes", "bytes", answers)
        yield Cost(
            "PostgreSQL: connections of one process that has a store open",
            "",
            [_connections(server, folder)],
        )


def count_of(store: Store, table: str) -> int:
    """Return how many rows a table has."""
    with store._database.reading() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def answer_on(number: int, answer: Any) -> SeedAnswer:
    """Return a seed's answers as those on another seed."""
    return SeedAnswer(f"s{number}", answer.original, answer.deployed, answer.decision)


def _connections(server: Any, folder: Path) -> float:
    """Return how many connections one process has after writes from 8 threads, as a campaign's."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'edgeflare'"
    before = int(server.psql(count))
    with Store.create(folder / "connections", {"seed": 1}, database=server.new_database()) as store:
        threads = [
            threading.Thread(target=setattr, args=(store.state, "sample_rate", 1)) for _ in range(8)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return int(server.psql(count)) - before


# Samples


@contextmanager
def s3_server() -> Iterator[str]:
    """Give a bucket of moto's server, a process of its own."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stated = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    os.environ.update(stated)
    try:
        import boto3

        until = time.monotonic() + 60
        while True:
            try:
                boto3.client("s3").create_bucket(Bucket="samples")
                break
            except OSError:
                if time.monotonic() > until:
                    raise
            except Exception as error:
                if "EndpointConnection" not in type(error).__name__ or time.monotonic() > until:
                    raise
            time.sleep(0.2)
        yield "s3://samples/benchmark"
    finally:
        running.kill()
        running.wait()
        for name in stated:
            del os.environ[name]


def sample_costs(_: Path, repeats: int) -> Iterator[Cost]:
    """One sample and 256 of them, put and read, in a folder and on a local S3 server."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, s3_server() as url:
        for shape in SHAPES:
            name = "x".join(map(str, shape))
            for kind, place in (
                ("folder", f"{folder}/{name}"),
                ("local S3 server", f"{url}/{name}"),
            ):
                samples = open_samples(place)
                samples.make()
                samples.put(np.zeros(shape, np.uint8))  # connected
                single: list[float] = []
                batch: list[float] = []
                read: list[float] = []
                for _ in range(repeats):
                    images = rng.integers(0, 256, (20 + 256, *shape), np.uint8)
                    puts = [timed(samples.put, one) for one in images[:20]]
                    single.append(1e3 * statistics.median(took for took, _ in puts))
                    took, digests = timed(samples.put_all, list(images[20:]))
                    batch.append(1e3 * took / 256)
                    fresh = open_samples(place)
                    fresh.get(digests[0])
                    gets = [timed(fresh.get, one)[0] for one in digests[1:50]]
                    read.append(1e3 * statistics.median(gets))
                yield Cost(f"{kind}: a sample {name} written", "ms", single)
                yield Cost(f"{kind}: a sample {name} of 256 written together", "ms", batch)
                yield Cost(f"{kind}: a sample {name} read", "ms", read)
            size = len(samples.file_of(np.zeros(shape, np.uint8))[1])
            yield Cost(f"a sample {name}", "bytes", [size])


def timed(act: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the seconds that a call took, and what it returned."""
    began = time.perf_counter()
    result = act(*arguments)
    return time.perf_counter() - began, result


# Dask


def _nothing(_: int) -> None:
    pass


def dask_costs(_: Path, repeats: int) -> Iterator[Cost]:
    """A no-op task on a scheduler and two workers on loopback."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.gather(client.map(_nothing, range(100), pure=False))
        each = []
        for _ in range(repeats):
            took, _ = timed(lambda: client.gather(client.map(_nothing, range(TASKS), pure=False)))
            each.append(1e3 * took / TASKS)
    yield Cost(f"Dask: a no-op task, of {TASKS:,} at once, 2 workers", "ms", each)


def main() -> None:
    """Print the table, or one measurement in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("store", "samples", "host", "devices", "dask")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--search", help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--devices", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--records", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.search:
        print(json.dumps(searched(chosen.search, chosen.data, chosen.devices, chosen.keep)))
        return
    if chosen.write:
        writer(chosen.write, chosen.records, chosen.first, OUTCOMES)
        return
    measured: dict[str, Callable[[Path, int], Iterator[Cost]]] = {
        "store": store_costs,
        "samples": sample_costs,
        "host": host_costs,
        "devices": device_costs,
        "dask": dask_costs,
    }
    print("| what | median | unit | least to most |\n|---|---|---|---|")
    with own_home():
        for part in chosen.only:
            for what, unit, values in measured[part](chosen.data, chosen.repeats):
                median, least, most = statistics.median(values), min(values), max(values)
                print(f"| {what} | {median:.4g} | {unit} | {least:.4g} to {most:.4g} |", flush=True)


if __name__ == "__main__":
    main()
