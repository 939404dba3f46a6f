"""A speech recogniser's raw outputs become text, token by token. Host and device run this same code."""

import hashlib
import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from edgeflare_agent import ctc
from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.pieces import Decoded, Token, bytes_of, pieces_of
from edgeflare_agent.preprocess import dequantize
from edgeflare_agent.spec import TensorInfo

METADATA_KEY = "edgeflare.decoder"
KINDS = ("tokens", "ctc")
TOKENS, SCORES, LOGITS = "tokens", "scores", "logits"
"""Outputs by name: both of the first kind; of the second, the one that counts where there are several."""

_SLACK = 1e-4


class Decoder(NamedTuple):
    """How a model's outputs are read.

    `kind` "tokens": the model decodes by itself; its output ``tokens`` (integers, [n] or [1, n]) has the
    chosen tokens, ``scores`` ([n, 2] or [1, n, 2]) the probability of each and the highest of all others.
    "ctc": one output [1, T, V] of logits, log-probabilities or probabilities, whose best symbols are
    taken; repeats collapse, `blank` is dropped, and a run counts with its surest frame.

    `vocabulary`: the text of each token; `is_bytes`: in GPT-2's alphabet, a letter a byte. Tokens from
    `text_tokens` on are control tokens, which say nothing. `space` stands for a space within a text.
    """

    kind: str
    vocabulary: Tuple[str, ...]
    is_bytes: bool = False
    text_tokens: Optional[int] = None
    blank: int = 0
    space: Optional[str] = None

    @classmethod
    def from_json(cls, data: Any) -> "Decoder":
        """Return the decoder that a JSON object states. Raises RequestError, naming what is wrong."""
        if not isinstance(data, dict):
            raise RequestError("a decoder is an object with kind and vocabulary")
        unknown = sorted(
            set(data) - {"kind", "vocabulary", "bytes", "text_tokens", "blank", "space"}
        )
        if unknown:
            raise RequestError("a decoder has no {}".format(", ".join(map(repr, unknown))))
        words = data.get("vocabulary")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise RequestError("a decoder's vocabulary must be a list of texts")
        decoder = cls(
            kind=data.get("kind", ""),
            vocabulary=tuple(words),
            is_bytes=data.get("bytes", False),
            text_tokens=data.get("text_tokens"),
            blank=data.get("blank", 0),
            space=data.get("space"),
        )
        decoder.validate()
        return decoder

    def to_json(self) -> Dict[str, Any]:
        """Return the JSON object that `from_json` reads."""
        return {**self._settings(), "vocabulary": list(self.vocabulary)}

    def describe(self) -> Dict[str, Any]:
        """Return, as JSON, all that identifies the decoder, with a digest in place of the vocabulary."""
        listed = json.dumps(self.vocabulary, separators=(",", ":")).encode()
        digest = hashlib.sha256(listed).hexdigest()
        return {
            **self._settings(),
            "tokens": len(self.vocabulary),
            "vocabulary_sha256": digest,
        }

    def validate(self) -> None:
        """Raise RequestError, naming the field, unless the decoder makes sense in itself."""
        count, text = len(self.vocabulary), self.text_tokens
        problems = (
            (self.kind not in KINDS, "kind must be one of " + ", ".join(KINDS)),
            (not count, "vocabulary must not be empty"),
            (type(self.is_bytes) is not bool, "bytes must be true or false"),
            (
                text is not None and (type(text) is not int or not 0 <= text <= count),
                "text_tokens must be a whole number up to the vocabulary's {}".format(count),
            ),
            (
                type(self.blank) is not int or not 0 <= self.blank < count,
                "blank must be the number of a token, 0 to {}".format(count - 1),
            ),
            (
                self.space is not None and not (isinstance(self.space, str) and self.space),
                "space must be a text",
            ),
        )
        for wrong, sentence in problems:
            if wrong:
                raise RequestError("decoder: " + sentence)

    def check_outputs(self, tensors: Sequence[TensorInfo], output: Optional[str] = None) -> None:
        """Raise ModelError unless a model has the outputs that are read; `output` names that of "ctc"."""
        tensor = text_output(self.kind, tensors, output)
        if self.kind == "tokens":
            _named(tensors, SCORES)
        elif tensor.shape and tensor.shape[-1] not in (None, len(self.vocabulary)):
            raise ModelError(_not_frames(tensor.name, tensor.shape, len(self.vocabulary)))

    def decode(
        self,
        outputs: Mapping[str, Array],
        tensors: Sequence[TensorInfo],
        output: Optional[str] = None,
    ) -> Decoded:
        """Return what one sample's raw outputs say; `tensors` describe them, `output` as for the check.

        Raises ModelError for outputs that don't fit.
        """
        if self.kind == "tokens":
            scale = _named(tensors, SCORES).quantization
            chosen = self._chosen(outputs[TOKENS], dequantize(outputs[SCORES], scale))
        else:
            tensor = text_output(self.kind, tensors, output)
            chosen = self._collapsed(outputs[tensor.name], tensor)
        return pieces_of(chosen)

    def _settings(self) -> Dict[str, Any]:
        settings = {"kind": self.kind, "bytes": self.is_bytes, "space": self.space}
        if self.kind == "ctc":
            return {**settings, "blank": self.blank}
        return {**settings, "text_tokens": self.text_tokens}

    def _chosen(self, tokens: Array, scores: Array) -> List[Token]:
        ids = tokens.reshape(-1)
        fits = tokens.dtype.kind in "iu" and ids.size in (0, 1, *tokens.shape)
        if not fits or scores.size != 2 * ids.size or (ids.size and scores.shape[-1] != 2):
            raise ModelError(
                "outputs tokens ({} {}) and scores ({}) are not n whole numbers and n x 2 "
                "probabilities, as a decoder of kind tokens needs".format(
                    tokens.dtype, _times(tokens.shape), _times(scores.shape)
                )
            )
        found = []
        for token, (chosen, other) in zip(ids.tolist(), scores.reshape(-1, 2).tolist()):
            if self._is_text(token):
                found.append((self._bytes_of(token), chosen, other))
            elif not np.isfinite([chosen, other]).all():
                found.append((b"", chosen, other))
        return found

    def _is_text(self, token: int) -> bool:
        count = len(self.vocabulary)
        if token < 0 or (self.text_tokens is None and token >= count):
            raise ModelError(
                "output tokens names token {}, but the vocabulary has {}, 0 to {}: give the one that "
                "the model was made with".format(token, count, count - 1)
            )
        return self.text_tokens is None or token < self.text_tokens

    def _collapsed(self, raw: Array, tensor: TensorInfo) -> List[Token]:
        count = len(self.vocabulary)
        frames = raw.size // count
        if raw.ndim < 2 or raw.shape[-1] != count or frames not in (0, *raw.shape[:-1]):
            raise ModelError(_not_frames(tensor.name, raw.shape, count))
        step = tensor.quantization[0] if tensor.quantization else 0.0
        real = dequantize(raw, tensor.quantization).reshape(frames, count)
        found = []
        for run in ctc.runs(real, _SLACK + (step / 2 if step < 0.01 else 0.0)):
            if run.symbol == ctc.BROKEN:
                found.append((b"", run.probability, run.other))
            elif run.symbol != self.blank:
                found.append((self._bytes_of(run.symbol), run.probability, run.other))
        return found

    def _bytes_of(self, token: int) -> bytes:
        """Return a token's text in UTF-8; of a token that is part of a letter, those bytes of it."""
        text = self.vocabulary[token]
        if self.space is not None:
            text = text.replace(self.space, "\u0120" if self.is_bytes else " ")
        return bytes_of(text) if self.is_bytes else text.encode("utf-8", "replace")


def text_output(
    kind: str, tensors: Sequence[TensorInfo], output: Optional[str] = None
) -> TensorInfo:
    """Return the output that a decoder of this kind reads: ``tokens``, or the one named, the only one, or ``logits``.

    Raises ModelError where there is none.
    """
    if kind == "ctc" and output is None and len(tensors) == 1:
        return tensors[0]
    return _named(tensors, TOKENS if kind == "tokens" else output or LOGITS)


def decoder_in(metadata: Mapping[str, str], path: str) -> Optional[Decoder]:
    """Return the decoder that a model file states in its metadata; None where it has none.

    Raises ModelError for one that makes no sense.
    """
    if METADATA_KEY not in metadata:
        return None
    try:
        return Decoder.from_json(json.loads(metadata[METADATA_KEY]))
    except (ValueError, RecursionError, RequestError) as error:
        raise ModelError(
            "{}: its metadata {!r} is no decoder: {}".format(path, METADATA_KEY, error)
        ) from error


def _named(tensors: Sequence[TensorInfo], name: str) -> TensorInfo:
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise ModelError(
        "a decoder needs an output {!r}, but the model's are {}".format(
            name, ", ".join(tensor.name for tensor in tensors)
        )
    )


def _not_frames(name: str, shape: Sequence[Optional[int]], count: int) -> str:
    return (
        "output {} of shape {} is not 1 x frames x {} scores, as a decoder of kind ctc with its {} tokens "
        "needs: give the vocabulary that the model was made with".format(
            name, _times(shape), count, count
        )
    )


def _times(shape: Sequence[Optional[int]]) -> str:
    return " x ".join("?" if n is None else str(n) for n in shape) or "[]"
