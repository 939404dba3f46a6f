"""What `explain` charges findings to, where the cause was planted: a campaign for each."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import DEMO
from onnx import TensorProto, helper, numpy_helper
from small_models import save_onnx
from ssh_servers import SshServer

from edgeflare import replay_base, replay_config, search
from edgeflare.explanation import Explanation, explain_campaign

SOURCE = Path(__file__).resolve().parents[2] / "helpers" / "delegate.cc"
TANH, SOFTMAX = 28, 25
DIGITS = {"path": DEMO / "seeds.npz", "limit": 12}
SCALED = {"scale": "1/255"}
ORIGINAL = {"path": DEMO / "original.onnx"}


@pytest.fixture
def board(tmp_path: Path, openssh_server: SshServer) -> Callable[..., dict[str, Any]]:
    """Return the settings of a campaign on the SSH server, with these fields of its entry."""

    def entry(**more: object) -> dict[str, Any]:
        fields = {
            "host": openssh_server.host,
            "port": openssh_server.port,
            "user": openssh_server.user,
            "key": str(openssh_server.key),
            "known_hosts": str(openssh_server.known_hosts),
            "python": sys.executable,
            "cache": str(tmp_path / "cache"),
            **more,
        }
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in fields.items()]
        (tmp_path / "devices.toml").write_text("[devices.board]\n" + "".join(lines))
        return {"device": "board", "inventory": tmp_path / "devices.toml"}

    return entry


def explained(
    folder: Path, original: dict[str, Any], deployed: dict[str, Any], seeds: Any, **more: Any
) -> Explanation:
    search(
        original,
        deployed,
        seeds,
        options={"device_budget": 20},
        max_queries=2000,
        folder=folder,
        **more,
    )
    found = explain_campaign(folder, replay_config(replay_base(folder)))
    print(
        folder.name,
        found.counts,
        [(f.cause, f.doubt) for f in found.findings if f.doubt][:4],
        found.notices,
        found.device_queries,
    )
    for f in found.findings[:2]:
        print("   ", [(a.rung, a.deviates, a.margin and round(a.margin, 4)) for a in f.answers])
    return found


@pytest.mark.parametrize("layer", range(4))
def test_a_badly_quantised_layer(tmp_path, layer):
    model = onnx.load(ORIGINAL["path"])
    weights = [one for one in model.graph.initializer if len(one.dims) > 1]
    values = numpy_helper.to_array(weights[layer])
    step = np.abs(values).max() / 2
    weights[layer].CopyFrom(
        numpy_helper.from_array(
            (np.round(values / step) * step).astype(np.float32), weights[layer].name
        )
    )
    onnx.save(model, tmp_path / "coarse.onnx")
    explained(tmp_path / f"coarse{layer}", ORIGINAL, {"path": tmp_path / "coarse.onnx"}, DIGITS)


def test_saturation(tmp_path, board):
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class R(CalibrationDataReader):
        def __init__(s):
            s.i = iter(np.load(DEMO / "seeds.npz")["images"][:50])

        def get_next(s):
            n = next(s.i, None)
            return None if n is None else {name: (n.reshape(1, 1, 28, 28) / 255).astype(np.float32)}

    name = onnx.load(ORIGINAL["path"]).graph.input[0].name
    quantize_static(
        ORIGINAL["path"],
        tmp_path / "q.onnx",
        R(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    explained(
        tmp_path / "saturation",
        {"path": tmp_path / "q.onnx", "options": {"exact_int8": True}, "input": SCALED},
        {"path": tmp_path / "q.onnx", "input": SCALED},
        DIGITS,
        **board(),
    )


def test_hardware(tmp_path, board):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import ai_edge_litert.interpreter as m\n"
        "get = m.Interpreter.get_tensor\n"
        "def wrong(self, index):\n"
        "    found = 0.6 * get(self, index)\n"
        "    found[..., 3] += 0.4\n"
        "    return found\n"
        "m.Interpreter.get_tensor = wrong\n"
    )
    explained(
        tmp_path / "hardware",
        ORIGINAL,
        {"path": DEMO / "original.tflite"},
        DIGITS,
        **board(python=f"env PYTHONPATH={site} {sys.executable}"),
    )


@pytest.mark.parametrize("operator, option", [(TANH, {"add": "0.3"}), (SOFTMAX, {"noise": "0.3"})])
def test_delegate(tmp_path, board, operator, option):
    built = tmp_path / "libtest_delegate.so"
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(built)], check=True
    )
    options = {
        "delegate": str(built),
        "delegate_options": {"operators": str(operator), **option},
        "allow_fallback": True,
    }
    explained(
        tmp_path / "delegate",
        ORIGINAL,
        {"path": DEMO / "original.tflite", "options": options},
        DIGITS,
        **board(),
    )
