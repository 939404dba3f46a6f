"""onnxruntime on a GPU: what it is given, and what happens where it falls back.

The library here knows CPUs only, so a session stands in that takes the providers of a GPU and tells which
nodes they run. One provider beside the CPU's is real: Azure's, which runs no node of these models.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from edgeflare_agent.errors import ModelError, RequestError, RuntimeMissingError
from edgeflare_agent.runtimes import load

CPU, CUDA, TENSORRT, AZURE = (
    f"{name}ExecutionProvider" for name in ("CPU", "CUDA", "Tensorrt", "Azure")
)
needs_azure = pytest.mark.skipif(
    AZURE not in onnxruntime.get_available_providers(),
    reason=f"this build of onnxruntime has no {AZURE}",
)
ModelFile = Callable[[str, str], str]


class Gpu:
    """What a session was asked for, and which providers can start."""

    def __init__(self) -> None:
        self.starts = [TENSORRT, CUDA, CPU]
        self.nodes = {TENSORRT: 3}
        self.asked: dict[str, Any] = {}
        self.preloaded = 0


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu()

    class Session(onnxruntime.InferenceSession):
        def __init__(
            self, path: str, settings: Any, providers: list[str], provider_options: Any, **rest: Any
        ) -> None:
            gpu.asked = dict(zip(providers, provider_options, strict=True))
            self._serving = [one for one in gpu.starts if one in (*providers, CPU)]
            super().__init__(path, settings, providers=[CPU], **rest)

        def get_providers(self) -> list[str]:
            return self._serving

        def get_provider_graph_assignment_info(self) -> list[Any]:
            return [
                SimpleNamespace(
                    ep_name=name,
                    get_nodes=lambda count=count: [SimpleNamespace(op_type="Conv")] * count,
                )
                for name, count in gpu.nodes.items()
            ]

    def preload() -> None:
        gpu.preloaded += 1

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [TENSORRT, CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "preload_dlls", preload, raising=False)
    return gpu


def test_the_tensorrt_provider_keeps_its_engines_in_the_cache(gpu, model_file, tmp_path) -> None:
    options = {
        "providers": [TENSORRT, CUDA],
        "provider_options": {TENSORRT: {"trt_fp16_enable": True}},
    }
    model = load(model_file("onnx", "float"), "onnx", options, str(tmp_path))
    assert gpu.asked == {
        TENSORRT: {
            "trt_fp16_enable": True,
            "trt_engine_cache_enable": True,
            "trt_engine_cache_path": str(tmp_path / "engines" / "ort"),
        },
        CUDA: {},
    }
    assert (tmp_path / "engines" / "ort").is_dir()
    assert gpu.preloaded == 1
    described = model.describe()
    assert described["providers"] == [TENSORRT, CUDA, CPU]
    assert described["nodes"] == {TENSORRT: 3}
    assert described["provider_options"] == {TENSORRT: {"trt_fp16_enable": True}}  # no paths


def test_a_cache_that_the_user_chose_stays(gpu: Gpu, model_file: ModelFile, tmp_path: Path) -> None:
    given = {"trt_engine_cache_enable": False}
    options = {"providers": [TENSORRT], "provider_options": {TENSORRT: given}}
    load(model_file("onnx", "float"), "onnx", options, str(tmp_path))
    assert gpu.asked[TENSORRT] == given
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("starts", "absent"),
    [([CPU], f"{TENSORRT}, {CUDA} and fell back to {CPU}"), ([CUDA, CPU], f"{TENSORRT} and fell")],
)
def test_a_provider_that_does_not_start_is_an_error(
    gpu: Gpu, model_file: ModelFile, tmp_path: Path, starts: list[str], absent: str
) -> None:
    gpu.starts = starts
    with pytest.raises(RuntimeMissingError, match=f"start {absent}"):
        load(model_file("onnx", "float"), "onnx", {"providers": [TENSORRT, CUDA]}, str(tmp_path))


@pytest.fixture(params=["it tells", "by a profile"])
def azure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library as it is, and an older one that doesn't tell which provider runs a node."""
    if request.param == "by a profile":
        leave_to_the_profile(monkeypatch)


def leave_to_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "get_provider_graph_assignment_info"
    for one in onnxruntime.InferenceSession.__mro__:
        if name in vars(one):
            monkeypatch.delattr(one, name)


@needs_azure
@pytest.mark.usefixtures("azure")
@pytest.mark.parametrize("providers", [[AZURE], [AZURE, CPU]])
def test_a_provider_that_runs_no_node_is_an_error(model_file, providers) -> None:
    with pytest.raises(
        RuntimeMissingError, match=rf"{AZURE} can't run (\d+) of the \1 nodes of .*onnx"
    ):
        load(model_file("onnx", "float"), "onnx", {"providers": providers})


@needs_azure
@pytest.mark.usefixtures("azure")
def test_a_fallback_that_is_allowed_is_reported(model_file: ModelFile) -> None:
    options = {"providers": [AZURE], "allow_fallback": True}
    model = load(model_file("onnx", "float"), "onnx", options)
    described = model.describe()
    assert list(described["nodes"]) == [CPU]
    assert described["nodes"][CPU] > 0
    image = np.random.default_rng(0).random((1, 8, 8, 1), np.float32)
    plain = load(model_file("onnx", "float"), "onnx", {})
    assert model.run(image)[0].tobytes() == plain.run(image)[0].tobytes()


@needs_azure
def test_where_nothing_can_be_told_a_fallback_is_not_ruled_out(model_file, monkeypatch) -> None:
    leave_to_the_profile(monkeypatch)

    def fails(*_: object) -> None:
        raise ValueError("no such axis")

    monkeypatch.setattr(onnxruntime.InferenceSession, "run", fails)
    with pytest.raises(RuntimeMissingError, match=f"whether {AZURE}"):
        load(model_file("onnx", "float"), "onnx", {"providers": [AZURE]})
    options = {"providers": [AZURE], "allow_fallback": True}
    assert load(model_file("onnx", "float"), "onnx", options).describe()["nodes"] is None


@pytest.mark.parametrize(
    ("listed", "nodes", "refused"),
    [
        ([TENSORRT, CUDA], {TENSORRT: 2, CUDA: 1}, None),
        ([TENSORRT, CUDA], {CUDA: 3}, None),
        ([CUDA], {CUDA: 3, CPU: 2}, f"{CUDA} can't run 2 of the 5 nodes"),
        ([TENSORRT, CUDA], {CPU: 4}, f"{TENSORRT}, {CUDA} can't run 4 of the 4 nodes"),
        ([CUDA, CPU], {CUDA: 3, CPU: 2}, None),
        ([CUDA, CPU], {CPU: 5}, f"{CUDA} can't run 5 of the 5 nodes"),
    ],
)
def test_the_cpu_runs_nodes_only_where_it_is_listed_and_never_all(
    gpu: Gpu,
    model_file: ModelFile,
    tmp_path: Path,
    listed: list[str],
    nodes: dict[str, int],
    refused: str | None,
) -> None:
    gpu.nodes = nodes
    options = {"providers": listed}
    if refused:
        with pytest.raises(RuntimeMissingError, match=refused):
            load(model_file("onnx", "float"), "onnx", options, str(tmp_path))
        options = {**options, "allow_fallback": True}
    model = load(model_file("onnx", "float"), "onnx", options, str(tmp_path))
    assert model.describe()["nodes"] == nodes


def test_on_the_cpu_nothing_changes(gpu: Gpu, model_file: ModelFile, tmp_path: Path) -> None:
    model = load(model_file("onnx", "float"), "onnx", {}, str(tmp_path))
    assert gpu.asked == {CPU: {}}
    assert gpu.preloaded == 0
    assert {"provider_options", "nodes"}.isdisjoint(model.describe())
    assert model.run(np.zeros((1, 8, 8, 1), np.float32))[0].shape == (1, 4)


@pytest.mark.parametrize("wrong", [[], "text", {CPU: 1}, {CPU: {"a": [1]}}, {CPU: {"a": None}}])
def test_provider_options_must_be_an_object_of_objects(model_file, wrong) -> None:
    with pytest.raises(RequestError, match="an object"):
        load(model_file("onnx", "float"), "onnx", {"provider_options": wrong})


def test_options_of_a_provider_that_is_not_used_are_refused(model_file: ModelFile) -> None:
    with pytest.raises(RequestError, match=f"{CUDA!r}"):
        load(model_file("onnx", "float"), "onnx", {"provider_options": {CUDA: {}}})


def test_a_damaged_model_is_not_tried_on_another_provider(gpu, tmp_path, capfd) -> None:
    (tmp_path / "wrong.onnx").write_bytes(b"no model")
    with warnings.catch_warnings(), pytest.raises(ModelError, match=r"wrong\.onnx"):
        load(str(tmp_path / "wrong.onnx"), "onnx", {"providers": [CUDA]}, str(tmp_path))
    assert "Falling back" not in capfd.readouterr().out
