"""The raw outputs of a speech recogniser or a text reader become text, token by token.

Host and device run this same code.

Greedy decoding of connectionist temporal classification (CTC) takes the best symbol of each frame
and collapses repeats. The probabilities are the same bits on every architecture: exp is made of
sums, products and powers of two, each of which IEEE 754 rounds in one way only.
"""

import codecs
import hashlib
import json
from functools import lru_cache
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.front_ends.elementary import exp
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize
from edgeflare_agent.runtimes.base import names_text

Token = Tuple[bytes, float, float]
"""A token's text in UTF-8 or part of a letter's bytes, its probability, the best other's."""


class Decoded(NamedTuple):
    """The transcript of one sample.

    `pieces` laid end to end are the text. `scores`: float64 [pieces, 2], each piece's probability
    and that of its best alternative; NaN and infinity are kept, those of tokens without text in an
    empty piece.
    """

    pieces: Tuple[str, ...]
    scores: Array


RawOutput = Union[Array, Decoded, Tuple[Array, ...]]
"""What a model returned for one sample.

One output's array; what a decoder made of it where one is set; a tuple of arrays, in the order of
the names, where several outputs are asked for. `Decoded` is a tuple, too: look for it first.
"""


def decoded_to_arrays(answers: Sequence[Decoded]) -> Tuple[Array, ...]:
    """Return what is sent: the scores of each answer, then an array with all pieces as JSON."""
    text = json.dumps([one.pieces for one in answers], ensure_ascii=False).encode()
    return (*(one.scores for one in answers), np.frombuffer(text, np.uint8))


def decoded_from_arrays(arrays: Sequence[Array]) -> List[Decoded]:
    """Return the answers that `decoded_to_arrays` was given. Raises ValueError for other arrays."""
    if not arrays:
        raise ValueError("nothing was decoded")
    *scores, text = arrays
    texts = json.loads(text.tobytes())
    if not isinstance(texts, list) or len(texts) != len(scores):
        raise ValueError("{} lists of texts were to come".format(len(scores)))
    found = []
    for pieces, numbers in zip(texts, scores):
        if not isinstance(pieces, list) or not all(isinstance(one, str) for one in pieces):
            raise ValueError("what was decoded is no list of texts")
        if numbers.shape != (len(pieces), 2) or numbers.dtype.name != "float64":
            raise ValueError(
                "{} texts came with scores {} {}".format(len(pieces), numbers.shape, numbers.dtype)
            )
        "".join(pieces).encode()  # raises for half a surrogate pair, which no file can hold
        found.append(Decoded(tuple(pieces), numbers))
    return found


def bytes_of(text: str) -> bytes:
    """Return the bytes that a text in GPT-2's alphabet stands for; other letters are kept."""
    alphabet = _alphabet()
    return b"".join(alphabet.get(letter) or letter.encode("utf-8", "replace") for letter in text)


def _pieces_of(tokens: Sequence[Token]) -> Decoded:
    """Return texts and scores; tokens that share a letter become one piece, wrong bytes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts: List[str] = []
    scores: List[Tuple[float, float]] = []
    group: List[Tuple[float, float]] = []
    text = ""
    for position, (data, chosen, other) in enumerate(tokens):
        text += decoder.decode(data, final=position == len(tokens) - 1)
        group.append((chosen, other))
        if not decoder.getstate()[0]:
            texts.append(text)
            scores.append(_together(group))
            text, group = "", []
    return Decoded(tuple(texts), np.array(scores, np.float64).reshape(-1, 2))


def _together(group: Sequence[Tuple[float, float]]) -> Tuple[float, float]:
    """Return the probability of all tokens, and the highest one with one token exchanged."""
    if len(group) == 1:
        return group[0]
    pairs = np.array(group, np.float64)
    others = [
        other * np.delete(pairs[:, 0], place).prod() for place, other in enumerate(pairs[:, 1])
    ]
    return float(pairs[:, 0].prod()), float(np.max(others))


@lru_cache(maxsize=1)
def _alphabet() -> Dict[str, bytes]:
    """Return GPT-2's alphabet: printable Latin-1 characters as they are, others from 256 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    letters = [chr(byte) for byte in plain] + [chr(256 + place) for place in range(len(rest))]
    return {letter: bytes([byte]) for letter, byte in zip(letters, plain + rest)}


BROKEN = -1
"""The symbol of frames with NaN or +infinity, which have no best one."""


class Run(NamedTuple):
    """Neighbouring frames with one best symbol; its and the best other's highest probability."""

    symbol: int
    probability: float
    other: float


def runs(frames: Array, slack: float) -> List[Run]:
    """Return the runs of float64 [frames, symbols] in order, those of the blank among them.

    Frames that are all probabilities are taken as they are, where their sums are 1 up to `slack`;
    any others are logits or log-probabilities. A run with NaN has NaN for both numbers.
    """
    if not len(frames):
        return []
    real = probabilities(frames, slack)
    broken = np.isnan(real).any(axis=1)
    best, chosen, other = _two_best(real)
    best[broken] = BROKEN
    chosen[broken] = other[broken] = np.nan
    begins = np.flatnonzero(np.concatenate(([True], best[1:] != best[:-1])))
    found = []
    for begin, end in zip(begins, [*begins[1:], len(best)]):
        surest = begin + int(chosen[begin:end].argmax())
        found.append(Run(int(best[begin]), float(chosen[surest]), float(other[surest])))
    return found


def probabilities(frames: Array, slack: float) -> Array:
    """Return float64 [frames, symbols]: the values, or the softmax of each frame; NaN stays."""
    with np.errstate(invalid="ignore"):
        if (
            frames.min() >= -slack
            and frames.max() <= 1 + slack
            and np.abs(frames.sum(axis=1) - 1).max() <= slack * frames.shape[1]
        ):
            return frames
        powers = exp(frames - frames.max(axis=1, keepdims=True))
    return np.asarray(powers / _sums(powers)[:, None])


def _two_best(real: Array) -> Tuple[Array, Array, Array]:
    """Return the best symbol of each frame, its value, and that of the best other one."""
    rows = np.arange(len(real))
    best = real.argmax(axis=1)
    rest = real.copy()
    rest[rows, best] = -np.inf
    other = rest.max(axis=1) if real.shape[1] > 1 else np.zeros(len(real))
    return best, real[rows, best], other


def _sums(powers: Array) -> Array:
    """Return the sum of each row, added from left to right."""
    sums = np.zeros(len(powers))
    for column in powers.T:
        sums = sums + column
    return sums


METADATA_KEY = "edgeflare.decoder"
CHARACTERS_KEY = "character"
"""PP-OCR's text recognition models (as RapidOCR exports them) have their symbols here, one a line,
without the blank, which comes first, and mostly without the space, which comes last."""
KINDS = ("tokens", "ctc")
TOKENS, SCORES, LOGITS = "tokens", "scores", "logits"
"""Outputs by name: both of the first kind; of the second, the one to use of several."""

_SLACK = 1e-4


class Decoder(NamedTuple):
    """How a model's outputs are read.

    `kind` "tokens": the model decodes by itself; its output ``tokens`` (integers, [n] or [1, n])
    has the chosen tokens, ``scores`` ([n, 2] or [1, n, 2]) the probability of each and the highest
    of all others. "ctc": one output [1, T, V] of logits, log-probabilities or probabilities, whose
    best symbols are taken; repeats collapse, `blank` is dropped, and a run counts with its surest
    frame.

    `vocabulary`: the text of each token; `is_bytes`: in GPT-2's alphabet, a letter a byte. Tokens
    from `text_tokens` on are control tokens, which say nothing. `space` stands for a space within a
    text. `origin`: the metadata key of another convention that the decoder follows from; "" for
    none.
    """

    kind: str
    vocabulary: Tuple[str, ...]
    is_bytes: bool = False
    text_tokens: Optional[int] = None
    blank: int = 0
    space: Optional[str] = None
    origin: str = ""

    @classmethod
    def from_json(cls, data: Any) -> "Decoder":
        """Return the decoder that a JSON object states; raise RequestError with what is wrong."""
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
        """Return, as JSON, what identifies the decoder; a digest stands for the vocabulary."""
        listed = json.dumps(self.vocabulary, separators=(",", ":")).encode()
        digest = hashlib.sha256(listed).hexdigest()
        return {
            **self._settings(),
            "tokens": len(self.vocabulary),
            "vocabulary_sha256": digest,
            **({"origin": self.origin} if self.origin else {}),
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
        """Raise ModelError unless a model has the outputs needed; `output` names that of "ctc"."""
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
        """Decode one sample's raw outputs; `tensors` describe them, `output` as for the check.

        Raises ModelError for outputs that don't fit.
        """
        if self.kind == "tokens":
            scale = _named(tensors, SCORES).quantization
            chosen = self._chosen(outputs[TOKENS], dequantize(outputs[SCORES], scale))
        else:
            tensor = text_output(self.kind, tensors, output)
            chosen = self._collapsed(outputs[tensor.name], tensor)
        return _pieces_of(chosen)

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
                "output tokens names token {}, but the vocabulary has {}, 0 to {}: give the one "
                "that the model was made with".format(token, count, count - 1)
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
        for run in runs(real, _SLACK + (step / 2 if step < 0.01 else 0.0)):
            if run.symbol == BROKEN:
                found.append((b"", run.probability, run.other))
            elif run.symbol != self.blank:
                found.append((self._bytes_of(run.symbol), run.probability, run.other))
        return found

    def _bytes_of(self, token: int) -> bytes:
        """Return a token's text in UTF-8; those bytes of a letter that the token is a part of."""
        text = self.vocabulary[token]
        if self.space is not None:
            text = text.replace(self.space, "\u0120" if self.is_bytes else " ")
        return bytes_of(text) if self.is_bytes else text.encode("utf-8", "replace")


def text_output(
    kind: str, tensors: Sequence[TensorInfo], output: Optional[str] = None
) -> TensorInfo:
    """Return the output to decode: ``tokens``, or the one named, the only one, or ``logits``.

    Raises ModelError where there is none.
    """
    if kind == "ctc" and output is None and len(tensors) == 1:
        return tensors[0]
    return _named(tensors, TOKENS if kind == "tokens" else output or LOGITS)


def decoder_in(
    metadata: Mapping[str, str], path: str, outputs: Sequence[TensorInfo] = ()
) -> Optional[Decoder]:
    """Return the decoder that a model file states in its metadata; None where it has none.

    That is EdgeFlare's own entry, or PP-OCR's list of symbols where the only one of `outputs` has as
    many. Raises ModelError for one that makes no sense.
    """
    if METADATA_KEY not in metadata:
        return _of_characters(metadata.get(CHARACTERS_KEY, ""), outputs)
    try:
        return Decoder.from_json(json.loads(metadata[METADATA_KEY]))
    except (ValueError, RecursionError, RequestError) as error:
        raise ModelError(
            "{}: its metadata {!r} is no decoder: {}".format(path, METADATA_KEY, error)
        ) from error


def _of_characters(text: str, outputs: Sequence[TensorInfo]) -> Optional[Decoder]:
    """Return the CTC decoder of PP-OCR's symbols, a line each; None where an output doesn't fit."""
    symbols = [symbol.rstrip("\r") for symbol in text.split("\n")]
    if symbols[-1] == "":
        symbols.pop()
    if not symbols or len(outputs) != 1 or len(outputs[0].shape) != 3:
        return None
    with_space = outputs[0].shape[-1] == len(symbols) + 2
    if not with_space and outputs[0].shape[-1] != len(symbols) + 1:
        return None
    vocabulary = ("", *symbols, " ") if with_space else ("", *symbols)
    return Decoder("ctc", vocabulary, origin=CHARACTERS_KEY)


def _named(tensors: Sequence[TensorInfo], name: str) -> TensorInfo:
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise ModelError(
        "a decoder needs an output {!r}, but the model's are {}".format(
            name, names_text([tensor.name for tensor in tensors])
        )
    )


def _not_frames(name: str, shape: Sequence[Optional[int]], count: int) -> str:
    return (
        "output {} of shape {} is not 1 x frames x {} scores, as a decoder of kind ctc with its {} "
        "tokens needs: give the vocabulary that the model was made with".format(
            name, _times(shape), count, count
        )
    )


def _times(shape: Sequence[Optional[int]]) -> str:
    return " x ".join("?" if n is None else str(n) for n in shape) or "[]"
