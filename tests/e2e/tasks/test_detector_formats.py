"""One detector in each output format, as a user runs it: the same objects differ."""

from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from command import edgeflare
from detector_models import FORMATS, detector_path
from onnx import TensorProto, helper

PHOTOGRAPHS = ("coral_kite_and_cold.jpg", "coral_cat.jpg", "coral_bird.jpg")
INPUT = ("--input", "color=BGR", "--input", "scale=1/255", "--input", "layout=CHW")
QUICK = ("yolo", "ssd")
"""Formats that are run on each change; the others at night."""
RULES = ("--resize", "bilinear", "--confidence", "0.65", "--no-survey", "--max-host-queries", "150")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def photographs(home: Path, shared_data: Path) -> Path:
    folder = home / "photographs"
    folder.mkdir()
    for name in PHOTOGRAPHS:
        photograph = cv2.imread(str(shared_data / "images" / "photos_detection" / name))
        cv2.imwrite(str(folder / name.replace("jpg", "png")), photograph)
    return folder


def run(home: Path, original: Path, deployed: Path, *more: object) -> dict[str, object]:
    models = ("--original", original, "--deployed", deployed)
    ran = edgeflare("run", *models, *INPUT, *RULES, *more, "--json", home=home)
    assert ran.code == 0, ran.err
    found: dict[str, object] = ran.json["detection"]
    return found


@pytest.fixture(scope="module")
def of_the_grid(home: Path, photographs: Path, shared_data: Path) -> dict[str, object]:
    paths = [detector_path(shared_data, f"fastestdet_{one}") for one in ("fp32", "int8_pertensor")]
    return run(home, *paths, "--decoder", "kind=fastestdet", "--seeds", photographs)


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in FORMATS],
)
def test_the_same_objects_differ_whatever_the_format(
    kind: str, home: Path, photographs: Path, shared_data: Path, of_the_grid: dict[str, object]
) -> None:
    paths = []
    for one in ("fp32", "int8_pertensor"):
        model = onnx.load(detector_path(shared_data, f"fastestdet_{one}"))
        paths.append(home / f"{kind}_{one}.onnx")
        onnx.save(FORMATS[kind](model), paths[-1])
    assert run(home, *paths, "--seeds", photographs) == of_the_grid


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        ({"output0": (1, 56, 8400)}, "pose"),
        ({"output0": (1, 116, 8400), "output1": (1, 32, 160, 160)}, "mask"),
    ],
)
def test_poses_and_masks_are_refused_in_one_sentence(
    outputs: dict[str, tuple[int, ...]], why: str, tmp_path: Path
) -> None:
    image = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 640, 640])
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()]
    nodes, constants = [], []
    for name, shape in outputs.items():
        constants.append(
            helper.make_tensor(f"{name}_shape", TensorProto.INT64, [len(shape)], shape)
        )
        nodes.append(helper.make_node("ReduceMax", ["images"], [f"{name}_one"], keepdims=0))
        nodes.append(helper.make_node("Expand", [f"{name}_one", f"{name}_shape"], [name]))
    graph = helper.make_graph(nodes, "g", [image], made, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    if why == "pose":
        helper.set_model_props(model, {"task": "pose", "kpt_shape": "[17, 3]"})
    onnx.save(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "seeds.npz", images=np.zeros((1, 640, 640, 3), np.uint8))
    ran = edgeflare(
        *("run", "--original", "model.onnx", "--deployed", "model.onnx", "--seeds", "seeds.npz"),
        *("--input", "scale=1/255", "--out", "never"),
        home=tmp_path,
    )
    assert ran.code == 2
    assert why in ran.err.strip().splitlines()[-1]
    assert not (tmp_path / "never").exists()
