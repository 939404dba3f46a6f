"""Raw model outputs -> probabilities, or transcripts.

Probabilities are computed on the host for both models, with the same bits on every processor.
Transcripts are decoded where the model runs, by `edgeflare_agent.decoding`, which has its own exp.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from edgeflare._internal import exact
from edgeflare._internal.files import replacing
from edgeflare._internal.text import clean_text, reason, shape_text
from edgeflare._internal.toml import AbsolutePath
from edgeflare.errors import ModelError, UsageError
from edgeflare.types import Output, Scores, Task, Transcript
from edgeflare_agent import decoding
from edgeflare_agent import errors as agent_errors
from edgeflare_agent.decoding import Decoded, RawOutput
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize
from edgeflare_agent.repair import Repair, read_repair, write_repair

_LABEL_SLACK = 1e-3
"""A float this close to a whole number is that class."""


def has_one_value(tensor: TensorInfo) -> bool:
    """Whether an output is one number a sample: shape [], [1] or [1, 1], the batch axis 1 or open.

    A single open axis, shape [?], is taken for the batch; the answers are checked later.
    """
    return all(size == 1 for size in tensor.shape[1:]) and tensor.shape[:1] in ((), (1,), (None,))


def is_index(tensor: TensorInfo) -> bool:
    """Whether an output can only be a class index: one integer a sample.

    A single float, and a single integer with a quantisation of its own, may be the score of one of
    two classes as well.
    """
    whole = tensor.quantization is None or tensor.quantization[0] == 1
    return has_one_value(tensor) and tensor.dtype.lstrip("u").startswith("int") and whole


def check_index(tensor: TensorInfo) -> None:
    """Raise ModelError where an output that the user states to be a class index can't be one."""
    if not all(size in (1, None) for size in tensor.shape):
        raise ModelError(
            f"output {tensor.name!r} of the deployed model has shape {shape_text(tensor.shape)}, "
            "more than one class index a sample; leave `output` at auto, or name another with "
            "`output_name`"
        )
    if tensor.quantization is not None and tensor.quantization[0] > 1:
        raise ModelError(
            f"output {tensor.name!r} of the deployed model is quantised in steps of "
            f"{tensor.quantization[0]:g}, which can't tell neighbouring classes apart; leave the "
            "class index an integer without quantisation"
        )


def one_hot(raw: NDArray[Any], tensor: TensorInfo, classes: int) -> Scores:
    """Return float64 [classes], 1 at the class that a raw output names and 0 elsewhere.

    NaN and infinity give NaN throughout. Raises ModelError for more than one value, one that is not
    whole, and an index out of range.
    """
    if raw.size != 1:
        raise ModelError(
            f"output {tensor.name!r} of the deployed model holds {raw.size} values where one class "
            "index was expected; state what they are with `--deployed-output probabilities` or "
            "`logits`"
        )
    value = float(dequantize(raw, tensor.quantization).reshape(()))
    if not np.isfinite(value):
        return np.full(classes, np.nan)
    index = round(value)
    step = tensor.quantization[0] if tensor.quantization else 0.0
    if abs(value - index) > max(_LABEL_SLACK, step / 2):
        raise ModelError(
            f"output {tensor.name!r} of the deployed model is {value:g}, which is no class index; "
            "give a model that ends in its class index, or in a score for each class"
        )
    if not 0 <= index < classes:
        raise ModelError(
            f"the deployed model names class {index}, but the original has {classes} classes, 0 to "
            f"{classes - 1}: the two number their classes differently (a background class at 0 is "
            "a usual cause); give two that number them alike"
        )
    scores = np.zeros(classes)
    scores[index] = 1.0
    return scores


OutputKind: TypeAlias = Literal[
    "probabilities",
    "logits",
    "sigmoid",
    "sigmoid-logits",
    "label",
    "transcript",
    "detections",
    "tags",
    "tag-logits",
    "values",
    "gallery",
]
"""What a model's outputs are: scores of classes in one of four forms, a label or text; boxes, a score of each class
for itself ("tags", or "tag-logits" before the sigmoid), values, or an embedding that is compared with those of a gallery."""

SINGLE_KINDS: Mapping[str, OutputKind] = {
    "probabilities": "sigmoid",
    "sigmoid": "sigmoid",
    "logits": "sigmoid-logits",
    "sigmoid-logits": "sigmoid-logits",
}
"""What a stated kind means where the output is one value: the score of one of two classes."""
_SLACK = 1e-6


class AnswerReader(Protocol):
    """Converts one model's raw outputs to its answers; can be pickled."""

    @property
    def kind(self) -> OutputKind:
        """What the model's outputs are."""
        ...

    def read(self, raw: RawOutput | Output) -> Output:
        """Return the answer for one sample. Raises ModelError for outputs that can't be read."""
        ...

    def read_all(self, raws: Sequence[RawOutput | Output]) -> list[Output]:
        """Return the answers for several samples, each as `read` has it."""
        ...


class OutputReader(NamedTuple):
    """Converts one model's raw output to its answer; a label alone becomes scores of `classes`."""

    tensor: TensorInfo
    kind: OutputKind
    classes: int = 0

    @property
    def has_class_scores(self) -> bool:
        """Whether its answers are the scores of classes, told by the model."""
        return self.kind not in ("label", "transcript")

    def read(self, raw: RawOutput | Output) -> Output:
        """Return a transcript or probabilities, float64 [classes], for one raw output.

        Integers are de-quantised by the model's own parameters; logits go through a softmax in
        float64. Probabilities are unchanged: those of an integer output may sum to a little less or
        more than 1. Sigmoids, of which each tells by itself whether its class is there, are divided
        by their sum (logits of theirs go through it first); a single one is the probability of class
        1, the rest that of class 0. A label becomes 1 at its class and 0 elsewhere. NaN and infinity
        stay. Raises ModelError for a label that is no class of the original.
        """
        if not isinstance(raw, np.ndarray):
            return as_output(raw)
        if self.kind == "label":
            return one_hot(raw, self.tensor, self.classes)
        check_values(raw, self.tensor, self.classes)
        return self._scores(dequantize(raw, self.tensor.quantization).reshape(-1))

    def read_all(self, raws: Sequence[RawOutput | Output]) -> list[Output]:
        """Return the answers for several raw outputs, each as `read` has it."""
        arrays = [raw for raw in raws if isinstance(raw, np.ndarray)]
        alike = len({raw.shape for raw in arrays}) == 1 and len(arrays) == len(raws)
        if self.kind == "label" or not alike:
            return [self.read(raw) for raw in raws]
        for raw in arrays[:1]:
            check_values(raw, self.tensor, self.classes)
        real = dequantize(np.array(arrays), self.tensor.quantization)
        return [self._scores(one) for one in real.reshape(len(arrays), -1)]

    def _scores(self, real: Scores) -> Scores:
        """Return the probabilities of de-quantised values, float64 [values]."""
        if self.kind in ("sigmoid", "sigmoid-logits"):
            return shares_of_sigmoids(real, logits=self.kind == "sigmoid-logits")
        return softmax(real) if self.kind == "logits" else real


def check_values(raw: NDArray[Any], tensor: TensorInfo, classes: int) -> None:
    """Raise ModelError where a raw output has another number of values than there are `classes`.

    One value may be the score of one of two classes; 0 classes: the number isn't known. Of a file that
    leaves the first axis open it need not be the batch.
    """
    if classes and raw.size not in (classes, 1):
        raise ModelError(
            f"output {tensor.name!r} was read with shape {shape_text(raw.shape)} for one input, where one "
            f"score for each of {classes} classes was to come: the first axis that the model's file leaves "
            "open is no batch; export the model with fixed shapes, or state another --task"
        )


def as_output(raw: RawOutput | Output) -> Output:
    """Return a decoded output as a transcript without control characters, any other unchanged."""
    if isinstance(raw, Decoded):
        pieces = tuple(clean_text(piece, lines=True) for piece in raw.pieces)
        return Transcript(pieces, np.asarray(raw.scores, np.float64))
    return cast("Output", raw)


def raw_bytes(raw: RawOutput) -> bytes:
    """Return all that a model returned for one sample, to compare it with another time's."""
    if isinstance(raw, Decoded):
        return "\0".join(raw.pieces).encode() + np.ascontiguousarray(raw.scores).tobytes()
    arrays = raw if isinstance(raw, tuple) else (raw,)
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def softmax(logits: Scores) -> Scores:
    """Return exp(x) / sum(exp(x)), NaN throughout where an entry is not finite."""
    if not np.isfinite(logits).all():
        return np.full_like(logits, np.nan)
    return exact.softmax(logits)


def shares_of_sigmoids(values: Scores, *, logits: bool) -> Scores:
    """Return the scores of independent sigmoids as shares of their sum, float64 [classes].

    `values`: float64 [classes], sigmoids from 0 to 1, or with `logits` their arguments. One value
    is the probability of class 1 of two. The order of classes is that of the sigmoids. Without any
    class above 0 each has the same share, which is a tie. NaN throughout where a value is not
    finite.
    """
    if not np.isfinite(values).all():
        return np.full(max(2, values.size), np.nan)
    if logits:
        pairs = np.stack([exact.softmax(np.array([0.0, value])) for value in values])
    else:
        within = np.clip(values, 0.0, 1.0)
        pairs = np.stack([1.0 - within, within], axis=1)
    if len(pairs) == 1:
        return np.asarray(pairs[0])
    total = float(pairs[:, 1].sum())
    return np.asarray(pairs[:, 1] / total) if total > 0 else np.full(len(pairs), 1.0 / len(pairs))


def detect_kind(tensor: TensorInfo, raws: Sequence[NDArray[Any]]) -> OutputKind:
    """Return whether outputs are probabilities, which all lie in [0, 1], or logits.

    Their sum is not checked: rounded to 8 bits, a thousand probabilities may sum to 0.7. Outputs
    with NaN or infinity are ignored.
    """
    finite = [vector for vector in _real(tensor, raws) if np.isfinite(vector).all()]
    within = all(vector.min() >= -_SLACK and vector.max() <= 1 + _SLACK for vector in finite)
    return "probabilities" if finite and within else "logits"


def largest_sum_error(tensor: TensorInfo, raws: Sequence[NDArray[Any]]) -> float:
    """Return the largest difference of an output's sum from 1 that rounding doesn't explain."""
    step = tensor.quantization[0] if tensor.quantization else 0.0
    errors = [
        abs(float(vector.sum()) - 1) - vector.size * step / 2
        for vector in _real(tensor, raws)
        if np.isfinite(vector).all()
    ]
    return max(0.0, *errors) if errors else 0.0


def _real(tensor: TensorInfo, raws: Sequence[NDArray[Any]]) -> list[Scores]:
    """Return the real values of raw outputs, float64 [classes] each."""
    return [dequantize(raw, tensor.quantization).reshape(-1) for raw in raws]


def output_classes(tensor: TensorInfo, whose: str) -> int:
    """Return an output's number of classes. Raises ModelError where it is no class vector."""
    shape = tensor.shape[1:] if len(tensor.shape) > 1 else tensor.shape
    known = [size for size in shape if size != 1]
    if len(known) != 1 or known[0] is None:
        raise ModelError(
            f"output {tensor.name!r} of {whose} has shape {shape_text(tensor.shape)}: not one "
            "score for each class; "
            + (
                "export the model with a fixed number of classes"
                if known == [None]
                else "for a map, an embedding, numbers or boxes state --task dense, embedding, vector or detection"
            )
        )
    return known[0]


_LONGEST = 1_000_000
"""Bytes of a vocabulary as JSON, which is sent to the device in a frame's header."""


class DecoderOptions(BaseModel, extra="forbid", frozen=True):
    """How outputs become text, as `edgeflare_agent.decoding.Decoder` has it.

    `vocabulary`: a text file (UTF-8) with a token a line, the first being token 0, or a ``.json``
    with a list of texts or an object of texts and their numbers. `kind` "ctc": greedy, without
    `blank`; "tokens": the model itself decodes. `space` is the character for a space within a
    token; `bytes`: the tokens are in GPT-2's alphabet; `text_tokens`: control tokens begin there.
    """

    task: ClassVar[Task] = "transcript"

    kind: Literal["ctc", "tokens"] = "ctc"
    vocabulary: AbsolutePath
    blank: int = Field(default=0, ge=0)
    space: str | None = Field(default=None, min_length=1)
    bytes: bool = False
    text_tokens: int | None = Field(default=None, ge=0)

    def decoder(self) -> decoding.Decoder:
        """Return the decoder with its vocabulary. Raises UsageError for an unusable file."""
        words = self._words()
        if len(json.dumps(words)) > _LONGEST:
            raise UsageError(
                f"vocabulary {self.vocabulary} is too long to be sent to a device ({len(words)} "
                f"tokens, more than {_LONGEST // 1000} kB): state it in the model's own file, "
                "under the metadata key edgeflare.decoder"
            )
        if self.space is not None and not any(self.space in word for word in words):
            raise UsageError(
                f"no token of the vocabulary {self.vocabulary} has the {self.space!r} that is "
                "stated as `space`: state the symbol that stands for a space there, or leave it out"
            )
        try:
            return decoding.Decoder.from_json(
                self.model_dump(exclude={"vocabulary"}) | {"vocabulary": words}
            )
        except agent_errors.RequestError as error:
            raise UsageError(f"vocabulary {self.vocabulary}: {error}") from error

    def _words(self) -> list[str]:
        try:
            text = self.vocabulary.read_text(encoding="utf-8-sig")
            if self.vocabulary.suffix.lower() == ".json":
                return _tokens(json.loads(text))
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise UsageError(
                f"vocabulary {self.vocabulary} can't be read: {why[0].lower()}{why[1:]}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"vocabulary {self.vocabulary} can't be read: {reason(error)}"
            ) from error
        lines = text.split("\n")
        return lines[:-1] if lines[-1] == "" else lines


def text_output(
    kind: str, outputs: Sequence[TensorInfo], name: str | None, whose: str
) -> TensorInfo:
    """Return the output of this `name`, or the one that the decoder reads. Raises ModelError."""
    try:
        return decoding.text_output(kind, outputs, name)
    except agent_errors.ModelError as error:
        raise ModelError(f"{whose}: {error}") from error


def _tokens(data: Any) -> list[str]:
    """Return the tokens in the order of their numbers. Raises ValueError for other JSON."""
    if isinstance(data, dict) and all(type(number) is int for number in data.values()):
        tokens = {number: word for word, number in data.items()}
        if sorted(tokens) == list(range(len(data))):
            return [tokens[number] for number in range(len(tokens))]
    elif isinstance(data, list) and all(isinstance(word, str) for word in data):
        return data
    raise ValueError("it is neither a list of texts nor an object that numbers texts from 0")


# What replaces a deployed model's answers on its device


def load_repair(path: Path) -> Repair:
    """Return the repair in a file that `save_repair` wrote. Raises UsageError."""
    try:
        return read_repair(path)
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no repair {path}; `edgeflare repair train` or `edgeflare repair abstain` "
            "makes one"
        ) from error
    except OSError as error:
        raise UsageError(f"the repair {path} can't be read: {error.strerror}") from error
    except agent_errors.RequestError as error:
        raise UsageError(
            f"{path} is no repair that can be read ({error}); name the .npz file that edgeflare repair "
            "wrote"
        ) from error


def save_repair(repair: Repair, path: Path) -> None:
    """Write a repair, atomically; the same repair gives the same bytes. Raises OSError."""
    with replacing(path) as file:
        write_repair(repair, file)
