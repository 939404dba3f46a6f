"""Reads an agent's handshake and model description; checks answers against the description."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from edgeflare._internal.text import counted, shape_text
from edgeflare.devices import reported
from edgeflare.devices.reported import WrongValueError
from edgeflare_agent.arrays import DType
from edgeflare_agent.configuration.reduction import Reduction
from edgeflare_agent.decoding import KINDS, Decoded, RawOutput, decoded_from_arrays
from edgeflare_agent.image_spec import TensorInfo, is_batch_open
from edgeflare_agent.repair import Repair
from edgeflare_agent.wire import MOST_AXES, Frame

_MOST_ELEMENTS = 1 << 30
_MOST_TENSORS = 4096
"""Inputs or outputs of a model, far more than any that is deployed has."""
_NOT_AS_ANNOUNCED = (
    "the model's file or its runtime there states another shape or dtype than the model returns: "
    "mend that, or try another runtime or version of it"
)
_MOST_OPEN_BYTES = 16 << 20
_MOST_PIECES = 1 << 16
_PIECE_BYTES = 96
_BRACKETS_BYTES = 1 << 10
T = TypeVar("T")
_TEXTS = ("board", "soc", "cpu", "arch", "kernel", "os", "hostname")


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A device's answer to one request, in the order of its samples.

    `outputs`: what the device returned, raw (arrays of the configured output, not dequantised,
    tuples of them where several are configured, or what a decoder made of them), or what a reader
    made of that. `seconds`: the device's own time
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
    """Reads answers to INFER: arrays of the model's tensors, or decoded transcripts.

    `output`: the name of a tensor, None: the only one, or a sequence of names, for which each
    sample's answer is a tuple of arrays in that order. `repair`: what replaces the tensor on the
    device; `keep`: which anchors are kept there, see `edgeflare_agent.configuration.reduction`. `most_bytes`: the
    limit for the answer on one sample.
    """

    def __init__(
        self,
        model: LoadedModel,
        output: str | Sequence[str] | None,
        *,
        decoded: bool = False,
        repair: Repair | None = None,
        keep: Mapping[str, Any] | None = None,
    ) -> None:
        self._several = output is not None and not isinstance(output, str)
        names = [output] if output is None or isinstance(output, str) else output
        tensors = [_named(model.outputs, name) for name in names]
        if repair is not None:
            tensors = [repair.announced(tensors[0].name)]
        reduction = None if keep is None else Reduction.from_json(dict(keep), tensors)
        if reduction is not None:
            tensors = reduction.announced(tensors)
        axes = (None,) * len(tensors) if reduction is None else reduction.axes
        # of a model that takes one sample alone an open first axis need not be the batch
        has_batch = is_batch_open(model.inputs)
        self._tensors = [
            _AnnouncedTensor(
                tensor, axis, 0 if reduction is None else reduction.most, has_batch=has_batch
            )
            for tensor, axis in zip(tensors, axes, strict=True)
        ]
        self._decoded = decoded
        if decoded:
            known = [one.values or _MOST_PIECES for one in model.outputs]
            pieces = min(_MOST_PIECES, max(known))
            self.most_bytes = pieces * _PIECE_BYTES + _BRACKETS_BYTES
        else:
            self.most_bytes = sum(tensor.most_bytes for tensor in self._tensors)

    def read(self, frame: Frame, count: int) -> Reply[RawOutput]:
        """Return the answer on `count` samples. Raises WrongValueError where it is not as announced."""
        seconds = reported.all_seconds(frame.header, "seconds", count)
        is_text = reported.truth(frame.header, "decoded") or False
        if is_text is not (self._decoded and count > 0):
            asked = (
                "true, as text was" if self._decoded else f"false, as output {self._tensors[0]} was"
            )
            raise WrongValueError("decoded", is_text, f"{asked} asked for")
        if self._decoded and count > 0:
            decoded = _decoded(frame.arrays)
            _check_count(len(decoded), count, 1)
            return Reply(decoded, seconds)
        each = len(self._tensors)
        outputs = reported.count(frame.header, "outputs")
        if outputs != (each if self._several else None):
            raise WrongValueError(
                "outputs", outputs, f"{each} a sample" if self._several else "null"
            )
        _check_count(len(frame.arrays), count, each)
        if not self._several:
            [tensor] = self._tensors
            for array in frame.arrays:
                tensor.check(array)
            return Reply(frame.arrays, seconds)
        for place, array in enumerate(frame.arrays):
            self._tensors[place % each].check(array)
        starts = range(0, len(frame.arrays), each)
        return Reply([frame.arrays[start : start + each] for start in starts], seconds)


class _AnnouncedTensor:
    """One output as the device announced it; its arrays are checked against that.

    Along `kept_axis`, unless that is None, there are `most` values at most. `has_batch`: an open first
    axis is the batch.
    """

    def __init__(
        self, tensor: TensorInfo, kept_axis: int | None, most: int, *, has_batch: bool
    ) -> None:
        self._tensor = tensor
        self._kept_axis = kept_axis
        self._most = most
        self._dtypes: set[DType] = set()
        """Dtypes known to be the announced one: `dtype.name` is slow."""
        self._elements = tensor.values if has_batch or all(tensor.shape[:1]) else None
        self.most_bytes = _MOST_OPEN_BYTES if self._elements is None else self._elements * 8

    def check(self, array: NDArray[Any]) -> None:
        """Raise ValueError for an array of another size or dtype."""
        fits = array.size == self._elements
        if self._elements is None:
            known = math.prod(n for n in self._tensor.shape if n)
            fits = array.size > 0 and array.size % known == 0
        if self._kept_axis is not None:
            fits = fits and (
                array.ndim > self._kept_axis and array.shape[self._kept_axis] <= self._most
            )
        if array.dtype not in self._dtypes and array.dtype.name == self._tensor.dtype:
            self._dtypes.add(array.dtype)
        if not fits or array.dtype not in self._dtypes:
            raise WrongValueError(
                f"output {self._tensor.name!r}",
                f"{shape_text(array.shape)} {array.dtype.name}",
                f"{shape_text(self._tensor.shape)} {self._tensor.dtype} as announced",
                advice=_NOT_AS_ANNOUNCED,
            )

    def __str__(self) -> str:
        return f"{self._tensor.name!r} of {shape_text(self._tensor.shape)} {self._tensor.dtype}"


def _check_count(came: int, count: int, each: int) -> None:
    if came != count * each:
        of_each = "" if each == 1 else f" with {each} outputs each"
        raise WrongValueError("arrays", came, f"those of {counted(count, 'sample')}{of_each}")


def _decoded(arrays: Sequence[NDArray[Any]]) -> list[Decoded]:
    """Return transcripts; raise WrongValueError for arrays that are none."""
    try:
        return decoded_from_arrays(arrays)
    except (ValueError, RecursionError) as error:
        raise WrongValueError(
            "arrays", f"{len(arrays)} that hold no transcripts", "texts and their scores"
        ) from error


def _named(tensors: Sequence[TensorInfo], name: str | None) -> TensorInfo:
    return next((tensor for tensor in tensors if name in (None, tensor.name)), tensors[0])


def check_hello(header: dict[str, Any]) -> None:
    """Raise WrongValueError where a field of the handshake has a wrong type."""
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
    """Return what LOADED announces. Raises WrongValueError if it is invalid."""
    header = frame.header
    decoder = None
    if header.get("decoder") is not None:
        decoder = reported.table(header, "decoder")
        kind = reported.text(decoder, "kind")
        if kind not in KINDS:
            raise WrongValueError("decoder.kind", kind, f"one of {', '.join(KINDS)}")
        reported.text(decoder, "origin")
    inputs, outputs = (_tensors(header, name) for name in ("inputs", "outputs"))
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


def _tensors(header: dict[str, Any], name: str) -> tuple[TensorInfo, ...]:
    """Return the inputs or outputs that a model is announced with."""
    entries = reported.tables(header, name)
    if not 1 <= len(entries) <= _MOST_TENSORS:
        raise WrongValueError(name, entries, f"a list of 1 to {_MOST_TENSORS} tensors")
    return tuple(_tensor(entry, f"{name}.{place}") for place, entry in enumerate(entries))


def _tensor(entry: dict[str, Any], where: str) -> TensorInfo:
    """Return a tensor that a model is announced with; `where` names it in an error."""
    name, dtype = (_required_text(entry, field, where) for field in ("name", "dtype"))
    shape = entry.get("shape", reported.MISSING)
    if not isinstance(shape, list):
        raise WrongValueError(f"{where}.shape", shape, "a list of axes")
    if len(shape) > MOST_AXES:
        raise WrongValueError(f"{where}.shape", shape, f"{MOST_AXES} axes at most")
    for size in shape:
        if size is not None and (type(size) is not int or size < 0):
            raise WrongValueError(
                f"{where}.shape", size, "null or a whole number from 0 as an axis"
            )
    if math.prod(size for size in shape if size) > _MOST_ELEMENTS:
        sizes = shape_text(shape)
        raise WrongValueError(f"{where}.shape", sizes, f"{_MOST_ELEMENTS:,} values at most")
    return TensorInfo(name, tuple(shape), dtype, _quantization(entry, where))


def _quantization(entry: dict[str, Any], where: str) -> tuple[float, int] | None:
    stated = entry.get("quantization")
    if stated is None:
        return None
    expected = "null, or a scale above 0 and a whole zero point"
    if not isinstance(stated, list) or len(stated) != len(("scale", "zero point")):
        raise WrongValueError(f"{where}.quantization", stated, expected)
    scale, zero_point = stated
    if type(scale) not in (int, float) or not 0 < scale < math.inf:
        raise WrongValueError(f"{where}.quantization", scale, expected)
    if type(zero_point) is not int:
        raise WrongValueError(f"{where}.quantization", zero_point, expected)
    return float(scale), zero_point


def _required_text(entry: dict[str, Any], field: str, where: str) -> str:
    value = entry.get(field, reported.MISSING)
    if not isinstance(value, str):
        raise WrongValueError(f"{where}.{field}", value, "a text")
    return value
