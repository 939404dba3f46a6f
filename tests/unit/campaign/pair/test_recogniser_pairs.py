"""Two speech recognisers, or two models of audio, brought to one understanding."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from model_pairs import Pair, stated
from onnx import TensorProto, helper
from small_models import save_onnx
from speech_models import LETTERS, ctc_model, spelt, token_model

from edgeflare.answers import TRANSCRIPTS
from edgeflare.campaign.pair.model_pair import RawOriginal, readers
from edgeflare.campaign.provenance import model_identity
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.errors import ModelError, UsageError


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def plain_model(path: Path, length: int | None = None, scores: int = 3) -> Path:
    """x float32 [1, length] -> [1, scores], which tells nothing of its input."""
    return save_onnx(
        path,
        [
            helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=1),
            helper.make_node("Mul", ["mean", "w"], ["y"]),
        ],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, length])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, scores])],
        {"w": np.arange(scores, dtype=np.float32)},
    )


def test_files_that_say_how_they_are_read_are_read_so(tmp_path: Path, stack: ExitStack) -> None:
    models = ctc_model(tmp_path / "o.onnx"), token_model(tmp_path / "d.onnx")
    pair = Pair(stated(*models), stack)
    original, deployed = pair.sides
    assert original.kind is TRANSCRIPTS
    assert deployed.kind is TRANSCRIPTS
    assert (original.classes, deployed.classes) == (0, 0)
    assert (original.output.name, deployed.output.name) == ("logits", "tokens")
    assert pair.device.configured == [(deployed.spec, "tokens", {"vocabulary": None}, None)]
    answers, _ = RawOriginal(pair.original).answer([spelt("ab|c")])
    (first, second), doubts = readers(pair.config, pair.sides, (answers, answers))
    assert (first.kind, second.kind, doubts) == ("transcript", "transcript", [])
    pair.original.read_with(first)
    (answer,) = pair.original.scores([spelt("ab|c")])
    assert answer.text == "ab c"


def test_a_stated_vocabulary_is_sent_and_identified_by_its_digest(tmp_path, stack) -> None:
    models = (ctc_model(tmp_path / name, decoder=None) for name in ("o.onnx", "d.onnx"))
    (tmp_path / "v.txt").write_text("\n".join(LETTERS))
    decoder = {"vocabulary": tmp_path / "v.txt", "space": "|"}
    pair = Pair(stated(*models, decoder=decoder), stack)
    ((_, name, sent, _),) = pair.device.configured
    assert (name, sent["vocabulary"], sent["kind"]) == ("logits", LETTERS, "ctc")
    side = pair.sides[1]
    identity = model_identity(
        ModelConfig(path=tmp_path / "d.onnx"), side, side.reader("transcript"), {}
    )
    assert identity["output"]["kind"] == "transcript"
    assert identity["input"]["kind"] == "audio"
    assert len(identity["output"]["decoder"]["vocabulary_sha256"]) == 64
    assert "vocabulary" not in identity["output"]["decoder"]


def test_one_that_hears_beside_one_that_does_not(tmp_path: Path, stack: ExitStack) -> None:
    hears, other = ctc_model(tmp_path / "o.onnx"), ctc_model(tmp_path / "d.onnx", decoder=None)
    with pytest.raises(ModelError, match="original model"):
        Pair(stated(hears, other), stack)
    with pytest.raises(ModelError, match="deployed model"):
        Pair(stated(other, hears), stack)
    with pytest.raises(ModelError, match="original model"):
        Pair(stated(other, hears, output="transcript"), stack)


def test_a_decoder_and_scores_contradict_each_other(tmp_path: Path, stack: ExitStack) -> None:
    model = ctc_model(tmp_path / "o.onnx")
    (tmp_path / "v.txt").write_text("\n".join(LETTERS))
    both = {"decoder": {"vocabulary": tmp_path / "v.txt"}, "output": "logits"}
    with pytest.raises(UsageError, match="original model"):
        Pair(stated(model, model, **both), stack)


def test_a_decoder_whose_output_is_not_there(tmp_path: Path, stack: ExitStack) -> None:
    model = ctc_model(tmp_path / "o.onnx", decoder={"kind": "tokens", "vocabulary": ["a"]})
    with pytest.raises(ModelError, match="output 'tokens'"):
        Pair(stated(model, model), stack)


def test_models_of_audio_with_scores_have_classes(tmp_path: Path, stack: ExitStack) -> None:
    model = plain_model(tmp_path / "o.onnx")
    sound = {"input": {"front_end": "waveform", "rate": 8000}}
    original, deployed = Pair(stated(model, model, **sound), stack).sides
    assert (original.classes, deployed.classes) == (3, 3)
    assert original.kind is not TRANSCRIPTS


def test_audio_beside_images(tmp_path: Path, stack: ExitStack) -> None:
    image, sound = {"scale": 1, "size": (8, 8)}, {"front_end": "waveform", "rate": 8000}
    model = plain_model(tmp_path / "o.onnx", 64)
    with pytest.raises(UsageError, match="deployed model"):
        Pair(stated(model, model, {"input": image}, input=sound), stack)


def test_rates_and_lengths_are_the_same(tmp_path: Path, stack: ExitStack) -> None:
    long, short, any_ = (
        plain_model(tmp_path / f"{length}.onnx", length) for length in (200, 100, None)
    )
    sound = {"front_end": "waveform", "rate": 8000}
    with pytest.raises(UsageError, match="8000 Hz"):
        Pair(stated(any_, any_, {"input": sound}, input={**sound, "rate": 16000}), stack)
    with pytest.raises(UsageError, match="200 samples"):
        Pair(stated(long, short, input=sound), stack)


SOUND = {"front_end": "waveform", "rate": 8000}


def test_one_that_hears_beside_one_with_scores_before_their_rates(tmp_path, stack) -> None:
    hears, other = ctc_model(tmp_path / "o.onnx"), plain_model(tmp_path / "d.onnx")
    first = {"input": {**SOUND, "rate": 1000}}
    with pytest.raises(ModelError, match="original model"):
        Pair(stated(hears, other, first, input=SOUND), stack)
    with pytest.raises(ModelError, match="deployed model"):
        Pair(stated(other, hears, first, input=SOUND), stack)


def test_a_decoder_for_a_model_that_has_no_use_for_it(tmp_path: Path, stack: ExitStack) -> None:
    scores, hears = (
        plain_model(tmp_path / "p.onnx", scores=len(LETTERS)),
        token_model(tmp_path / "t.onnx"),
    )
    (tmp_path / "v.txt").write_text("\n".join(LETTERS))
    decoder = {"decoder": {"vocabulary": tmp_path / "v.txt"}, "input": SOUND}
    with pytest.raises(ModelError, match="original model"):
        Pair(stated(scores, scores, **decoder), stack)
    with pytest.raises(ModelError, match="original model"):
        Pair(stated(hears, hears, **decoder), stack)


def test_a_recogniser_without_a_decoder_is_told_how_to_state_one(tmp_path, stack) -> None:
    model = ctc_model(tmp_path / "o.onnx", decoder=None)
    with pytest.raises(ModelError, match="`--decoder vocabulary=FILE`"):
        Pair(stated(model, model, input=SOUND), stack)
