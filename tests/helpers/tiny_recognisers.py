"""Made-up speech recognisers: how loud a tenth of a second is says which letter it stands for."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from small_models import save_onnx

from edgeflare_agent.audio_spec import AudioSpec

RATE = 1000
FRAME = 100
LETTERS = ["_", "a", "b", "c", "|"]
"""Each is 0.2 louder than the one before; the first is the blank, the last a space."""
CTC: dict[str, Any] = {"kind": "ctc", "vocabulary": LETTERS, "blank": 0, "space": "|"}
BYTES = ["a", "\u0120", "\u00c3", "\u00a9", "<end>"]
TOKENS: dict[str, Any] = {"kind": "tokens", "vocabulary": BYTES, "bytes": True, "text_tokens": 4}
"""Its tokens are a, a space, and the two bytes of an e with an acute accent."""
WAVEFORM = AudioSpec(shape=(1, None), dtype="float32", rate=RATE)


def clip(*loudness: float) -> np.ndarray:
    """Return a clip with a frame of each loudness: float32 [frames * 100]."""
    return np.repeat(np.array(loudness, np.float32), FRAME)


def spelt(text: str, letters: Sequence[str] = LETTERS) -> np.ndarray:
    """Return a clip in which a recogniser hears these letters, one a frame."""
    return clip(*(0.2 * letters.index(letter) for letter in text))


def ctc_model(
    path: Path, *, decoder: Any = CTC, sharpness: float = 30.0, shift: float = 0.0
) -> Path:
    """x float32 [1, samples] -> logits [1, frames, 5]; `shift` moves what the letters sound like."""
    metadata = {} if decoder is None else {"edgeflare.decoder": json.dumps(decoder)}
    return _saved(
        path, [], [_value("logits", TensorProto.FLOAT, [1, None, 5])], metadata, sharpness, shift
    )


def token_model(path: Path, *, decoder: Any = TOKENS, sharpness: float = 30.0) -> Path:
    """x float32 [1, samples] -> tokens int64 [1, frames] and scores float32 [1, frames, 2]."""
    nodes = [
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=-1),
        helper.make_node("TopK", ["probabilities", "two"], ["scores", "best"], axis=-1),
        helper.make_node("ArgMax", ["logits"], ["tokens"], axis=-1, keepdims=0),
    ]
    outputs = [
        _value("tokens", TensorProto.INT64, [1, None]),
        _value("scores", TensorProto.FLOAT, [1, None, 2]),
    ]
    return _saved(path, nodes, outputs, {"edgeflare.decoder": json.dumps(decoder)}, sharpness, 0.0)


def _saved(
    path: Path,
    more: list[Any],
    outputs: list[Any],
    metadata: dict[str, str],
    sharpness: float,
    shift: float,
) -> Path:
    nodes = [
        helper.make_node("Abs", ["x"], ["loud"]),
        helper.make_node("Reshape", ["loud", "frames"], ["framed"]),
        helper.make_node("ReduceMean", ["framed"], ["loudness"], axes=[2], keepdims=1),
        helper.make_node("Sub", ["loudness", "levels"], ["off"]),
        helper.make_node("Abs", ["off"], ["far"]),
        helper.make_node("Mul", ["far", "sharpness"], ["logits"]),
        *more,
    ]
    constants = {
        "frames": np.array([1, -1, FRAME]),
        "levels": (np.arange(5) * 0.2 + shift).astype(np.float32),
        "sharpness": np.array(-sharpness, np.float32),
    }
    if more:
        constants["two"] = np.array([2])
    x = _value("x", TensorProto.FLOAT, [1, None])
    about = {
        "edgeflare.input": json.dumps({"front_end": "waveform", "rate": RATE}),
        **metadata,
    }
    return save_onnx(path, nodes, [x], outputs, constants, about)


def _value(name: str, kind: int, shape: list[Any]) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)
