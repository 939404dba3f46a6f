"""Raw outputs become values, scores of labels, and scores of a gallery's entries."""

import numpy as np
import pytest

from edgeflare._internal import exact
from edgeflare.answers.metrics import disagreement
from edgeflare.answers.value_outputs import (
    MOST_TAGS,
    TEMPERATURE,
    GalleryReader,
    TagsReader,
    ValuesReader,
)
from edgeflare.errors import ModelError
from edgeflare.models import TensorInfo
from edgeflare.types import DetectionRules, Detections, ValueRules, Values


def read(raw: np.ndarray, shape: tuple[int | None, ...]) -> Values:
    found = ValuesReader((TensorInfo("out", shape, "float32"),), ValueRules()).read(raw)
    assert isinstance(found, Values)
    return found


@pytest.mark.parametrize("shape", [(1, 3, 8, 8), (None, 3, 8, 8), (0, 3, 8, 8)])
def test_a_flat_output_gets_the_shape_that_the_file_states(shape: tuple[int | None, ...]) -> None:
    values = np.arange(192.0)
    np.testing.assert_array_equal(read(values, shape).array, values.reshape(3, 8, 8))


def test_an_output_of_another_size_than_the_file_states_is_refused() -> None:
    with pytest.raises(ModelError, match="shape 1"):
        read(np.zeros((1, 3, 4, 4)), (1, 3, 8, 8))


@pytest.mark.parametrize("measure", ["labels", "absolute", "relative", "cosine"])
@pytest.mark.parametrize("other", [(3, 8, 8), (3, 1, 16)])
def test_answers_of_two_sizes_are_refused_in_a_sentence(measure, other) -> None:
    rules = ValueRules(measure)  # type: ignore[arg-type]
    ours = read(np.zeros((1, 3, 16, 16)), (1, 3, None, None))
    theirs = read(np.zeros((1, *other)), (1, 3, None, None))
    with pytest.raises(ModelError, match="fixed shapes"):
        disagreement(Values(ours.array, rules), Values(theirs.array, rules))


def tags(scores: np.ndarray, *, logits: bool = False) -> Detections:
    tensor = TensorInfo("out", (1, scores.size), "float32")
    return TagsReader(tensor, DetectionRules(located=False), logits).read(scores[None])  # type: ignore[return-value]


def test_labels_that_apply_are_all_kept() -> None:
    found = tags(np.linspace(0.9, 0.1, 1000))
    assert found.count == len(found.labels) == 500
    assert len(tags(np.linspace(0.4, 0.1, 1000)).labels) == MOST_TAGS


def test_infinite_scores_of_labels_are_nan_and_come_first() -> None:
    scores = np.array([3.0, np.inf, -np.inf, np.nan, -3.0])
    found = tags(scores, logits=True)
    assert found.labels.tolist() == [1, 2, 3, 0, 4]
    assert np.isnan(found.scores[:3]).all()
    assert found.scores[3:] == pytest.approx(1 / (1 + np.exp([-3.0, 3.0])), rel=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
def test_scores_of_a_gallery_have_the_same_bits_in_any_layout(order: str) -> None:
    rng = np.random.default_rng(5)
    gallery, embedding = rng.normal(size=(40, 300)), rng.normal(size=300)
    reader = GalleryReader(TensorInfo("out", (1, 300), "float32"), np.asarray(gallery, order=order))  # type: ignore[call-overload]
    cosines = [exact.dot(one, embedding) / exact.norm(embedding) for one in gallery]
    expected = exact.softmax(np.array(cosines) / TEMPERATURE)
    np.testing.assert_array_equal(reader.read(embedding[None]), expected)
