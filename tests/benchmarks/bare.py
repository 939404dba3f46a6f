"""The limit: preparing and inferring in a loop, one thread, in a process of its own without any link.

A script for the benchmarks; `bare_rate` runs it. It uses the agent's own code.
"""

import argparse
import json
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.runtimes import load


class Rate(NamedTuple):
    """What one loop reached; `seconds` are those of each query."""

    queries_per_s: float
    seconds: list[float]


def bare_rate(
    model: Path, runtime: str, spec: InputSpec, samples: list[NDArray[np.uint8]], seconds: float
) -> Rate:
    """Return what a process that does nothing else reaches with these samples, over and over."""
    return bare_rates(model, runtime, spec, samples, seconds, options={}, processes=1)[0]


def bare_rates(
    model: Path,
    runtime: str,
    spec: InputSpec,
    samples: list[NDArray[np.uint8]],
    seconds: float,
    *,
    options: dict[str, Any],
    processes: int,
) -> list[Rate]:
    """Return what each of several such processes reaches beside the others; `options` are the runtime's."""
    with TemporaryDirectory() as folder:
        stream = Path(folder) / "stream.npy"
        np.save(stream, np.stack(samples))
        command = [sys.executable, __file__, str(model), runtime, json.dumps(spec.to_json())]
        command += [str(stream), str(seconds), json.dumps(options)]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)
        ]
        said = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(f"the bare loop of {model} failed")
    return [Rate(**json.loads(text)) for text in said]


def main() -> None:
    """Loop, then print the rate as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("runtime")
    parser.add_argument("spec")
    parser.add_argument("stream")
    parser.add_argument("seconds", type=float)
    parser.add_argument("options", type=json.loads)
    arguments = parser.parse_args()
    spec = InputSpec.from_json(json.loads(arguments.spec))
    model = load(arguments.model, arguments.runtime, {"threads": 1, **arguments.options})
    samples = cycle(list(np.load(arguments.stream)))
    clock = time.perf_counter
    until = clock() + arguments.seconds / 4
    while clock() < until:
        model.run(prepare(next(samples), spec))
    taken = []
    began = before = clock()
    until = began + arguments.seconds
    while before < until:
        model.run(prepare(next(samples), spec))
        now = clock()
        taken.append(now - before)
        before = now
    print(json.dumps({"queries_per_s": len(taken) / (before - began), "seconds": taken}))


if __name__ == "__main__":
    main()
