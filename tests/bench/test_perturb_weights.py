"""Deployed models made by changing some of an original's weights."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from command import DEMO
from onnx import TensorProto, helper, numpy_helper
from small_models import dense_onnx, save_onnx

from edgeflare.errors import StoreError, UsageError
from edgeflare_bench.made_models import perturb_weights

LENET = DEMO / "original.onnx"


def initialisers(path: Path) -> dict[str, np.ndarray]:
    model = onnx.load_model(path)
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def ratios(before: Path, after: Path) -> np.ndarray:
    """New over old weight, of all tensors of two or more axes together."""
    old, new = initialisers(before), initialisers(after)
    pairs = [(new[name], value) for name, value in old.items() if value.ndim >= 2]
    return np.concatenate([(changed / value).ravel() for changed, value in pairs])


@pytest.mark.parametrize("percent", [10, 33.3, 50])
def test_the_stated_share_of_all_weights_changes_by_the_stated_factors(tmp_path, percent) -> None:
    out = tmp_path / "changed.onnx"
    count = perturb_weights(LENET, out, percent=percent, by=0.1, seed=0)
    ratio = ratios(LENET, out)
    changed = ratio[ratio != 1]
    assert count == len(changed) == round(len(ratio) * percent / 100)
    np.testing.assert_allclose(np.abs(changed - 1), 0.1, rtol=1e-4)
    assert (changed > 1).mean() == pytest.approx(0.5, abs=0.03)


def test_weights_are_drawn_from_all_tensors_alike_and_biases_stay(tmp_path: Path) -> None:
    out = tmp_path / "changed.onnx"
    perturb_weights(LENET, out, percent=20, by=0.1, seed=1)
    old, new = initialisers(LENET), initialisers(out)
    assert list(old) == list(new)
    for name, value in old.items():
        share = (new[name] != value).mean()
        assert share == (0 if value.ndim < 2 else pytest.approx(0.2, abs=0.08)), name


def test_the_copy_answers_like_its_original_but_not_quite(tmp_path: Path) -> None:
    out = tmp_path / "changed.onnx"
    perturb_weights(LENET, out, percent=10, by=0.1, seed=0)
    images = np.random.default_rng(0).random((20, 1, 28, 28), np.float32)
    answers = [
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(
            None, {"image": images}
        )[0]
        for path in (LENET, out)
    ]
    drift = np.abs(answers[0] - answers[1]).max(axis=1)
    assert (drift > 0).all()
    assert (drift < 0.3).all()
    onnx.checker.check_model(onnx.load_model(out), full_check=True)
    (first, second) = (onnx.load_model(path).metadata_props for path in (LENET, out))
    assert list(first) == list(second)


def test_one_seed_makes_one_file_and_another_seed_another(tmp_path: Path) -> None:
    made = []
    for number, seed in enumerate((3, 3, 4)):
        out = tmp_path / f"{number}.onnx"
        perturb_weights(LENET, out, percent=10, by=0.1, seed=seed)
        made.append(out.read_bytes())
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize(("percent", "count"), [(0, 0), (100, 256), (0.2, 1), (50, 128)])
def test_the_count_is_rounded(tmp_path: Path, percent: float, count: int) -> None:
    model = dense_onnx(tmp_path / "small.onnx", ["n", 8, 8, 1])  # 64 x 4 weights
    out = tmp_path / "changed.onnx"
    assert perturb_weights(model, out, percent=percent, by=0.1, seed=0) == count
    assert (ratios(model, out) != 1).sum() == count


def test_the_file_is_replaced_whole_and_its_folder_made(tmp_path: Path) -> None:
    out = tmp_path / "models" / "pair.onnx"
    perturb_weights(LENET, out, percent=10, by=0.1, seed=0)
    first = out.read_bytes()
    perturb_weights(LENET, out, percent=10, by=0.1, seed=1)
    assert out.read_bytes() != first
    assert [file.name for file in out.parent.iterdir()] == ["pair.onnx"]


def test_a_file_that_can_not_be_written_is_reported(tmp_path: Path) -> None:
    blocked = tmp_path / "models"
    blocked.write_text("a file where a folder is needed")
    with pytest.raises(StoreError, match="File exists"):
        perturb_weights(LENET, blocked / "pair.onnx", percent=10, by=0.1, seed=0)
    out = tmp_path / "out.onnx"
    out.mkdir()
    with pytest.raises(StoreError, match=r"out\.onnx"):
        perturb_weights(LENET, out, percent=10, by=0.1, seed=0)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["models", "out.onnx"]


@pytest.mark.parametrize(
    "content",
    [None, b"", b"not a model at all", b"\x00" * 40, (DEMO / "deployed.tflite").read_bytes()],
    ids=["missing", "empty", "text", "zeros", "TFLite"],
)
def test_what_is_no_onnx_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    model = tmp_path / "model.onnx"
    if content is not None:
        model.write_bytes(content)
    with pytest.raises(UsageError, match=r"model\.onnx"):
        perturb_weights(model, tmp_path / "out.onnx", percent=10, by=0.1, seed=0)


def test_a_model_without_float_weights_is_refused(tmp_path: Path) -> None:
    shape = [1, 4]
    model = save_onnx(
        tmp_path / "biased.onnx",
        [helper.make_node("Add", ["x", "bias"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        {"bias": np.zeros(4, np.float32)},
    )
    with pytest.raises(UsageError, match="float32 weights"):
        perturb_weights(model, tmp_path / "out.onnx", percent=10, by=0.1, seed=0)


@pytest.mark.parametrize(
    ("percent", "by"), [(-1, 0.1), (101, 0.1), (float("nan"), 0.1), (10, float("inf"))]
)
def test_numbers_out_of_range_are_refused(tmp_path: Path, percent: float, by: float) -> None:
    with pytest.raises(UsageError, match=r"^(percent|by) is"):
        perturb_weights(LENET, tmp_path / "out.onnx", percent=percent, by=by, seed=0)
    assert not list(tmp_path.iterdir())
