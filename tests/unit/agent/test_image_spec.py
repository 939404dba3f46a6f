"""Descriptions of tensors travel as JSON; impossible ones are refused by field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import InputSpec, TensorInfo, is_batch_open

GOOD = InputSpec(
    shape=(1, 4, 6, 3), dtype="int8", size=(4, 6), channels=3, color="BGR", scale=(1, 255),
    mean=(0.4, 0.5, 0.6), std=(0.2,), resize="bilinear", quantization=(0.01, -3),
)  # fmt: skip
tensors = st.builds(
    TensorInfo,
    name=st.text(),
    shape=st.lists(st.none() | st.integers(1, 999)).map(tuple),
    dtype=st.sampled_from(["float32", "int8"]),
    quantization=st.none() | st.tuples(st.floats(1e-6, 10), st.integers(-128, 255)),
)


@given(tensors)
def test_a_tensor_survives_json(tensor: TensorInfo) -> None:
    assert TensorInfo.from_json(json.loads(json.dumps(tensor.to_json()))) == tensor


@pytest.mark.parametrize("spec", [GOOD, GOOD._replace(quantization=None, resize=None)])
def test_a_spec_survives_json(spec: InputSpec) -> None:
    assert InputSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"layout": "WHC"}, "layout"),
        ({"color": "CMYK"}, "color"),
        ({"resize": "bicubic"}, "resize"),
        ({"resize": ["nearest"]}, "resize"),
        ({"dtype": "complex64"}, "dtype"),
        ({"channels": 4, "shape": [1, 4, 6, 4]}, "channels"),
        ({"shape": [1, 4, 6, 1]}, "fill shape"),
        ({"shape": [-1, -4, 6, 3]}, "positive"),
        ({"size": [-4, -6]}, "positive"),
        ({"size": [10_001, 10_000], "shape": [1, 10_001, 10_000, 3]}, "too many"),
        ({"mean": [1, 2]}, "mean"),
        ({"std": [1, 2]}, "std"),
        ({"std": [0]}, "zero"),
        ({"scale": [1, 0]}, "zero"),
        ({"scale": [0, 1]}, "zero"),
        ({"mean": [float("nan")]}, "finite"),
        ({"scale": [float("inf"), 1]}, "finite"),
        ({"quantization": [0.0, 0]}, "quantization"),
        ({"quantization": [-0.1, 0]}, "quantization"),
        ({"dtype": "float32"}, "quantization"),
        ({"color": "GRAY"}, "GRAY"),
        ({"channels": 1, "size": [12, 6], "mean": [0]}, "BGR"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError, match=field):
        InputSpec.from_json({**GOOD.to_json(), **change})


@pytest.mark.parametrize(
    "data",
    [
        {}, [], None, {**GOOD.to_json(), "shape": None}, {**GOOD.to_json(), "size": [1]},
        {**GOOD.to_json(), "shape": [float("inf")]}, {**GOOD.to_json(), "mean": ["much"]},
    ],
)  # fmt: skip
def test_anything_else_is_no_spec(data: Any) -> None:
    with pytest.raises(RequestError, match="input spec"):
        InputSpec.from_json(data)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(None, 4)], True),
        ([(1, 4), (0, 2)], True),
        ([(1, None)], False),
        ([()], False),
        ([], False),
    ],
)
def test_an_open_first_axis_of_an_input_is_the_batch(shapes, expected) -> None:
    assert is_batch_open([TensorInfo("x", shape, "float32") for shape in shapes]) is expected
