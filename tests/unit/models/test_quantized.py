"""Healthy int8 models, made of the demo's own network by onnxruntime's quantiser."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import DEMO

from edgeflare.errors import UsageError
from edgeflare.models import InputSpec, OriginalModel
from edgeflare.models.quantized import (
    CALIBRATED_ON,
    RECIPES,
    calibration_inputs,
    check_quantizable,
    make_references,
)

pytestmark = pytest.mark.extended

ORIGINAL = DEMO / "original.onnx"
SPEC = InputSpec(
    shape=(1, 1, 28, 28), dtype="float32", size=(28, 28), channels=1, layout="CHW", color="GRAY",
    scale=(1.0, 255.0),
)  # fmt: skip


@pytest.fixture(scope="module")
def samples() -> list[np.ndarray]:
    with np.load(DEMO / "seeds.npz") as stored:
        return [image[:, :, None] for image in stored["images"][:24]]


@pytest.fixture(scope="module")
def made(samples: list[np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("references")
    return make_references(ORIGINAL, calibration_inputs(samples, SPEC), folder)


@pytest.fixture
def one_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeflare.models.quantized.RECIPES", RECIPES[:1])


def test_every_recipe_gives_another_int8_model(made: dict[str, Path]) -> None:
    assert set(made) == {recipe.name for recipe in RECIPES}
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in made.values()}
    assert len(digests) == len(RECIPES)
    for path in made.values():
        weights = onnx.load(path).graph.initializer
        int8 = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)
        assert any(one.data_type in int8 and len(one.dims) == 4 for one in weights)


def test_they_answer_nearly_as_the_original(made, samples) -> None:
    original, *others = (_raw(path, samples) for path in (ORIGINAL, *made.values()))
    for answers in others:
        distance = np.abs(answers - original).sum(axis=1) / 2
        assert 0 < distance.mean() < 0.05


@pytest.mark.usefixtures("one_recipe")
def test_made_again_they_are_the_same_bytes_and_files(made, samples, tmp_path) -> None:
    inputs = calibration_inputs(samples, SPEC)
    name, path = next(iter(made.items()))
    again = make_references(ORIGINAL, inputs, tmp_path)
    assert again[name].name == path.name
    assert again[name].read_bytes() == path.read_bytes()
    before = {one: one.stat().st_mtime_ns for one in tmp_path.iterdir()}
    make_references(ORIGINAL, inputs, tmp_path)
    assert {one: one.stat().st_mtime_ns for one in tmp_path.iterdir()} == before


@pytest.mark.usefixtures("one_recipe")
def test_other_calibration_inputs_give_files_of_other_names(samples, made, tmp_path) -> None:
    others = make_references(ORIGINAL, calibration_inputs(samples[:8], SPEC), tmp_path)
    assert not {one.name for one in others.values()} & {one.name for one in made.values()}


@pytest.mark.usefixtures("one_recipe")
def test_the_original_is_only_read_and_nothing_is_printed(samples, tmp_path, capfd) -> None:
    copy = tmp_path / "model.onnx"
    copy.write_bytes(ORIGINAL.read_bytes())
    make_references(copy, calibration_inputs(samples[:4], SPEC), tmp_path / "references")
    assert copy.read_bytes() == ORIGINAL.read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model.onnx", "references"]
    assert capfd.readouterr() == ("", "")


def test_calibration_takes_a_few_inputs_from_all_over(samples: list[np.ndarray]) -> None:
    many = [np.full((28, 28, 1), number % 256, np.uint8) for number in range(1000)]
    taken = calibration_inputs(many, SPEC)
    assert len(taken) == CALIBRATED_ON
    assert taken[0].shape == (1, 1, 28, 28)
    assert taken[64].ravel()[0] == np.float32(500 % 256 / 255)
    assert len(calibration_inputs(samples, SPEC)) == len(samples)


def test_an_original_that_is_no_onnx_file_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match="--reference CAMPAIGN"):
        check_quantizable(DEMO / "original.tflite")


def test_an_onnx_that_is_broken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx.numpy_helper", None)
    with pytest.raises(UsageError, match=r"needs onnx"):
        check_quantizable(ORIGINAL)


def test_too_few_seeds_are_refused(samples: list[np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fewer than"):
        make_references(ORIGINAL, calibration_inputs(samples[:1], SPEC), tmp_path)


def _raw(path: Path, samples: list[np.ndarray]) -> np.ndarray:
    model = OriginalModel(path, "onnx", {"graph_optimization": "basic"})
    try:
        model.configure(SPEC, None)
        return np.stack([np.asarray(model.raw(sample)).ravel() for sample in samples])
    finally:
        model.close()
