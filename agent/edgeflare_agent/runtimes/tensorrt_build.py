"""An engine from an ONNX file, for the GPU at hand. Takes seconds to many minutes."""

from typing import Any, List, Mapping, Optional, Tuple

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError
from edgeflare_agent.runtimes.calibration import make_calibrator, read_calibration
from edgeflare_agent.runtimes.cuda import Cuda
from edgeflare_agent.runtimes.tensorrt_log import TensorRTError
from edgeflare_agent.runtimes.tensorrt_tensors import Shape, dtype_name

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

    `options`: precision, tf32, workspace_mb and input_shape of the runtime; `calibration`: path of the
    calibration file. Raises ModelError for a model or options that can't be served, TensorRTError.
    """
    log.clear()
    builder = library.Builder(log)
    network = builder.create_network(_network_flags(library))
    parser = library.OnnxParser(network, log)
    if not parser.parse_from_file(path):
        raise ModelError("TensorRT can't read {}: {}".format(path, _parse_error(parser, log)))
    config = builder.create_builder_config()
    _limit_workspace(library, config, options["workspace_mb"])
    if not options["tf32"] and hasattr(library.BuilderFlag, "TF32"):
        config.clear_flag(library.BuilderFlag.TF32)
    shape, profile = _add_profile(builder, network, config, options["input_shape"])
    calibrator = None
    if _needs_calibration(library, builder, network, config, options["precision"]):
        tensors = _calibration(network, calibration, shape)
        calibrator = config.int8_calibrator = make_calibrator(library, cuda, tensors)
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
    """Return the flag of an explicit batch axis: needed before TensorRT 10, where it is the only way."""
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
    """Close the open axes of the only input; return the shape to tune for, and the profile if any.

    The shape is None for a model with several inputs.
    """
    if network.num_inputs != 1:
        return None, None
    given = network.get_input(0)
    shape = tuple(given.shape)
    if -1 not in shape:
        return shape, None
    least, best, most = (
        _filled(given.name, shape, wanted, batch) for batch in (1, 1, LARGEST_BATCH)
    )
    profile = builder.create_optimization_profile()
    profile.set_shape(given.name, least, best, most)
    if config.add_optimization_profile(profile) < 0:
        raise ModelError(
            "TensorRT refuses the input shape {} for the model's input {!r}".format(
                list(best), given.name
            )
        )
    return best, profile


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
            "the model's input {!r} has open axes beside the first ({}), and TensorRT builds an engine "
            "for known sizes: give them as `input_shape` in the runtime's options, such as "
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
            "int8 of a model without Q/DQ nodes needs calibration data: give the .npy file of prepared "
            "input tensors as `calibration` in the runtime's options, or a model with Q/DQ nodes"
        )
    if shape is None:
        raise ModelError("a model with several inputs can't be calibrated by EdgeFlare")
    given = network.get_input(0)
    return read_calibration(path, shape, dtype_name(given.name, given.dtype))


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
