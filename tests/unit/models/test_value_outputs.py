"""Raw outputs become values, scores of labels, and scores of a gallery's entries."""

import numpy as np
import pytest

from edgeflare.errors import ModelError
from edgeflare.metrics import disagreement
from edgeflare.models import TensorInfo
from edgeflare.models.value_outputs import ValuesReader
from edgeflare.types import ValueRules, Values


def read(raw: np.ndarray, shape: tuple[int | None, ...]) -> Values:
    found = ValuesReader((TensorInfo("out", shape, "float32"),), ValueRules()).read(raw)
    assert isinstance(found, Values)
    return found


@pytest.mark.parametrize("shape", [(1, 3, 8, 8), (None, 3, 8, 8), (0, 3, 8, 8)])
def test_a_flat_output_gets_the_shape_that_the_file_states(shape: tuple[int | None, ...]) -> None:
    values = np.arange(192.0)
    np.testing.assert_array_equal(read(values, shape).array, values.reshape(3, 8, 8))


def test_an_output_of_another_size_than_the_file_states_is_refused() -> None:
    with pytest.raises(ModelError, match=r"read with shape 1 x 3 x 4 x 4, .* 1 x 3 x 8 x 8"):
        read(np.zeros((1, 3, 4, 4)), (1, 3, 8, 8))


@pytest.mark.parametrize("measure", ["labels", "absolute", "relative", "cosine"])
@pytest.mark.parametrize("other", [(3, 8, 8), (3, 1, 16)])
def test_answers_of_two_sizes_are_refused_in_a_sentence(
    measure: str, other: tuple[int, ...]
) -> None:
    rules = ValueRules(measure)  # type: ignore[arg-type]
    ours = read(np.zeros((1, 3, 16, 16)), (1, 3, None, None))
    theirs = read(np.zeros((1, *other)), (1, 3, None, None))
    with pytest.raises(ModelError, match="export both with the same fixed shapes"):
        disagreement(Values(ours.array, rules), Values(theirs.array, rules))
