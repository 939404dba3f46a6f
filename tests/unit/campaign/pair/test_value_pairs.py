"""Pairs of models that answer with maps, embeddings, vectors and several labels, and wrong statements of them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_pairs import Pair
from value_models import CLASSES, SIZE, VALUES, value_onnx, value_pair

from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.metrics import disagreement, is_scores, top_label
from edgeflare.campaign.pair.model_pair import stored_reader
from edgeflare.campaign.settings.config import config_from
from edgeflare.errors import EdgeFlareError, StoreError, UsageError
from edgeflare.models import InputSpec, TensorInfo
from edgeflare.types import Values


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def resolved(files: tuple[Path, Path], stack: ExitStack, **stated: Any) -> Pair:
    original, deployed = files
    both = stated.pop("both", {})
    tables = {
        "original": {"path": original, **both},
        "deployed": {"path": deployed, **both},
        "seeds": {"path": original.parent},
        **stated,
    }
    return Pair(config_from(tables, "the test"), stack)


def read(pair: Pair, original: np.ndarray, deployed: np.ndarray) -> tuple[Values, Values]:
    first, second = (side.reader("values") for side in pair.sides)
    answers = first.read(original), second.read(deployed)
    assert isinstance(answers[0], Values)
    assert isinstance(answers[1], Values)
    return answers[0], answers[1]


SCORES = np.random.default_rng(0).normal(size=(1, CLASSES, SIZE, SIZE)).astype(np.float32)
OTHER = SCORES.copy()
OTHER[0, :, 2, 3] = OTHER[0, ::-1, 2, 3]
MAPS = {
    "first": (SCORES, OTHER),
    "last": tuple(np.moveaxis(one, 1, 3) for one in (SCORES, OTHER)),
    "labels": tuple(one.argmax(1) for one in (SCORES, OTHER)),
}


@pytest.mark.parametrize("deployed", MAPS)
@pytest.mark.parametrize("original", MAPS)
def test_one_pixel_with_another_label_is_that_share_in_any_layout(
    tmp_path: Path, stack: ExitStack, original: str, deployed: str
) -> None:
    files = value_onnx(tmp_path / "a.onnx", original), value_onnx(tmp_path / "b.onnx", deployed)
    pair = resolved(files, stack, task="dense")
    assert pair.sides[0].task == "dense"
    same = read(pair, MAPS[original][0], MAPS[deployed][0])
    assert disagreement(*same) == 0
    assert disagreement(*read(pair, MAPS[original][0], MAPS[deployed][1])) == 1 / SIZE**2


def test_maps_of_another_layout_are_compared_element_by_element(tmp_path, stack) -> None:
    files = value_onnx(tmp_path / "a.onnx", "first"), value_onnx(tmp_path / "b.onnx", "last")
    pair = resolved(
        files, stack, task="dense", values={"measure": "absolute"}, search={"tolerance": 1}
    )
    found = read(pair, SCORES, np.moveaxis(SCORES, 1, 3) + 0.25)
    assert disagreement(*found) == pytest.approx(0.25, abs=1e-6)


def test_labels_that_are_not_finite_stay_so(tmp_path: Path, stack: ExitStack) -> None:
    files = value_onnx(tmp_path / "a.onnx", "first"), value_onnx(tmp_path / "b.onnx", "labels")
    broken = SCORES.copy()
    broken[0, 0, 0, 0] = np.nan
    answer, _ = read(resolved(files, stack, task="dense"), broken, SCORES.argmax(1))
    assert np.isnan(answer.array).any()


def test_tolerances_are_of_the_elements(tmp_path: Path, stack: ExitStack) -> None:
    limits = [1.0, 1.0, 1.0, 1.0, 10.0]
    pair = resolved(
        value_pair(tmp_path, "vector"), stack, task="vector", values={"tolerances": limits}
    )
    assert pair.config.search.tolerance == 1.0
    zero, apart = np.zeros((1, VALUES), np.float32), np.zeros((1, VALUES), np.float32)
    apart[0, -1] = 9
    assert disagreement(*read(pair, zero, apart)) == pytest.approx(0.9)


@pytest.mark.parametrize("broken", [np.nan, np.inf, 0.0])
def test_an_embedding_without_a_direction_is_near_to_no_entry(tmp_path, stack, broken) -> None:
    np.savez(tmp_path / "gallery.npz", embeddings=np.eye(VALUES))
    gallery = {"gallery": tmp_path / "gallery.npz"}
    pair = resolved(value_pair(tmp_path, "vector"), stack, task="embedding", values=gallery)
    reader = pair.sides[0].reader("gallery")
    embedding = np.zeros((1, VALUES), np.float32)
    embedding[0, 2] = 3
    assert top_label(reader.read(embedding)) == 2
    embedding[0, 2] = broken
    scores = reader.read(embedding)
    assert is_scores(scores)
    assert scores.shape == (VALUES,)
    assert np.isnan(scores).all()


VECTOR = {"task": "vector", "search": {"tolerance": 0.1}}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("scores", {"task": "dense"}, "has shape 1 x 5 and is no map; state --task vector"),
    ("vector", {"task": "vector"}, 'task = "vector" needs a tolerance'),
    ("vector", {"task": "vector", "values": {"tolerances": [1, 2, 3]}}, "return 5 values, and there are 3"),
    ("first", {"task": "dense", "values": {"tolerances": [1, 2, 3]}}, "tolerances in .values. is for --task vector"),
    ("vector", {**VECTOR, "values": {"measure": "labels"}}, "measure labels is for --task dense"),
    ("vector", {"task": "embedding", "values": {"measure": "labels"}}, "take --measure cosine"),
    ("first", {"task": "dense", "values": {"axis": 3}}, "state 0 to 2, or -1"),
    ("labels", {"task": "dense", "values": {"axis": 0}}, "have labels and no channels"),
    ("scores", {"values": {"axis": 1}}, "--channel-axis is for --task dense"),
    ("scores", {"values": {"measure": "cosine"}}, "--measure is for --task"),
    ("scores", {"detection": {"keep": 10}}, "--keep-boxes is for --task detection"),
    ("scores", {"task": "detection"}, "don't tell how they become boxes"),
    ("first", {"task": "detection", "both": {"decoder": {"kind": "yolo"}}}, "is no head of kind yolo"),
    ("vector", {**VECTOR, "both": {"decoder": {"kind": "yolo"}}}, "decoder that is stated .* is for --task detection"),
    ("vector", {**VECTOR, "both": {"output": "sigmoid"}}, "stated to return sigmoid"),
    ("scores", {"search": {"oracle": "tolerance", "tolerance": 1}}, "search.tolerance = 1 is never exceeded"),
    ("first", {"task": "dense", "search": {"tolerance": 1.5}}, "never exceeded: the share of pixels"),
    ("vector", {"task": "embedding", "values": {"gallery": "g.npz"}, "search": {"tolerance": 0.1}}, "with a gallery there is no tolerance"),
    ("vector", {"task": "multi-label", "search": {"tolerance": 0.1}}, "has no tolerance: its answers are"),
    ("vector", {"task": "embedding", "search": {"tolerance": 2}}, "never exceeded: 1 less the cosine"),
    ("scores", {"search": {"tolerance": 0.1}}, "their task .--task."),
    ("first", {}, "state --task dense, embedding, vector or detection"),
    ("binary", {}, "if it is a number, state `--task vector`"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "stated", "words"), WRONG)
def test_what_does_not_fit_is_one_sentence(tmp_path, stack, kind, stated, words) -> None:
    with pytest.raises(EdgeFlareError, match=words) as error:
        resolved(value_pair(tmp_path, kind), stack, **stated)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("first", "second", "task"),
    [("vector", "first", "vector"), ("first", "vector", "embedding"), ("tags", "first", "multi-label")],
)  # fmt: skip
def test_two_models_of_other_shapes_are_no_pair(tmp_path, stack, first, second, task) -> None:
    files = value_onnx(tmp_path / "a.onnx", first), value_onnx(tmp_path / "b.onnx", second)
    search = {"tolerance": 0.1} if task == "vector" else {}
    with pytest.raises(EdgeFlareError, match=r"are not two versions|not one score for each"):
        resolved(files, stack, task=task, search=search)


def _gallery(path: Path, what: str) -> Path:
    rows = np.random.default_rng(0).normal(size=(3, VALUES))
    if what == "text":
        path.write_text("no archive")
    elif what == "array":
        with path.open("wb") as file:
            np.save(file, rows)
    elif what != "missing":
        arrays: dict[str, dict[str, Any]] = {
            "size": {"embeddings": rows[:, :4]},
            "name": {"rows": rows},
            "objects": {"embeddings": np.array([{}, {}], object)},
            "one": {"embeddings": rows[:1]},
            "complex": {"embeddings": rows * 1j},
            "endless": {"embeddings": rows * 1e300},
            "twice": {"embeddings": rows[[0, 1, 0]]},
            "zero": {"embeddings": rows * 0},
        }
        np.savez(path, **arrays[what])
    return path


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("missing", "gallery"), ("text", "no .npz"), ("array", "no .npz"),
        ("name", "array `embeddings`"), ("objects", "pickled objects"), ("complex", "real numbers"),
        ("endless", "finite"), ("size", "returns 5"), ("one", "least"), ("zero", "finite"),
        ("twice", r"2 \(counted"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_gallery(tmp_path: Path, stack: ExitStack, what: str, words: str) -> None:
    path = _gallery(tmp_path / "gallery.npz", what)
    pair = value_pair(tmp_path, "vector")
    with pytest.raises(EdgeFlareError, match=words):
        resolved(pair, stack, task="embedding", values={"gallery": path})


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ({"kind": "detections", "detector": {"kind": 7}}, StoreError),
        ({"kind": "boxes"}, UsageError),  # a distribution may have declared it
        ({}, StoreError),
    ],
)
def test_a_campaign_with_a_damaged_output_format_is_named(tmp_path, output, error) -> None:
    side = ModelInterface(
        InputSpec((1, 3, 8, 8), "float32", (8, 8), 3), TensorInfo("y", (1, 3), "float32")
    )
    assert stored_reader(side, {"kind": "logits"}, tmp_path).kind == "logits"
    with pytest.raises(error, match=r"is damaged|'boxes'"):
        stored_reader(side, output, tmp_path)
