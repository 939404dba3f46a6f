"""Several inputs and outputs of a model, as an agent is asked for them on the wire."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agent_process import AgentProcess
from onnx import TensorProto, helper
from small_models import save_onnx

from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.wire import Frame, Kind

SPEC = InputSpec((1, 4), "float32", (1, 4), 1).to_json()
SAMPLE = np.array([[[1], [5], [9], [5]]], np.uint8)
VALUES = np.array([[1, 5, 9, 5]], np.float32)
TENS = np.full((1, 4), 10.0)


def refused(answer: Frame) -> str:
    assert answer.kind is Kind.ERROR, answer
    assert answer.header["code"] == "bad-request"
    return str(answer.header["message"])


@pytest.fixture
def loaded(agent: AgentProcess, tmp_path: Path) -> AgentProcess:
    """An agent with a model of two inputs [1, 4], a and b, and two outputs, a - b and -a."""
    a, b, apart, minus = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])
        for name in ("a", "b", "apart", "minus")
    )
    nodes = [
        helper.make_node("Sub", ["a", "b"], ["apart"]),
        helper.make_node("Neg", ["a"], ["minus"]),
    ]
    answer = agent.load(save_onnx(tmp_path / "two.onnx", nodes, [a, b], [apart, minus]), "onnx")
    assert answer.kind is Kind.LOADED
    assert [one["name"] for one in answer.header["inputs"]] == ["a", "b"]
    return agent


def configure(agent: AgentProcess, arrays: Any = (), **header: Any) -> Frame:
    return agent.request(Kind.CONFIGURE, {"input": SPEC, "output": "apart", **header}, arrays)


def test_several_inputs_are_refused_until_all_but_one_are_given(loaded: AgentProcess) -> None:
    message = refused(configure(loaded))
    assert "x 4, float32)" in message
    assert "--fixed-inputs FILE.npz" in message
    assert "nothing is given" in refused(configure(loaded, searched=["a"]))
    assert "send CONFIGURE first" in refused(loaded.infer([SAMPLE]))
    assert configure(loaded, [TENS], fixed=["b"]).kind is Kind.CONFIGURED
    np.testing.assert_array_equal(loaded.infer([SAMPLE]).arrays[0], VALUES - 10)
    assert configure(loaded, [TENS], fixed=["a"], searched=["b"]).kind is Kind.CONFIGURED
    np.testing.assert_array_equal(loaded.infer([SAMPLE]).arrays[0], 10 - VALUES)


def test_fixed_inputs_that_make_no_sense_are_refused(loaded: AgentProcess) -> None:
    for arrays, header, words in (
        ([TENS], {"fixed": ["c"]}, "no input 'c'; it has a, b"),
        ([TENS], {"fixed": "b"}, "searched and fixed must be lists"),
        ([TENS], {"fixed": ["b"], "searched": "a"}, "searched and fixed must be lists"),
        ([TENS, TENS], {"fixed": ["b", "b"]}, "each input once"),
        ([], {"fixed": ["b"]}, "with an array for each"),
        ([TENS], {"fixed": ["b"], "rows": -1}, "rows must be a number of rows"),
        ([TENS[None]], {"fixed": ["b"], "rows": 2}, "b: 1, seeds that are named: 2;"),
        ([TENS[:, :3]], {"fixed": ["b"]}, "input b has shape 1 x 3, and 1 x 4 is needed"),
    ):
        assert words in refused(configure(loaded, arrays, **header))


def test_each_sample_goes_with_the_row_of_its_seed(loaded: AgentProcess) -> None:
    rows = np.stack([TENS, 2 * TENS, 3 * TENS])
    configure(loaded, [rows], fixed=["b"], rows=3)
    result = loaded.request(Kind.INFER, {"rows": [2, 0]}, [SAMPLE, SAMPLE + 1])
    np.testing.assert_array_equal(result.arrays[0], VALUES - 30)
    np.testing.assert_array_equal(result.arrays[1], VALUES - 9)
    np.testing.assert_array_equal(loaded.infer([SAMPLE]).arrays[0], VALUES - 10)
    for bad in ([0], [0, 3], [0, -1], [0, "1"], [0, True], "01", None):
        header = {"rows": bad}
        assert "configured rows" in refused(loaded.request(Kind.INFER, header, [SAMPLE, SAMPLE]))


def test_outputs_return_in_the_order_of_the_names(loaded: AgentProcess) -> None:
    configure(loaded, [TENS], fixed=["b"], output=["minus", "apart"])
    result = loaded.infer([SAMPLE, SAMPLE + 1])
    assert result.header["outputs"] == 2
    expected = [-VALUES, VALUES - 10, -VALUES - 1, VALUES - 9]
    for array, wanted in zip(result.arrays, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert loaded.infer([]).header["outputs"] == 2
    configure(loaded, [TENS], fixed=["b"], output=["apart"])
    assert loaded.infer([SAMPLE]).header["outputs"] == 1
    configure(loaded, [TENS], fixed=["b"], output="apart")
    assert "outputs" not in loaded.infer([SAMPLE]).header


def test_anchors_are_reduced_before_they_travel(loaded: AgentProcess) -> None:
    keep = {"count": 2, "scores": 1, "axis": [1, 1]}
    configure(loaded, [TENS], fixed=["b"], output=["minus", "apart"], keep=keep)
    minus, apart = loaded.infer([SAMPLE]).arrays
    np.testing.assert_array_equal(minus, [[-5, -9]])
    np.testing.assert_array_equal(apart, [[-5, -1]])
    keep = {"count": 1, "scores": 0, "axis": [1]}
    configure(loaded, [TENS], fixed=["b"], output="minus", keep=keep)
    np.testing.assert_array_equal(loaded.infer([SAMPLE]).arrays[0], [[-1]])


def test_lists_of_outputs_that_make_no_sense_are_refused(loaded: AgentProcess) -> None:
    repair = {"size": 4, "kind": "logits", "below": 0.5, "sure": None}
    keep = {"count": 1, "scores": 0, "axis": [5]}
    for header, words in (
        ({"output": []}, "at least one output, and each once"),
        ({"output": ["apart", "apart"]}, "at least one output, and each once"),
        ({"output": ["apart", "other"]}, "no output 'other'; the model's outputs are apart, minus"),
        ({"output": ["apart"], "repair": repair}, "a repair is for one whole output"),
        ({"keep": keep}, "output 'apart' has 2 axes, so none is number 5"),
    ):
        assert words in refused(configure(loaded, [TENS], fixed=["b"], **header))


def test_a_repair_and_fixed_inputs_share_the_arrays(loaded: AgentProcess) -> None:
    repair = {"size": 4, "kind": "logits", "below": 1.0, "sure": None}
    mean, std, classes = np.zeros(4), np.ones(4), np.array([2, 3])
    layer = [np.zeros((4, 2)), np.array([0.0, 50.0])]
    arrays = [mean, std, classes, *layer, TENS]
    assert configure(loaded, arrays, fixed=["b"], repair=repair).kind is Kind.CONFIGURED
    [repaired] = loaded.infer([np.full_like(SAMPLE, 7)]).arrays
    assert repaired.argmax() == 3
