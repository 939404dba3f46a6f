"""The shared models compute in torch what they compute in ONNX Runtime."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from edgeflare_whitebox.gradients import DifferentiableModel

pytestmark = [pytest.mark.torch, pytest.mark.shared_data]

FLOAT = [
    "deepxplore/lenet1.onnx",
    "deepxplore/lenet4.onnx",
    "deepxplore/lenet5.onnx",
    "diffchaser/lenet1.onnx",
    "diffchaser/lenet5.onnx",
    "diffchaser/resnet20.onnx",
    "imagenet/imagenet_efficientnet_lite0_fp32.onnx",
    "detection/fastestdet_fp32.onnx",
    "detection/rfb320_fp32.onnx",
]
QUANTISED = ["imagenet/imagenet_efficientnet_lite0_int8_perchannel.onnx"]


def answers(path: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Both runtimes' outputs for two random inputs (one where the batch is fixed).

    ONNX Runtime computes the model as its file has it: the int8 kernels that further optimisation
    puts in saturate on processors without VNNI.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    shape = [2 if isinstance(size, str) else size for size in given.shape]
    x = np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)
    names = [one.name for one in session.get_outputs()]
    expected = dict(zip(names, session.run(names, {given.name: x}), strict=True))
    found = DifferentiableModel(path).run({given.name: x})
    return expected, {name: one.numpy() for name, one in found.items()}


@pytest.mark.parametrize("name", FLOAT)
def test_float_models_agree_to_five_digits(shared_data: Path, name: str) -> None:
    expected, found = answers(shared_data / "models" / name)

    for key, want in expected.items():
        largest = max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(found[key] / largest, want / largest, atol=1e-5)


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_models_agree_to_some_steps(shared_data: Path, name: str) -> None:
    expected, found = answers(shared_data / "models" / name)

    for key, want in expected.items():
        spread = float(np.ptp(want))
        assert np.abs(found[key] - want).mean() < 0.02 * spread
        assert (found[key].argmax(-1) == want.argmax(-1)).all()


def test_the_gradient_of_a_margin_leads_over_the_boundary(shared_data: Path) -> None:
    model = DifferentiableModel(shared_data / "models/diffchaser/lenet5.onnx")
    images = np.load(shared_data / "images/mnist_test_0_499.npz")["images"][:16]
    x = (images[..., None] / 255).astype(np.float32)

    def decisions(batch: Any) -> Any:
        return model.run({model.inputs[0]: batch})[model.outputs[0]].argmax(1).numpy()

    first = decisions(x)
    steps = np.array(x)
    for _ in range(60):
        _, gradient = model.gradient(
            steps, lambda values: values[model.outputs[0]].log()[range(16), first]
        )
        steps = np.clip(steps - 0.01 * np.sign(gradient), 0, 1)

    assert (decisions(steps) != first).mean() > 0.8
