"""The same small models for every runtime, TensorRT's stand-in of each generation, a user's runtime."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stand_in_tensorrt
from plugin_distributions import RUNTIME_ENTRIES, RUNTIME_SOURCE, RemoteAgent, write_distribution
from small_models import BUILDERS, TFLITE, VERSIONS, Load, open_axis_tflite
from ssh_servers import SshServer
from stand_in_engines import StandInGpu

from edgeflare.devices import connect
from edgeflare_agent.runtimes import Runtime, load


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """(runtime, model name) -> path of the file."""
    folder = tmp_path_factory.mktemp("models")

    def find(runtime: str, name: str) -> str:
        if runtime == "tflite" and name.startswith("open_"):
            axis = {"open_batch": 0, "open_channels": 3}[name]
            return str(open_axis_tflite(folder / f"{name}.tflite", axis))
        if runtime == "tflite":
            return str(TFLITE / f"{name}.tflite")
        path = folder / f"{name}.onnx"
        return str(path if path.exists() else BUILDERS[name](path))

    return find


@pytest.fixture(scope="session")
def remote_agent(
    openssh_server: SshServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RemoteAgent]:
    """The agent with the runtime of a distribution that only the host has installed, on a device behind sshd."""
    folder = tmp_path_factory.mktemp("mine")
    write_distribution(folder, "mine_for_edgeflare", RUNTIME_SOURCE, RUNTIME_ENTRIES, "mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        transport = connect(openssh_server.device())
        agent = RemoteAgent(transport, folder, tmp_path_factory.mktemp("device"))
        yield agent
        agent.close()
        transport.close()


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def gpu() -> StandInGpu:
    return StandInGpu()


@pytest.fixture
def library(version: str, monkeypatch: pytest.MonkeyPatch, gpu: StandInGpu) -> Any:
    return stand_in_tensorrt.install(version, monkeypatch, gpu)


@pytest.fixture
def load_here(library: Any, tmp_path: Path) -> Load:
    def load_it(path: str | Path, **options: Any) -> Runtime:
        return load(str(path), "tensorrt", options, str(tmp_path / "cache"))

    return load_it
