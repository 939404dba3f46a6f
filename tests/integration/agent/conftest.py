"""A running agent, and models that take as long as a test wants."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from agent_process import AgentProcess
from onnx import TensorProto, helper
from small_models import save_onnx

from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.wire import Kind

PIXELS = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1, scale=(1, 255))
FOR_EVER = 2**62


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentProcess]:
    """An agent that was told START."""
    with AgentProcess(tmp_path) as running:
        running.start()
        yield running


@pytest.fixture
def begin_slow_inference(tmp_path: Path) -> Callable[[AgentProcess, int], None]:
    """(agent, rounds): load a model that loops, configure it and send it a sample, with id "slow"."""

    def begin(agent: AgentProcess, rounds: int) -> None:
        number = helper.make_tensor_value_info("number", TensorProto.INT64, [])
        goes_on = helper.make_tensor_value_info("goes_on", TensorProto.BOOL, [])
        still = helper.make_tensor_value_info("still", TensorProto.BOOL, [])
        before, after, x, y = (
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 8, 1])
            for name in ("before", "after", "x", "y")
        )
        nodes = [
            helper.make_node("Tanh", ["before"], ["after"]),
            helper.make_node("Identity", ["goes_on"], ["still"]),
        ]
        body = helper.make_graph(nodes, "body", [number, goes_on, before], [still, after])
        model = save_onnx(
            tmp_path / "slow.onnx",
            [helper.make_node("Loop", ["rounds", "yes", "x"], ["y"], body=body)],
            [x],
            [y],
            {"rounds": np.array(rounds), "yes": np.array(True)},
        )
        assert agent.load(model, "onnx").kind is Kind.LOADED
        assert agent.configure(PIXELS).kind is Kind.CONFIGURED
        agent.send(Kind.INFER, {"id": "slow"}, [np.zeros((8, 8, 1), np.uint8)])

    return begin
