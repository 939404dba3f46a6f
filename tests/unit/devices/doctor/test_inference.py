"""What the inference of a check feeds a model with open axes, and when a device's answer counts as this machine's."""

import numpy as np
import pytest

from edgeflare.devices.doctor.inference import (
    InferenceResult,
    answers_equal,
    demo_model,
    difference,
    plain_input,
)
from edgeflare.devices.runtimes import BY_EXTENSION
from edgeflare_agent.image_spec import TensorInfo

INF, NAN = float("inf"), float("nan")


def answer(
    values: list[float], dtype: str = "float32", *, quantized: bool = False
) -> InferenceResult:
    output = TensorInfo("y", (1, len(values)), dtype, (0.5, 0) if quantized else None)
    return InferenceResult({}, output, np.array(values, dtype), (0.1,))


@pytest.mark.parametrize(
    ("on_device", "on_host", "apart", "alike"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0, True),
        ([1.0, 2.000001], [1.0, 2.0], 1e-6, True),
        ([1.0, 2.001], [1.0, 2.0], 1e-3, False),
        ([1000.0, 1000.005], [1000.0, 1000.0], 5e-3, True),
        ([NAN, INF], [NAN, INF], 0.0, True),
        ([NAN, 1.0], [0.0, 1.0], INF, False),
        ([-INF, 1.0], [INF, 1.0], INF, False),
        ([1.0], [1.0, 2.0], INF, False),
    ],
)
def test_real_answers_may_differ_by_rounding(on_device, on_host, apart, alike) -> None:
    assert difference(answer(on_device), answer(on_host)) == pytest.approx(apart, rel=0.05)
    assert answers_equal(answer(on_device), answer(on_host)) is alike


def test_quantised_answers_must_be_equal() -> None:
    one, other = (answer([value, -128], "int8", quantized=True) for value in (127, 126))
    assert answers_equal(one, one)
    assert not answers_equal(one, other)
    assert difference(one, other) == 1.0
    assert difference(answer([-128], "int8"), answer([127], "int8")) == 255.0


def test_each_runtime_of_a_file_has_a_small_model() -> None:
    for runtime in BY_EXTENSION.values():
        assert demo_model(runtime).is_file()


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (
            {"delegate": "XNNPACK, 5 of 8 operators in 3 parts"},
            "XNNPACK, 5 of 8 operators in 3 parts",
        ),
        ({"delegate": None}, "no delegate"),
        ({"providers": ["CPU"]}, "CPU"),
        ({"providers": ["GPU", "CPU"], "nodes": {"CPU": 3}}, "GPU (0 nodes), CPU (3 nodes)"),
        (
            {"providers": ["GPU", "CPU"], "nodes": None},
            "GPU, CPU, which of them runs a node isn't told",
        ),
    ],
)
def test_what_runs_the_operators_is_reported(effect: dict[str, object], words: str) -> None:
    ran = InferenceResult(effect, TensorInfo("y", (1,), "float32"), np.zeros(1), (0.1,))
    assert ran.accelerated_by == words


def test_seconds_leave_the_first_try_out() -> None:
    output = TensorInfo("y", (1,), "float32")
    tried = InferenceResult({}, output, np.zeros(1), (9.0, 0.001, 0.002, 0.003))
    assert tried.median_ms == pytest.approx(2.0)
    assert InferenceResult({}, output, np.zeros(1), (0.5,)).median_ms == pytest.approx(500.0)


@pytest.mark.parametrize(
    ("shape", "filled"),
    [
        ((1, 49, 10, 1), (1, 49, 10, 1)),
        ((None, 3, None, None), (1, 3, 224, 224)),
        ((None, None), (1, 16000)),
        ((1, None), (1, 16000)),
        ((1, 80, None), (1, 80, 224)),
        ((None, 10), (1, 10)),
    ],
)
def test_open_axes_are_as_long_as_an_image_or_a_second_of_sound(shape, filled) -> None:
    assert plain_input(TensorInfo("x", shape, "float32")).shape == filled
