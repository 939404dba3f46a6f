"""A Whisper of random weights in CTranslate2's format, and its greedy decoding in NumPy."""

import json
import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

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
    return values * 0.5 * (1 + erf(values / math.sqrt(2)))


def _string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"
