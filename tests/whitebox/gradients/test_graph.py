"""Tensors keep their names: any can be read or patched, and only what is needed runs."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgeflare.errors import UsageError
from edgeflare_whitebox.gradients import DifferentiableModel

pytestmark = pytest.mark.torch


@pytest.fixture
def chain() -> DifferentiableModel:
    """`doubled` = 2 x, `summed` = the sum of its two elements, `other` = -x."""
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["doubled"]),
        helper.make_node("ReduceSum", ["doubled", "axes"], ["summed"]),
        helper.make_node("Neg", ["x"], ["other"]),
    ]
    names = {"two": np.float32(2), "axes": np.array([1])}
    constants = [numpy_helper.from_array(np.asarray(value), key) for key, value in names.items()]
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("summed", "other")]
    graph = helper.make_graph(nodes, "chain", [info], outputs, constants)
    return DifferentiableModel(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    )


X = np.array([[1, 2], [3, 4]], np.float32)


def test_names_are_those_of_the_file(chain: DifferentiableModel) -> None:
    assert chain.inputs == ("x",)
    assert chain.outputs == ("summed", "other")


def test_inner_tensors_are_read(chain: DifferentiableModel) -> None:
    assert chain.run({"x": X}, ["doubled"])["doubled"].tolist() == (2 * X).tolist()


def test_only_what_is_needed_runs(chain, monkeypatch) -> None:
    ran: list[str] = []
    run_node = chain._run_node
    monkeypatch.setattr(
        chain, "_run_node", lambda node, values: ran.append(node.kind) or run_node(node, values)
    )

    assert chain.run({"x": X}, ["other"])["other"].tolist() == (-X).tolist()
    assert ran == ["Neg"]


def test_the_gradient_of_any_tensor_is_had(chain: DifferentiableModel) -> None:
    _, gradient = chain.gradient(X, lambda values: values["doubled"][:, 1], ["doubled"])

    assert gradient.tolist() == [[0, 2], [0, 2]]


def test_what_does_not_depend_on_the_input_has_no_gradient(chain: DifferentiableModel) -> None:
    _, gradient = chain.gradient(X, lambda values: values["two"].expand(2) * 0.5, ["two"])

    assert gradient.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("wanted", ["nothing", "X"])
def test_an_unknown_name_is_refused(chain: DifferentiableModel, wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        chain.run({"x": X}, [wanted])


def test_a_missing_feed_is_refused(chain: DifferentiableModel) -> None:
    with pytest.raises(UsageError, match="not fed"):
        chain.run({}, ["summed"])
