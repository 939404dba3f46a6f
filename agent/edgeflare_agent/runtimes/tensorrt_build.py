"""An engine from an ONNX file, for the GPU at hand. Takes seconds to many minutes.

With it what building needs: the metadata of the ONNX file, and the calibration data of int8
engines.
"""

import os
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError
from edgeflare_agent.runtimes.cuda import Cuda, DeviceBuffer
from edgeflare_agent.runtimes.tensorrt_tensors import Shape, TensorRTError, dtype_name

_METADATA_PROPS = 14
_KEY, _VALUE = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_LONGEST_ENTRY = 1 << 24


def read_metadata(path: str) -> Dict[str, str]:
    """Return the file's ``metadata_props``; the network itself is skipped. Raises ModelError."""
    found = {}
    with open(path, "rb") as file:
        for field, start, size in _fields(file, os.path.getsize(path), path):
            if field == _METADATA_PROPS and size <= _LONGEST_ENTRY:
                entry = {}
                for part, at, length in _fields(file, start + size, path):
                    file.seek(at)
                    entry[part] = file.read(length).decode(errors="replace")
                found[entry.get(_KEY, "")] = entry.get(_VALUE, "")
    return found


def _fields(file: BinaryIO, end: int, path: str) -> Iterator[Tuple[int, int, int]]:
    """Yield (number, start, size) of each field of bytes from here to `end`; others are skipped."""
    at = file.tell()
    while at < end:
        file.seek(at)
        tag = _varint(file, path)
        kind, at = tag & 7, file.tell()
        if kind == _VARINT:
            _varint(file, path)
            at = file.tell()
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        elif kind == _BYTES:
            size = _varint(file, path)
            start = file.tell()
            at = start + size
            if at > end:
                raise _damaged(path)
            file.seek(start)
            yield tag >> 3, start, size
        else:
            raise _damaged(path)


def _varint(file: BinaryIO, path: str) -> int:
    value = 0
    for position in range(_LONGEST_VARINT):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 0x7F) << (7 * position)
        if byte[0] < 0x80:
            return value
    raise _damaged(path)


def _damaged(path: str) -> ModelError:
    return ModelError("{} is no ONNX file, or is damaged".format(path))


def _read_calibration(path: str, shape: Tuple[int, ...], dtype: str) -> Array:
    """Return the tensors of a ``.npy`` file: [N, ...] with N input tensors of this shape and dtype.

    They stay on disk until they are used. Raises ModelError for a file that holds anything else.
    """
    try:
        tensors: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        found = "{} {}".format(tensors.dtype, list(tensors.shape))
    except (OSError, ValueError, AttributeError, EOFError) as error:
        raise ModelError(
            "the calibration file {} is no .npy file: {}".format(path, error)
        ) from error
    if tensors.shape[1:] != shape or tensors.dtype != dtype or not len(tensors):
        raise ModelError(
            "the calibration file {} holds {}, and the model needs {} [N, {}]: N prepared input "
            "tensors".format(path, found, dtype, ", ".join(map(str, shape)))
        )
    return tensors


def _make_calibrator(library: Any, cuda: Cuda, tensors: Array) -> Any:
    """Return TensorRT's entropy calibrator over these tensors, each a batch of its own.

    Its `problem` is the error that ended it, for TensorRT tells only that calibration failed; its
    `free` gives the GPU's memory back.
    """
    base = library.IInt8EntropyCalibrator2

    class Calibrator(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            base.__init__(self)  # TensorRT crashes without it
            self.problem: Optional[Exception] = None
            self._buffer = DeviceBuffer(cuda)
            self._stream = cuda.new_stream()
            self._next = 0

        def get_batch_size(self) -> int:
            return int(tensors.shape[1]) if tensors.ndim > 1 else 1

        def get_batch(self, _names: List[str]) -> Optional[List[int]]:
            if self._next == len(tensors):
                return None
            try:
                tensor = np.ascontiguousarray(tensors[self._next])
                address = self._buffer.holding(tensor.nbytes)
                cuda.upload(address, tensor, self._stream)
                cuda.synchronize(self._stream)
            except Exception as error:  # noqa: BLE001  must not reach TensorRT's C++
                self.problem = error
                return None
            self._next += 1
            return [address]

        def read_calibration_cache(self) -> None:
            return None

        def write_calibration_cache(self, cache: Any) -> None:
            pass

        def free(self) -> None:
            self._buffer.free()
            cuda.destroy_stream(self._stream)

    return Calibrator()


LARGEST_BATCH = 8
"""How many samples at once an engine takes whose batch axis is open; it is tuned for one."""


def build_engine(
    library: Any,
    log: Any,
    cuda: Cuda,
    path: str,
    options: Mapping[str, Any],
    calibration: Optional[str],
) -> bytes:
    """Return the serialised engine of the ONNX file at `path`.

    `options`: precision, tf32, workspace_mb and input_shape of the runtime; `calibration`: path of
    the calibration file. Raises ModelError for a model or options that can't be served,
    TensorRTError.
    """
    log.clear()
    builder = library.Builder(log)
    network = builder.create_network(_network_flags(library))
    parser = library.OnnxParser(network, log)
    if not parser.parse_from_file(path):
        raise ModelError("TensorRT can't read {}: {}".format(path, _parse_error(parser, log)))
    config = builder.create_builder_config()
    if hasattr(library, "ProfilingVerbosity"):  # the inspector tells the layers' types then
        config.profiling_verbosity = library.ProfilingVerbosity.DETAILED
    _limit_workspace(library, config, options["workspace_mb"])
    if not options["tf32"] and hasattr(library.BuilderFlag, "TF32"):
        config.clear_flag(library.BuilderFlag.TF32)
    shape, profile = _add_profile(builder, network, config, options["input_shape"])
    calibrator = None
    if _needs_calibration(library, builder, network, config, options["precision"]):
        tensors = _calibration(network, calibration, shape)
        calibrator = config.int8_calibrator = _make_calibrator(library, cuda, tensors)
        if profile is not None:
            config.set_calibration_profile(profile)
    try:
        plan = builder.build_serialized_network(network, config)
    finally:
        if calibrator is not None:
            calibrator.free()
    if calibrator is not None and calibrator.problem is not None:
        raise TensorRTError("calibration failed: {}".format(calibrator.problem))
    if plan is None:
        raise TensorRTError("no engine could be built: {}".format(log.reason("it gave no reason")))
    return bytes(plan)


def _network_flags(library: Any) -> int:
    """Return the flag of an explicit batch axis, which TensorRT needs before version 10."""
    explicit = getattr(library.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    return 0 if explicit is None else 1 << int(explicit)


def _parse_error(parser: Any, log: Any) -> str:
    if parser.num_errors:
        return " ".join(str(parser.get_error(0).desc()).split())
    return str(log.reason("it gave no reason"))


def _limit_workspace(library: Any, config: Any, megabytes: Optional[int]) -> None:
    if megabytes is None:
        return
    if hasattr(config, "set_memory_pool_limit"):
        config.set_memory_pool_limit(library.MemoryPoolType.WORKSPACE, megabytes << 20)
    else:  # before TensorRT 8.4
        config.max_workspace_size = megabytes << 20


def _add_profile(
    builder: Any, network: Any, config: Any, wanted: Optional[List[int]]
) -> Tuple[Optional[Shape], Any]:
    """Close the open axes of all inputs; return the shape to tune for, and the profile if any.

    The shape is None for a model with several inputs, for which `wanted` isn't used either.
    """
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    wanted = wanted if len(inputs) == 1 else None
    profile, tuned = None, []
    for given in inputs:
        shape = tuple(given.shape)
        if -1 in shape:
            least, best, most = (
                _filled(given.name, shape, wanted, batch) for batch in (1, 1, LARGEST_BATCH)
            )
            profile = profile or builder.create_optimization_profile()
            profile.set_shape(given.name, least, best, most)
            shape = best
        tuned.append(shape)
    if profile is not None and config.add_optimization_profile(profile) < 0:
        raise ModelError(
            "TensorRT refuses the input shape {} for the model's input {}".format(
                " and ".join(str(list(shape)) for shape in tuned),
                " and ".join(repr(given.name) for given in inputs),
            )
        )
    return (tuned[0] if len(tuned) == 1 else None), profile


def _filled(name: str, shape: Shape, wanted: Optional[List[int]], batch: int) -> Shape:
    if wanted is not None:
        fits = len(wanted) == len(shape) and all(
            n in (-1, chosen) for n, chosen in zip(shape, wanted)
        )
        if not fits:
            raise ModelError(
                "input_shape {} does not fit the model's input {!r}, which has the shape {}".format(
                    list(wanted), name, _shown(shape)
                )
            )
        return tuple(wanted)
    if -1 in shape[1:]:
        raise ModelError(
            "the model's input {!r} has open axes beside the first ({}), and TensorRT builds an "
            "engine for known sizes: give them as `input_shape` in the runtime's options, such as "
            "[1, 3, 224, 224]".format(name, _shown(shape))
        )
    return (batch, *shape[1:])


def _needs_calibration(
    library: Any, builder: Any, network: Any, config: Any, precision: str
) -> bool:
    """Set the flags of a precision; return whether the scales of int8 are still to be found."""
    quantized = _is_quantized(library, network)
    if precision == "fp16":
        config.set_flag(_flag(library, "FP16", "fp16", "a model that computes in fp16 itself"))
    if quantized:
        if hasattr(library.BuilderFlag, "INT8"):  # TensorRT 11 needs no leave
            config.set_flag(library.BuilderFlag.INT8)
        return False
    if precision != "int8":
        return False
    config.set_flag(_flag(library, "INT8", "int8", "a model with Q/DQ nodes"))
    if not getattr(builder, "platform_has_fast_int8", True):
        raise ModelError("this GPU has no fast int8: choose precision fp32 or fp16")
    return True


def _calibration(network: Any, path: Optional[str], shape: Optional[Shape]) -> Array:
    if path is None:
        raise ModelError(
            "int8 of a model without Q/DQ nodes needs calibration data: give the .npy file of "
            "prepared input tensors as `calibration` in the runtime's options, or a model with "
            "Q/DQ nodes"
        )
    if shape is None:
        raise ModelError("a model with several inputs can't be calibrated by EdgeFlare")
    given = network.get_input(0)
    return _read_calibration(path, shape, dtype_name(given.name, given.dtype))


def _flag(library: Any, name: str, precision: str, instead: str) -> Any:
    if not hasattr(library.BuilderFlag, name):
        raise ModelError(
            "TensorRT {} makes no {} engine of this model, older ones did: give {} and precision "
            "fp32".format(library.__version__, precision, instead)
        )
    return getattr(library.BuilderFlag, name)


def _is_quantized(library: Any, network: Any) -> bool:
    kinds = (library.LayerType.QUANTIZE, library.LayerType.DEQUANTIZE)
    return any(network.get_layer(index).type in kinds for index in range(network.num_layers))


def _shown(shape: Shape) -> str:
    return " x ".join("?" if n < 0 else str(n) for n in shape)
