"""The original recogniser in this process, and how its answers are read."""

from pathlib import Path

import numpy as np
import pytest
from small_models import TFLITE
from speech_models import CTC, WAVEFORM, clip, ctc_model, spelt, token_model

from edgeflare.errors import ModelError
from edgeflare.models import OriginalModel, OutputReader, as_output
from edgeflare.types import Transcript
from edgeflare_agent.decoding import Decoded
from edgeflare_agent.image_spec import InputSpec, TensorInfo

LOGITS = TensorInfo("logits", (1, None, 5), "float32")
OWN = {"vocabulary": None}


def recogniser(path: Path, decoder: object = OWN) -> OriginalModel:
    model = OriginalModel(path, "onnx", {})
    model.configure(WAVEFORM, None, decoder)  # type: ignore[arg-type]
    model.read_with(OutputReader(model.outputs[0], "transcript"))
    return model


def test_what_was_decoded_is_read_as_a_transcript() -> None:
    scores = np.array([[0.5, 0.25], [np.nan, 0]])
    read = OutputReader(LOGITS, "transcript").read(Decoded(("a", " b"), scores))
    assert (read.pieces, read.text) == (("a", " b"), "a b")
    np.testing.assert_array_equal(read.scores, scores)
    assert OutputReader(LOGITS, "transcript").read(read) is read
    raw = np.zeros(3)
    assert as_output(raw) is raw


def test_a_model_that_decodes_by_itself(tmp_path: Path) -> None:
    model = recogniser(token_model(tmp_path / "m.onnx"))
    assert (model.decoder["kind"], model.decoder["tokens"]) == ("tokens", 5)
    (answer,) = model.scores([clip(0.0, 0.2, 0.4, 0.6, 0.8)])
    model.close()
    assert answer.pieces == ("a", " ", "\u00e9")
    assert (answer.scores[:, 0] > 0.9).all()
    assert (answer.scores[:, 1] < 0.01).all()


def test_a_model_with_frames_and_clips_of_any_length(tmp_path: Path) -> None:
    model = recogniser(ctc_model(tmp_path / "m.onnx"))
    answers = model.scores([spelt("ab|_ba_a"), spelt("cc"), spelt("_")])
    model.close()
    assert [answer.text for answer in answers if isinstance(answer, Transcript)] == [
        "ab baa",
        "c",
        "",
    ]


def test_a_stated_decoder_goes_before_the_files_own(tmp_path: Path) -> None:
    path = ctc_model(tmp_path / "m.onnx")
    model = recogniser(path, {**CTC, "vocabulary": ["_", "x", "y", "z", "-"]})
    (answer,) = model.scores([spelt("ab|c")])
    assert answer.text == "xy-z"
    model.configure(WAVEFORM, "logits")
    assert np.asarray(model.raw(spelt("ab|c"))).shape == (1, 4, 5)
    with pytest.raises(ModelError, match="shape 1"):
        model.configure(WAVEFORM, "logits", {**CTC, "vocabulary": ["_", "x"]})
    model.close()


def test_a_file_whose_decoder_makes_no_sense_is_named(tmp_path: Path) -> None:
    path = ctc_model(tmp_path / "m.onnx", decoder={"kind": "beam", "vocabulary": ["a"]})
    with pytest.raises(ModelError, match=r"m\.onnx"):
        OriginalModel(path, "onnx", {})


@pytest.mark.parametrize("name", ["float", "int8", "uint8", "nan"])
def test_tflite_models_are_decoded_with_their_quantisation(name: str) -> None:
    """Its four probabilities are one frame here."""
    model = OriginalModel(TFLITE / f"{name}.tflite", "tflite", {})
    of_file = model.input
    spec = InputSpec(
        (1, 8, 8, 1), of_file.dtype, (8, 8), 1, scale=(1, 255), quantization=of_file.quantization
    )
    sample = np.random.default_rng(4).integers(0, 256, (8, 8, 1), np.uint8)
    if name == "nan":
        sample[:] = 255
    decoder = {"kind": "ctc", "vocabulary": list("abcd"), "blank": 3}
    model.configure(spec, model.outputs[0].name)
    model.read_with(OutputReader(model.outputs[0], "probabilities"))
    (scores,) = model.scores([sample])
    model.configure(spec, model.outputs[0].name, decoder)
    (answer,) = model.scores([sample])
    model.close()
    assert isinstance(scores, np.ndarray)
    if name == "nan":
        assert answer.pieces == ("",)
        assert np.isnan(answer.scores).all()
        return
    second, best = np.argsort(scores)[-2:]
    assert best != 3
    assert answer.pieces == ("abcd"[best],)
    assert answer.scores.tolist() == [[scores[best], scores[second]]]
