"""A device with TensorRT, from the host's side: the real agent, over the stand-in of the library."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_models import dense_onnx

from edgeflare.devices import Device, DeviceSession, open_device, prune_device
from edgeflare.errors import DeviceTimeoutError, ModelError, UsageError
from edgeflare_agent.image_spec import InputSpec

HELPERS = Path(__file__).resolve().parents[2] / "helpers"
SPEC = InputSpec(shape=(1, 8, 8, 1), dtype="float32", size=(8, 8), channels=1, scale=(1.0, 255.0))
SAMPLE = np.arange(64, dtype=np.uint8).reshape(8, 8, 1) * 4
MODULE = """
import sys
sys.path.append({helpers!r})
import ctypes, time
import stand_in_tensorrt

class Patch:
    def setitem(self, where, name, value):
        where[name] = value
    def setattr(self, name, value):
        ctypes.CDLL = value

module = stand_in_tensorrt.install({version!r}, Patch())
build = stand_in_tensorrt.Builder.build_serialized_network
def slow(self, network, config):
    time.sleep({build_s})
    return build(self, network, config)
stand_in_tensorrt.Builder.build_serialized_network = slow
"""

MakeDevice = Callable[..., Device]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1])


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.npy"
    np.save(path, np.random.default_rng(0).random((4, 1, 8, 8, 1), dtype=np.float32))
    return path


@pytest.fixture
def jetson(tmp_path: Path) -> MakeDevice:
    """A device of this machine whose Python finds the stand-in."""

    def make(version: str = "10.3.0", build_s: float = 0.0, **fields: object) -> Device:
        package = tmp_path / "packages" / "tensorrt"
        package.mkdir(parents=True, exist_ok=True)
        text = MODULE.format(helpers=str(HELPERS), version=version, build_s=build_s)
        (package / "__init__.py").write_text(text)
        python = f"env PYTHONPATH={shlex.quote(str(package.parent))} {shlex.quote(sys.executable)}"
        return Device(
            name="jetson",
            transport="local",
            python=python,
            cache=str(tmp_path / "cache"),
            runtime="tensorrt",
            **fields,  # type: ignore[arg-type]
        )

    return make


def answer(session: DeviceSession) -> np.ndarray:
    session.configure(SPEC, None)
    return np.asarray(session.submit([SAMPLE]).result().outputs[0])


@pytest.mark.parametrize("version", [pytest.param("8.4.1", marks=pytest.mark.extended), "10.3.0"])
def test_an_onnx_model_is_built_once_and_stays_the_same_device(
    jetson: MakeDevice, model: Path, tmp_path: Path, version: str
) -> None:
    device = jetson(version)
    seen = []
    for _ in range(2):
        session = open_device(device, model)
        seen.append((answer(session).tobytes(), session.fingerprint, session.model.runtime))
        session.close()
    assert seen[0] == seen[1]
    assert "build_s" in seen[0][2]
    assert "build_s" not in seen[0][1]["runtime"]
    assert seen[0][1]["runtime"]["version"] == version
    assert len(list((tmp_path / "cache" / "engines").glob("*.engine"))) == 1
    prune_device(device, everything=True)
    assert list((tmp_path / "cache" / "engines").iterdir()) == []


def test_calibration_travels_with_the_model(jetson, model, calibration, tmp_path) -> None:
    device = jetson(options={"precision": "int8", "calibration": str(calibration)})
    told: list[str] = []
    session = open_device(device, model, progress=told.append)
    eight_bits = answer(session)
    [uploaded] = (tmp_path / "cache" / "models").glob("*.npy")
    assert session.fingerprint["runtime"]["calibration_sha256"] == uploaded.stem
    session.close()
    assert any("uploading calibration.npy" in one for one in told)
    exact = open_device(jetson(), model)
    assert answer(exact).tobytes() != eight_bits.tobytes()
    exact.close()


def test_calibration_that_does_not_fit_is_named_as_the_user_knows_it(
    jetson: MakeDevice, model: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.npy"
    np.save(wrong, np.zeros((4, 8), np.float32))
    options = {"precision": "int8", "calibration": str(wrong)}
    with pytest.raises(ModelError, match=r"float32 \[4"):
        open_device(jetson(options=options), model)


@pytest.mark.parametrize("name", ["absent.npy", "m.onnx"])
def test_calibration_that_is_none_is_refused_before_anything_is_sent(
    jetson: MakeDevice, model: Path, tmp_path: Path, name: str
) -> None:
    options = {"precision": "int8", "calibration": str(tmp_path / name)}
    with pytest.raises(UsageError, match="file here"):
        open_device(jetson(options=options), model)
    assert not (tmp_path / "cache").exists()


@pytest.mark.extended
def test_a_build_that_takes_too_long_says_what_to_raise(jetson: MakeDevice, model: Path) -> None:
    device = jetson(build_s=30, timeout_s=4)
    with pytest.raises(DeviceTimeoutError, match="raise `timeout_s`"):
        open_device(device, model)


@pytest.mark.extended
def test_a_long_build_is_not_taken_for_a_lost_device(jetson: MakeDevice, model: Path) -> None:
    session = open_device(jetson(build_s=3, heartbeat_s=1), model)
    assert answer(session).shape == (1, 4)
    session.close()
