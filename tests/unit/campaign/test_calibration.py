"""Seeds become what TensorRT calibrates an int8 engine with."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from small_models import dense_onnx

from edgeflare.campaign import write_calibration
from edgeflare.errors import ModelError, UsageError


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1), dtype=np.uint8)
    np.savez(tmp_path / "seeds.npz", images=images)
    return tmp_path / "seeds.npz"


@pytest.mark.parametrize("batch", [1, "n"])
def test_each_tensor_is_the_models_input(tmp_path: Path, seeds: Path, batch: object) -> None:
    model = dense_onnx(tmp_path / "m.onnx", [batch, 8, 8, 1])
    target = tmp_path / "calibration.npy"
    assert write_calibration(model, seeds, target) == 6
    tensors = np.load(target)
    assert (tensors.dtype, tensors.shape) == (np.float32, (6, 1, 8, 8, 1))
    images = np.load(seeds)["images"][:, np.newaxis]
    np.testing.assert_array_equal(tensors, images.astype(np.float32) / np.float32(255))


def test_what_is_stated_wins_and_the_limit_holds(tmp_path: Path, seeds: Path) -> None:
    model = dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1])
    target = tmp_path / "c.npy"
    assert write_calibration(model, seeds, target, stated={"scale": 1}, limit=2) == 2
    np.testing.assert_array_equal(np.load(target)[:, 0], np.load(seeds)["images"][:2])


def test_audio_is_cut_and_resampled_to_the_models_clips(tmp_path: Path) -> None:
    model = dense_onnx(tmp_path / "m.onnx", [1, 64])
    tone = 0.5 * np.sin(np.arange(4000) / 10)
    soundfile.write(tmp_path / "long.wav", tone, 16000, subtype="FLOAT")
    soundfile.write(tmp_path / "telephone.wav", tone[:16], 8000, subtype="FLOAT")
    target, stated = tmp_path / "c.npy", {"rate": 16000}
    assert write_calibration(model, tmp_path, target, stated=stated) == 2
    tensors = np.load(target)
    assert tensors.shape == (2, 1, 64)
    np.testing.assert_array_equal(tensors[0, 0], tone[:64].astype(np.float32))
    assert tensors[1, 0, :32].any()
    assert not tensors[1, 0, 32:].any()
    with pytest.raises(UsageError, match="length: state"):
        write_calibration(
            dense_onnx(tmp_path / "o.onnx", [1, "n"]), tmp_path, target, stated=stated
        )


def test_what_can_not_be_calibrated_is_refused(tmp_path: Path, seeds: Path) -> None:
    model = dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1])
    with pytest.raises(UsageError, match="calibration data"):
        write_calibration(model, seeds, tmp_path / "c.npz")
    with pytest.raises(UsageError, match=r"stated: .*scale"):
        write_calibration(model, seeds, tmp_path / "c.npy", stated={"scale": "1/x"})
    with pytest.raises(UsageError, match=r"write .*c\.npy"):
        write_calibration(model, seeds, tmp_path / "missing" / "c.npy")
    integers = dense_onnx(tmp_path / "i.onnx", [1, 8, 8, 1], "uint8")
    with pytest.raises(ModelError, match="takes uint8"):
        write_calibration(integers, seeds, tmp_path / "c.npy")
