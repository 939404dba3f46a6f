"""What the small inference of a device's check feeds a model with open axes."""

import pytest

from edgeflare.devices.doctor.inference import plain_input
from edgeflare_agent.image_spec import TensorInfo


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
def test_open_axes_are_as_long_as_an_image_or_a_second_of_sound(
    shape: tuple[int | None, ...], filled: tuple[int, ...]
) -> None:
    assert plain_input(TensorInfo("x", shape, "float32")).shape == filled
