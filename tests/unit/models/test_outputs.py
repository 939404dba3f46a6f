import numpy as np
import pytest

from edgeflare.answers.outputs import detect_kind, largest_sum_error, output_classes
from edgeflare.errors import ModelError
from edgeflare.models import OutputReader
from edgeflare_agent.decoding import Decoded
from edgeflare_agent.image_spec import TensorInfo

FLOAT = TensorInfo("scores", (1, 4), "float32")
INT8 = TensorInfo("scores", (1, 4), "int8", (1 / 256, -128))
RNG = np.random.default_rng(3)


def test_probabilities_and_logits_are_distinguished() -> None:
    logits = RNG.normal(size=(20, 1, 4)).astype(np.float32) * 3
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    assert detect_kind(FLOAT, list(logits)) == "logits"
    assert detect_kind(FLOAT, list(probabilities)) == "probabilities"


def test_one_value_outside_makes_logits() -> None:
    assert (
        detect_kind(FLOAT, [np.array([[0.25] * 4]), np.array([[0.1, 0.2, 0.3, 1.4]])]) == "logits"
    )


def test_rounding_does_not_make_logits_of_probabilities() -> None:
    coarse = TensorInfo("scores", (1, 1000), "uint8", (1 / 255, 0))
    logits = RNG.normal(size=(5, 1000)) * 3
    powers = np.exp(logits)
    stored = np.round(powers / powers.sum(-1, keepdims=True) * 255).astype(np.uint8)
    assert stored.sum(-1).min() < 0.9 * 255
    assert detect_kind(coarse, list(stored)) == "probabilities"
    assert largest_sum_error(coarse, list(stored)) == 0
    assert largest_sum_error(FLOAT, [np.array([[0.9, 0.9, 0.1, 0.1]])]) == pytest.approx(1)


def test_tflites_softmax_quantisation_means_probabilities_even_if_sums_are_off() -> None:
    assert detect_kind(INT8, [np.array([[-128, -128, -100, 0]], np.int8)]) == "probabilities"


def test_text_of_a_recogniser_can_not_write_to_a_terminal() -> None:
    heard = Decoded(("\x1b]0;owned\x07a", "b\x1b[2J\u202e"), np.ones((2, 2)))
    reader = OutputReader(TensorInfo("text", (1,), "uint8"), "transcript")
    answer = reader.read(heard)
    assert answer.pieces == ("a", "b\ufffd")


def test_nan_says_nothing_of_the_kind() -> None:
    assert detect_kind(FLOAT, [np.full((1, 4), np.nan), np.array([[0.1, 0.2, 0.3, 0.4]])]) == (
        "probabilities"
    )


def test_scores_are_dequantised_float64() -> None:
    scores = OutputReader(INT8, "probabilities").read(np.array([[-128, 0, 0, 127]], np.int8))
    assert scores.dtype == np.float64
    assert scores.tolist() == [0.0, 0.5, 0.5, 255 / 256]


def test_softmax_of_huge_logits_is_finite_and_keeps_nan() -> None:
    reader = OutputReader(FLOAT, "logits")
    assert reader.read(np.array([[1e4, 0, 0, 0]], np.float32)).tolist() == [1, 0, 0, 0]
    assert np.isnan(reader.read(np.array([[np.nan, 0, 0, 0]], np.float32))).all()
    assert np.isnan(reader.read(np.array([[np.inf, 0, 0, 0]], np.float32))).all()


@pytest.mark.parametrize("shape", [(1, 7), (None, 7), (1, 1, 1, 7), (7,)])
def test_classes_of_a_class_vector(shape) -> None:  # type: ignore[no-untyped-def]
    assert output_classes(TensorInfo("o", shape, "float32"), "the model") == 7


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1, 7, 7, 4), "state --task dense, embedding, vector or detection"),
        ((1, None), "fixed number of classes"),
        ((1, 1), "numbers or boxes state --task"),
    ],
)
def test_a_feature_map_is_no_class_vector(shape, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ModelError, match=f"class; .*{words}"):
        output_classes(TensorInfo("o", shape, "float32"), "the model")
