"""What `edgeflare check` can't compare gets one sentence or an answer, never a guess."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from command import DEMO, Ran, edgeflare
from onnx import TensorProto, helper, numpy_helper
from triage_pairs import CLASSES, changed, ending, images, network

Made = Callable[[Path], Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    onnx.save(network(), tmp_path / "original.onnx")
    np.savez(tmp_path / "photos.npz", images=np.stack(images()))
    return tmp_path


def check(
    home: Path, deployed: Path | None = None, seeds: Path | None = None, *more: object
) -> Ran:
    original = home / "original.onnx"
    return edgeflare(
        *("check", original, deployed or original, seeds or home / "photos.npz", *more, "--json"),
        *("--survey-queries", 12, "--pursuit-queries", 0, "--out", home / "out"),
        *("--input", "scale=1/255", "--input", "mean=0.485,0.456,0.406"),
        *("--input", "std=0.229,0.224,0.225"),
        home=home,
    )


def saved(model: onnx.ModelProto, home: Path) -> Path:
    onnx.save(model, home / "deployed.onnx")
    return home / "deployed.onnx"


def more_classes(home: Path) -> Path:
    model = network()
    changed("k3", lambda kernel: np.pad(kernel, ((0, 0), (0, 3))))(model)
    changed("b3", lambda bias: np.pad(bias, (0, 3)))(model)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = CLASSES + 3
    return saved(model, home)


def a_map(home: Path) -> Path:
    model = network()
    del model.graph.node[4:], model.graph.output[:]
    shape = [1, 16, 4, 4]
    model.graph.output.append(helper.make_tensor_value_info("r2", TensorProto.FLOAT, shape))
    return saved(model, home)


def opaque(home: Path) -> Path:
    model = network()
    ending("AcmeDecode")(model)
    model.graph.node[-1].domain = "com.acme"
    model.opset_import.append(helper.make_opsetid("com.acme", 1))
    return saved(model, home)


def branching(home: Path) -> Path:
    """A graph within the graph, which no layer can be compared in, and another bias."""
    model = network()
    model.graph.node[-1].output[0] = "before"
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("Identity", ["before"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, CLASSES])],
        )
        for name in ("then", "else")
    }
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "condition"))
    model.graph.node.append(helper.make_node("If", ["condition"], ["logits"], "if", **branches))
    changed("b2", lambda bias: bias + 0.6)(model)
    return saved(model, home)


def written(name: str, data: bytes) -> Made:
    def write(home: Path) -> Path:
        (home / name).write_bytes(data)
        return home / name

    return write


RANDOM = np.random.default_rng(0).bytes(20_000)
TFLITE = (DEMO / "deployed.tflite").read_bytes()
ENGINE = b"ptrt" + RANDOM


@pytest.mark.parametrize(
    ("made", "code", "named"),
    [
        (more_classes, 2, ["6 classes", "9"]),
        (a_map, 2, ["r2", "1 x 16 x 4 x 4"]),
        (opaque, 2, ["AcmeDecode"]),
        (written("garbage.tflite", TFLITE[:8] + RANDOM), 2, ["garbage.tflite"]),
        (written("torn.tflite", TFLITE[: len(TFLITE) // 2]), 2, ["torn.tflite"]),
        (written("engine.onnx", ENGINE), 2, ["engine.onnx"]),
        (written("engine.tflite", ENGINE), 2, ["engine.tflite", "ptrt"]),
        (written("model.engine", ENGINE), 3, ["tensorrt"]),
    ],
)
@pytest.mark.extended
def test_files_that_cant_be_compared(home: Path, made: Made, code: int, named: list[str]) -> None:
    ran = check(home, made(home))
    assert ran.code == code
    assert all(word in ran.sentence for word in named), ran.err
    assert "Traceback" not in ran.err


@pytest.mark.extended
def test_without_layers_the_rest_is_tried_and_nothing_guessed(home: Path) -> None:
    found = check(home, branching(home)).json
    assert "If" in found["ruled_out"]["layers"]["unread"][0]
    assert found["ruled_out"]["feeds"]["tried"] > 100
    assert [cause for cause in found["causes"] if cause["proof"] != "indicated"] == []


@pytest.mark.extended
def test_identical_images_are_one_input(home: Path) -> None:
    np.savez(home / "same.npz", images=np.stack(24 * images(1)))
    ran = check(home, None, home / "same.npz")
    assert (ran.code, ran.json["causes"]) == (4, [])
    assert ran.json["ruled_out"]["seeds"] == {"compared": 1, "needed": 8}


@pytest.mark.extended
def test_labels_that_fit_nothing_are_told_as_such(home: Path) -> None:
    labels = np.full(30, CLASSES - 1)  # nearly a stranger to the original
    np.savez(home / "labelled.npz", images=np.stack(images()), labels=labels)
    ran = check(home, None, home / "labelled.npz")
    assert ran.code == 4
    assert ran.json["ruled_out"]["labels"]["right"] < 0.1
    shown = edgeflare("show", "out", home=home)
    assert "Next: give the labels" in shown.out


@pytest.mark.extended
def test_photographs_of_ten_megabytes_are_brought_to_size(home: Path) -> None:
    (home / "large").mkdir()
    rng = np.random.default_rng(0)
    for place in range(24):
        image = rng.integers(0, 256, (1870, 1870, 3), dtype=np.uint8)
        cv2.imwrite(str(home / "large" / f"{place:02}.png"), image)
    ran = check(home, None, home / "large")
    assert (ran.code, "--resize" in ran.sentence) == (2, True)
    ran = check(home, None, home / "large", "--resize", "area")
    assert (ran.json["own"]["asked"], ran.json["causes"]) == (24, [])
