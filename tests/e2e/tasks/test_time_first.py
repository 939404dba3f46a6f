"""Outputs whose first axis is time, as recurrent networks have it: [time, 1, symbols]."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import edgeflare
from onnx import TensorProto, helper
from small_models import save_onnx
from value_models import photographs

from edgeflare.errors import ModelError
from edgeflare.models import OutputReader, TensorInfo

SYMBOLS, MOMENTS = 4, 8


def time_first(path: Path, moments: int | None) -> Path:
    """Write a convolution whose columns are moments, so many as the file says."""
    weights = np.random.default_rng(3).normal(size=(SYMBOLS, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["maps"], pads=[1] * 4),
        helper.make_node("ReduceMean", ["maps"], ["means"], axes=[2], keepdims=0),
        helper.make_node("Transpose", ["means"], ["y"], perm=[2, 0, 1]),
    ]
    float32 = TensorProto.FLOAT
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", float32, [1, 3, 8, MOMENTS])],
        [helper.make_tensor_value_info("y", float32, [moments, 1, SYMBOLS])],
        {"w": weights},
        {"edgeflare.input": '{"scale": "1/255"}'},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("time first")
    photographs(folder / "seeds.npz", 6)
    (folder / "symbols.txt").write_text("-\na\nb\nc\n")
    for moments in (None, MOMENTS):
        time_first(folder / f"{moments}.onnx", moments)
    return folder


def ran(folder: Path, moments: int | None, *stated: Any) -> Any:
    models = ("--original", f"{moments}.onnx", "--deployed", f"{moments}.onnx")
    quick = ("--seeds", "seeds.npz", "--strategy", "none", "--no-survey")
    return edgeflare("run", *models, *quick, *stated, "--json", home=folder)


@pytest.mark.parametrize("moments", [None, pytest.param(MOMENTS, marks=pytest.mark.extended)])
def test_the_axis_is_named_and_no_device_blamed(folder: Path, moments: int | None) -> None:
    refused = ran(folder, moments)
    assert refused.code == 2
    assert "'y' of" in refused.sentence
    assert "no batch" in refused.sentence
    assert "--decoder vocabulary=FILE" in refused.sentence


@pytest.mark.parametrize(
    ("moments", "stated"),
    [
        (None, ("--task", "dense")),
        pytest.param(None, ("--decoder", "vocabulary=symbols.txt"), marks=pytest.mark.extended),
        pytest.param(MOMENTS, ("--task", "dense"), marks=pytest.mark.extended),
        pytest.param(None, ("--task", "vector", "--tolerance", "1e-6"), marks=pytest.mark.extended),
    ],
)
def test_what_it_names_reads_every_moment(folder, tmp_path, moments, stated) -> None:
    agreeing = ran(folder, moments, *stated, "--out", tmp_path / "campaign")
    assert agreeing.code == 0, agreeing.err
    assert (agreeing.json["finished"], agreeing.json["by_status"]["gave-up"]) == (6, 6)


def test_another_number_of_scores_than_classes_is_a_matter_of_the_model() -> None:
    reader = OutputReader(TensorInfo("y", (None, 1, SYMBOLS), "float32"), "logits", SYMBOLS)
    assert reader.read(np.zeros((1, 1, SYMBOLS), np.float32)).shape == (SYMBOLS,)
    raw = np.zeros((MOMENTS, 1, SYMBOLS), np.float32)
    for read in (reader.read, lambda one: reader.read_all([one, one])):
        with pytest.raises(ModelError, match="8 x 1 x 4"):
            read(raw)
