"""Models that end in sigmoids: what of their outputs is stated, what the answers tell, what is refused."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from model_pairs import Pair, stated
from onnx import TensorProto, helper
from small_models import save_onnx

from edgeflare.campaign.pair.model_pair import RawOriginal, readers
from edgeflare.errors import ModelError

DARK, BRIGHT = np.full((4, 4, 1), 20, np.uint8), np.full((4, 4, 1), 230, np.uint8)


def brightness(path: Path, scores: int, *, sigmoid: bool = True, softmax: bool = False) -> Path:
    """image float32 [1, 1, 4, 4] -> [1, scores]: the brighter, the higher; a later one is lower."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Reshape", ["mean", "one"], ["column"]),
        helper.make_node("Mul", ["column", "w"], ["scaled"]),
        helper.make_node("Sub", ["scaled", "b"], ["logits"]),
    ]
    head = "Softmax" if softmax else "Sigmoid" if sigmoid else "Identity"
    nodes.append(helper.make_node(head, ["logits"], ["y"]))
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, scores])],
        {
            "one": np.array([1, 1], np.int64),
            "w": np.full(scores, 8.0, np.float32),
            "b": np.arange(4, 4 + scores, dtype=np.float32),
        },
    )


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def answered(pair: Pair) -> tuple[list[list[float]], list[str], list[str]]:
    """Both images' scores of the original, both models' kinds, and the notices."""
    raw, _ = RawOriginal(pair.original).answer([DARK, BRIGHT])
    both, doubts = readers(pair.config, pair.sides, (raw, raw))
    pair.original.read_with(both[0])
    scores = [np.asarray(one).tolist() for one in pair.original.scores([DARK, BRIGHT])]
    return scores, [one.kind for one in both], doubts


@pytest.mark.parametrize("output", ["sigmoid", "probabilities"])
def test_a_single_sigmoid_is_two_classes(tmp_path: Path, stack: ExitStack, output: str) -> None:
    model = brightness(tmp_path / "o.onnx", 1)
    pair = Pair(stated(model, model, output=output, input={"scale": "1/255"}), stack)
    assert [side.classes for side in pair.sides] == [2, 2]
    (dark, bright), kinds, doubts = answered(pair)
    assert kinds == ["sigmoid", "sigmoid"]
    assert doubts == []
    assert dark[0] > 0.9
    assert bright[1] > 0.9
    assert sum(dark) == pytest.approx(1.0)


def test_before_the_sigmoid_the_same_classes_come_out(tmp_path: Path, stack: ExitStack) -> None:
    found = []
    for output in ("sigmoid", "logits", "sigmoid-logits"):
        model = brightness(tmp_path / f"{output}.onnx", 1, sigmoid=output == "sigmoid")
        pair = Pair(stated(model, model, output=output, input={"scale": "1/255"}), stack)
        found.append(answered(pair)[0])
    assert np.allclose(found[0], found[1], atol=1e-6)
    assert found[1] == found[2]


def test_a_single_value_that_nothing_is_stated_of_is_refused_with_what_to_state(
    tmp_path: Path, stack: ExitStack
) -> None:
    model = brightness(tmp_path / "o.onnx", 1)
    with pytest.raises(ModelError, match="`--output sigmoid`"):
        Pair(stated(model, model, input={"scale": "1/255"}), stack)


def test_independent_sigmoids_are_recognised_by_their_sum_in_both_models(tmp_path, stack) -> None:
    model = brightness(tmp_path / "o.onnx", 3)
    pair = Pair(stated(model, model, input={"scale": "1/255"}), stack)
    scores, kinds, doubts = answered(pair)
    assert kinds == ["sigmoid", "sigmoid"]
    assert len(doubts) == 1
    assert "independent sigmoids" in doubts[0]
    assert [sum(one) for one in scores] == pytest.approx([1.0, 1.0])
    assert all(one == sorted(one, reverse=True) for one in scores)


def test_a_deployed_model_with_a_wrong_sum_is_not_taken_for_sigmoids(tmp_path, stack) -> None:
    original = brightness(tmp_path / "o.onnx", 3, softmax=True)
    deployed = brightness(tmp_path / "d.onnx", 3)
    pair = Pair(stated(original, deployed, input={"scale": "1/255"}), stack)
    ours, _ = RawOriginal(pair.original).answer([DARK, BRIGHT])
    both, doubts = readers(
        pair.config, pair.sides, (ours, [np.array([[0.9, 0.8, 0.7]], np.float32)] * 2)
    )
    assert [one.kind for one in both] == ["probabilities", "probabilities"]
    assert len(doubts) == 1
    assert "deployed model's outputs" in doubts[0]
