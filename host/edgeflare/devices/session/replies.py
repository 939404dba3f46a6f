"""Reads an agent's handshake and model description; checks answers against the description."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from edgeflare._internal.text import shape_text
from edgeflare.devices import reported
from edgeflare_agent.arrays import DType
from edgeflare_agent.decoding import KINDS, RawOutput, decoded_from_arrays
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.repair import Repair
from edgeflare_agent.wire import Frame

_MOST_ELEMENTS = 1 << 30
_MOST_OPEN_BYTES = 16 << 20
_MOST_PIECES = 1 << 16
_PIECE_BYTES = 96
_BRACKETS_BYTES = 1 << 10
T = TypeVar("T")
_TEXTS = ("board", "soc", "cpu", "arch", "kernel", "os", "hostname")


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A device's answer to one request, in the order of its samples.

    `outputs`: what the device returned, raw (arrays of the configured output, not dequantised, or
    what a decoder made of them), or what a reader made of that. `seconds`: the device's own time
    for preprocessing, inference and decoding of each.
    """

    outputs: Sequence[T]
    seconds: Sequence[float]


@dataclass(frozen=True)
class LoadedModel:
    """The model as the device's runtime describes it.

    `runtime` is what is in effect, not what was requested.

    `decoder` identifies the decoder in the file of a model that returns text, if any.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    runtime: dict[str, Any]
    metadata: dict[str, str]
    decoder: dict[str, Any] | None = None


class ReplyReader:
    """Reads answers to INFER: arrays of one tensor of the model, or decoded transcripts.

    `output`: the name of the tensor, None: the only one; `repair`: what replaces it on the device.
    `most_bytes`: the limit for the answer on
    one sample.
    """

    def __init__(
        self,
        model: LoadedModel,
        output: str | None,
        *,
        decoded: bool = False,
        repair: Repair | None = None,
    ) -> None:
        named = [one for one in model.outputs if output in (None, one.name)]
        self._tensor = named[0] if named else model.outputs[0]
        if repair is not None:
            self._tensor = repair.announced(self._tensor.name)
        self._dtypes: set[DType] = set()
        """Dtypes known to be the announced one: `dtype.name` is slow."""
        self._decoded = decoded
        self._elements = _elements(self._tensor.shape)
        if decoded:
            known = [_elements(one.shape) or _MOST_PIECES for one in model.outputs]
            pieces = min(_MOST_PIECES, max(known))
            self.most_bytes = pieces * _PIECE_BYTES + _BRACKETS_BYTES
        elif self._elements is None:
            self.most_bytes = _MOST_OPEN_BYTES
        else:
            self.most_bytes = self._elements * 8

    def read(self, frame: Frame, count: int) -> Reply[RawOutput]:
        """Return the answer on `count` samples. Raises ValueError where it is not as announced."""
        seconds = reported.all_seconds(frame.header, "seconds", count)
        if frame.header.get("decoded", False) is not (self._decoded and count > 0):
            asked = "text" if self._decoded else f"output {self._described()}"
            raise ValueError(f"{asked} was asked for, and {'no ' * self._decoded}text came")
        outputs: Sequence[RawOutput] = frame.arrays
        if self._decoded and count > 0:
            outputs = decoded_from_arrays(frame.arrays)
        if len(outputs) != count:
            raise ValueError(f"{len(outputs)} outputs came for {count} samples")
        for array in () if self._decoded else frame.arrays:
            fits = array.size == self._elements
            if self._elements is None:
                known = math.prod(n for n in self._tensor.shape if n)
                fits = array.size > 0 and array.size % known == 0
            if array.dtype not in self._dtypes and array.dtype.name == self._tensor.dtype:
                self._dtypes.add(array.dtype)
            if not fits or array.dtype not in self._dtypes:
                raise ValueError(
                    f"output {self._described()} was announced, {shape_text(array.shape)} "
                    f"{array.dtype.name} came"
                )
        return Reply(outputs, seconds)

    def _described(self) -> str:
        tensor = self._tensor
        return f"{tensor.name!r} of {shape_text(tensor.shape)} {tensor.dtype}"


def check_hello(header: dict[str, Any]) -> None:
    """Raise ValueError where a field of the handshake has a wrong type."""
    for name in ("python", "executable", "numpy"):
        reported.text(header, name)
    reported.text_table(header, "runtimes")
    device = reported.table(header, "device")
    for name in _TEXTS:
        reported.text(device, name)
    reported.texts(device, "cpu_flags")
    for name in ("cores", "memory_bytes"):
        reported.count(device, name)


def read_model(frame: Frame) -> LoadedModel:
    """Return what LOADED announces. Raises LookupError, TypeError, ValueError if it is invalid."""
    header = frame.header
    decoder = None
    if header.get("decoder") is not None:
        decoder = reported.table(header, "decoder")
        if decoder.get("kind") not in KINDS:
            raise ValueError("the model's decoder is of no known kind")
    inputs, outputs = (
        tuple(map(_tensor, reported.tables(header, name))) for name in ("inputs", "outputs")
    )
    if len(inputs) != 1 or not outputs:
        raise ValueError(f"the model has {len(inputs)} inputs and {len(outputs)} outputs")
    runtime = reported.table(header, "runtime")
    for name in ("name", "package", "version"):
        reported.text(runtime, name)
    reported.texts(runtime, "providers")
    return LoadedModel(inputs, outputs, runtime, reported.text_table(header, "metadata"), decoder)


def read_empty(_: Frame) -> None:
    """Read a reply without content."""


def read_memory(frame: Frame) -> int | None:
    """Return the available memory in bytes; None: unknown."""
    return reported.count(frame.header, "memory_available_bytes")


def _tensor(data: dict[str, Any]) -> TensorInfo:
    tensor = TensorInfo.from_json(data)
    shape = data["shape"]
    fits = all(n is None or (type(n) is int and n >= 0) for n in shape)
    if not fits or math.prod(n for n in shape if n) > _MOST_ELEMENTS:
        raise ValueError(f"tensor {tensor.name!r} has the shape {str(shape)[:99]}")
    return tensor


def _elements(shape: Sequence[int | None]) -> int | None:
    """Return how many values a tensor has for one sample; None: the model's file leaves it open.

    An open first axis of several is the batch, which has one sample; an axis of 0 is open, too. A
    shape without axes may be one that the file doesn't tell.
    """
    known = [1, *shape[1:]] if len(shape) > 1 and not shape[0] else list(shape)
    return math.prod(n or 0 for n in known) or None if known else None
