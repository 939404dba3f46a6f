"""Originals of PyTorch and Keras: campaigns over SSH, and what is said where one can't be run."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command import DEMO, edgeflare, must_run
from framework_models import keras_file, torch_file, torch_model
from small_models import prune
from ssh_servers import SshServer

from edgeflare.campaign import control
from edgeflare.store import Store
from edgeflare_agent.errors import ModelError
from edgeflare_agent.runtimes import load

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # Keras
]


@pytest.fixture
def home(tmp_path: Path, openssh_server: SshServer) -> Path:
    (tmp_path / "devices.toml").write_text(
        "[devices.board]\n"
        f"host = {json.dumps(openssh_server.host)}\n"
        f"port = {openssh_server.port}\n"
        f"user = {json.dumps(openssh_server.user)}\n"
        f"key = {json.dumps(str(openssh_server.key))}\n"
        f"python = {json.dumps(sys.executable)}\n"
        f"cache = {json.dumps(str(tmp_path / 'cache'))}\n"
    )
    must_run("devices", "trust", "board", "--fingerprint", openssh_server.fingerprint, home=tmp_path)  # fmt: skip
    return tmp_path


@pytest.mark.sshd
@pytest.mark.parametrize("framework", ["torch", "keras"])
def test_a_campaign_over_ssh(home: Path, framework: str) -> None:
    """PyTorch against a pruned ONNX deployment, Keras against the quantised TFLite one."""
    if framework == "torch":
        original = torch_file(home / "original.pt2")
        deployed = prune(DEMO / "original.onnx", home / "pruned.onnx", 0.6)
    else:
        original, deployed = keras_file(home / "original.keras"), DEMO / "deployed.tflite"
    more = ("--input", "scale=1/255", "--no-survey", "--limit", 3, "--device", "board")
    must_run(
        "run", "--original", original, "--deployed", deployed, "--seeds", DEMO / "seeds.npz",
        *more, "--out", "out", home=home,
    )  # fmt: skip
    with Store.open(home / "out") as store:
        assert any(one.l2 is not None for one in store.outcomes())
    shown = edgeflare("show", "out", home=home).out
    assert f"{framework} ({framework} " in shown


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("m.pt2", {}),
        ("m.pt2", {"onednn": False}),
        ("m.pt", {"input_shape": [1, 1, 28, 28]}),
        ("m.keras", {}),
    ],
)
def test_the_same_weights_answer_alike(tmp_path, name, options) -> None:
    path = tmp_path / name
    made = keras_file(path) if name.endswith("keras") else torch_file(path)
    model = load(str(made), "keras" if name.endswith("keras") else "torch", options)
    exact = load(str(DEMO / "original.onnx"), "onnx", {})
    image = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    given = image.transpose(0, 2, 3, 1) if name.endswith("keras") else image
    [answer] = model.run(given)
    np.testing.assert_allclose(answer, exact.run(image)[0], atol=1e-5)
    assert answer.tobytes() == model.run(given)[0].tobytes()
    assert [one.shape[1:] for one in model.outputs] == [(10,)]


@pytest.mark.parametrize(
    ("name", "runtime", "content", "message"),
    [
        ("m.pt2", "torch", b"no archive", "load .*m.pt2"),
        ("m.pt", "torch", b"no archive", "torch.export.save"),
        ("m.keras", "keras", b"no archive", r"model.save\('model.keras'"),
        ("m.pt", "torch", None, "`input_shape`"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_says_how_to_write_one(
    tmp_path: Path, name: str, runtime: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is None:
        torch_file(path)
    else:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        load(str(path), runtime, {})


def test_a_control_computes_a_pytorch_model_in_another_way() -> None:
    assert control._other_arithmetic("torch", {}) == {"onednn": False}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of ExecuTorch's own
def test_executorch_runs_what_pytorch_was_lowered_to(tmp_path: Path) -> None:
    pytest.importorskip("executorch", reason="needs ExecuTorch")
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    program = torch.export.export(torch_model(), (torch.zeros(1, 1, 28, 28),))
    image = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    [exact] = load(str(DEMO / "original.onnx"), "onnx", {}).run(image)
    for name, by in (("XnnpackBackend", [XnnpackPartitioner()]), ("", [])):
        path = tmp_path / f"{name}.pte"
        path.write_bytes(
            to_edge_transform_and_lower(program, partitioner=by).to_executorch().buffer
        )
        model = load(str(path), "executorch", {})
        assert model.describe()["backends"] == ([name] if name else [])
        np.testing.assert_allclose(model.run(image)[0], exact, atol=1e-5)
    broken = tmp_path / "broken.pte"
    broken.write_bytes(b"no program")
    with pytest.raises(ModelError, match="executorch can't"):
        load(str(broken), "executorch", {})
