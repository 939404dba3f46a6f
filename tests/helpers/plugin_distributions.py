"""Distributions with entry points; a user's runtime, brought to a device in the agent's zipapp."""

import pickle
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeflare.devices import Transport
from edgeflare.devices.provisioning.upload import agent_bundle

RUNTIME_SOURCE = """
from edgeflare_agent.runtimes.onnx import OnnxRuntime


class MineRuntime(OnnxRuntime):
    name = "mine"
    suffixes = (".mine",)
"""
"""The example: files of ONNX under a suffix of its own, and onnxruntime as the engine."""
RUNTIME_ENTRIES = {"edgeflare.runtimes/mine": "MineRuntime"}

_SERVER = """
import pickle, struct, sys
sys.path.insert(0, sys.argv[1])
from edgeflare_agent.runtimes import load
models, take, out = [], sys.stdin.buffer.read, sys.stdout.buffer
while True:
    size = take(4)
    if not size:
        break
    number, verb, arguments = pickle.loads(take(struct.unpack(">I", size)[0]))
    try:
        if verb == "load":
            models.append(load(*arguments))
            done = len(models) - 1, models[-1].inputs, models[-1].outputs
        else:
            done = getattr(models[number], verb)(*arguments)
        answer = pickle.dumps((done, None))
    except Exception as error:
        answer = pickle.dumps((None, error))
    out.write(struct.pack(">I", len(answer)) + answer)
    out.flush()
"""


def write_distribution(
    site: Path, module: str, source: str, entries: Mapping[str, str], name: str = "my-plugins"
) -> None:
    """Write a distribution, as pip installs it, into a folder that is or will be on ``sys.path``.

    `entries` has an object of the module for each ``group/name``.
    """
    info = site / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = []
    for entry, attribute in entries.items():
        group, _, one = entry.partition("/")
        lines.append(f"[{group}]\n{one} = {module}:{attribute}\n")
    (info / "entry_points.txt").write_text("".join(lines))
    (site / f"{module}.py").write_text(source)


_CORRUPTION = """
import numpy as np
from edgeflare_mutators import Corruption, Range

class Darken(Corruption):
    '''Subtract up to 200 levels.'''

    name = {name!r}
    limits = (Range("levels", 0.0, 200.0),)
    moving = ("levels",)

    def _apply(self, sample, params):
        return np.clip(np.rint(sample - params["levels"]), 0, 255).astype(np.uint8)

    def _words(self, params):
        return "darker by %.0f" % params["levels"]
"""


def install_corruption(site: Path, name: str) -> None:
    """Write a distribution whose corruption of images has this name."""
    module = f"survey_{name.replace('-', '_')}"
    source = _CORRUPTION.format(name=name)
    entry = {f"edgeflare.mutators/{name}": "Darken"}
    write_distribution(site, module, source, entry, f"{name}-pkg")


class RemoteAgent:
    """The agent's runtimes in a process on the device, behind a transport."""

    def __init__(self, transport: Transport, folder: Path, remote: Path) -> None:
        bundle = agent_bundle(folder, ["mine"])
        transport.put(bundle, str(remote / bundle.name))
        self._stream = transport.open(["-c", _SERVER, str(remote / bundle.name)])

    def ask(self, number: int, verb: str, *arguments: Any) -> Any:
        request = pickle.dumps((number, verb, arguments))
        self._stream.write([struct.pack(">I", len(request)) + request])
        done, error = pickle.loads(self._read(struct.unpack(">I", self._read(4))[0]))
        if error is not None:
            raise error
        return done

    def load(self, path: str, runtime: str, options: dict[str, Any]) -> "RemoteRuntime":
        return RemoteRuntime(self, *self.ask(0, "load", path, runtime, options))

    def close(self) -> None:
        self._stream.close()

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._stream.read(size - len(data))
            assert piece, self._stream.stderr_tail()
            data += piece
        return data


class RemoteRuntime:
    """A `Runtime` on the device."""

    def __init__(self, agent: RemoteAgent, number: int, inputs: Any, outputs: Any) -> None:
        self.inputs, self.outputs = inputs, outputs
        self._agent, self._number = agent, number

    def __getattr__(self, verb: str) -> Any:
        return lambda *arguments: self._agent.ask(self._number, verb, *arguments)
