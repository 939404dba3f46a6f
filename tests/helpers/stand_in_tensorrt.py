"""A stand-in for the ``tensorrt`` module of a chosen version, over a `StandInGpu`.

It has the names that the version has and no others, and fails where TensorRT fails: nothing is
returned, and the logger is told why. An inference really runs the ONNX model (by onnxruntime), with
fp16, TF32 and int8 as roundings of what goes in and out. No two builds give the same engine, as with
TensorRT. What it can't show: kernels, timing, and what a real TensorRT thinks of a model.
"""

import enum
import hashlib
import importlib.machinery
import itertools
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from stand_in_engines import (
    MAGIC,
    ONNX_TYPES,
    DataType,
    Runtime,
    Severity,
    StandInGpu,
    TensorFormat,
    TensorIOMode,
    TensorLocation,
    shape_of,
)

_BUILDS = itertools.count()


class LayerType(enum.Enum):
    ELEMENTWISE, QUANTIZE, DEQUANTIZE = range(3)


class MemoryPoolType(enum.Enum):
    WORKSPACE = 0


class ProfilingVerbosity(enum.Enum):
    LAYER_NAMES_ONLY, NONE, DETAILED = range(3)


class ILogger:
    Severity = Severity

    def __init__(self) -> None:
        self.ready = True


class Part:
    """A named thing with attributes, such as a tensor or a layer."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def make_tensorrt(version: str, gpu: StandInGpu) -> ModuleType:
    """Return the module ``tensorrt`` of a version, such as 8.5.2."""
    release = tuple(int(part) for part in version.split(".")[:2])
    module = ModuleType("tensorrt")
    module.__spec__ = importlib.machinery.ModuleSpec("tensorrt", None)
    state = Part(version=version, release=release, gpu=gpu, logger=None, builds=0, calibrated=[])

    flags = ["TF32", *(("FP16", "INT8") if release < (11, 0) else ())]
    creation = ["EXPLICIT_BATCH"] if release < (11, 0) else ["STRONGLY_TYPED"]
    module.__dict__.update(
        __version__=version,
        state=state,
        ILogger=ILogger,
        DataType=DataType,
        TensorFormat=TensorFormat,
        TensorLocation=TensorLocation,
        LayerType=LayerType,
        MemoryPoolType=MemoryPoolType,
        ProfilingVerbosity=ProfilingVerbosity,
        LayerInformationFormat=enum.Enum("LayerInformationFormat", ["ONELINE", "JSON"]),
        BuilderFlag=enum.IntEnum("BuilderFlag", flags),  # type: ignore[misc]
        NetworkDefinitionCreationFlag=enum.IntEnum("Creation", creation, start=0),  # type: ignore[misc]
        init_libnvinfer_plugins=lambda logger, namespace: _checked(logger) is logger,
        Builder=lambda logger: Builder(state, _checked(logger)),
        OnnxParser=lambda network, logger: OnnxParser(state, network, _checked(logger)),
        Runtime=lambda logger: Runtime(state, _checked(logger)),
    )
    if release >= (8, 5):
        module.TensorIOMode = TensorIOMode  # type: ignore[attr-defined]
    if release < (11, 0):
        module.IInt8EntropyCalibrator2 = IInt8EntropyCalibrator2  # type: ignore[attr-defined]
    return module


class IInt8EntropyCalibrator2:
    def __init__(self) -> None:
        self.ready = True


def _checked(logger: Any) -> Any:
    if not getattr(logger, "ready", False):
        raise TypeError("a trampoline class whose base was not initialised: TensorRT would crash")
    return logger


class Network:
    def __init__(self, explicit: bool) -> None:
        self.explicit = explicit
        self.content = b""
        self.inputs: list[Any] = []
        self.layers: list[Any] = []

    num_inputs = property(lambda self: len(self.inputs))
    num_layers = property(lambda self: len(self.layers))

    def get_input(self, index: int) -> Any:
        return self.inputs[index]

    def get_layer(self, index: int) -> Any:
        return self.layers[index]


class OnnxParser:
    def __init__(self, state: Any, network: Network, logger: Any) -> None:
        self._state, self._network, self._logger = state, network, logger
        self._errors: list[str] = []

    num_errors = property(lambda self: len(self._errors))

    def get_error(self, index: int) -> Any:
        return Part(desc=lambda: self._errors[index])

    def parse_from_file(self, path: str) -> bool:
        if not self._network.explicit:
            return self._refuse("only networks with an explicit batch dimension are supported")
        content = Path(path).read_bytes()
        try:
            model = onnx.load_from_string(content)
            onnx.checker.check_model(model)
        except (DecodeError, onnx.checker.ValidationError):
            return self._refuse("Failed to parse ONNX model from file: " + path)
        constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
                zero = constants[node.input[2]]
                if zero.dtype != np.int8:
                    return self._refuse(f"{zero.dtype} is no type that TensorRT quantizes to")
                if zero.any():
                    return self._refuse(
                        "TensorRT only supports symmetric quantization, zero point 0"
                    )
        for value in model.graph.input:
            if self._dtype(value) is None:
                return self._refuse(f"unsupported type of the input {value.name}")
        kinds = {"QuantizeLinear": "QUANTIZE", "DequantizeLinear": "DEQUANTIZE"}
        self._network.layers = [
            Part(type=LayerType[kinds.get(node.op_type, "ELEMENTWISE")])
            for node in model.graph.node
        ]
        self._network.inputs = [
            Part(name=value.name, shape=shape_of(value), dtype=DataType[str(self._dtype(value))])
            for value in model.graph.input
        ]
        self._network.content = content
        return True

    def _dtype(self, value: Any) -> str | None:
        name = ONNX_TYPES.get(value.type.tensor_type.elem_type)
        if name == "INT64" and self._state.release < (10, 0):
            return "INT32"
        return None if name == "UINT8" and self._state.release < (8, 5) else name

    def _refuse(self, why: str) -> bool:
        self._errors.append(why)
        self._logger.log(Severity.ERROR, "ModelImporter.cpp: " + why)
        return False


class BuilderConfig:
    def __init__(self, state: Any) -> None:
        self.flags = {"TF32"}  # set from the start
        self.profiles: list[Any] = []
        self.pools: dict[Any, int] = {}
        if state.release < (11, 0):
            self.int8_calibrator: Any = None
            self.set_calibration_profile = self._set_calibration_profile
        if state.release < (10, 0):
            self.max_workspace_size = 0
        if state.release >= (8, 4):
            self.set_memory_pool_limit = self.pools.__setitem__
        self.calibration_profile: Any = None

    def set_flag(self, flag: Any) -> None:
        self.flags.add(flag.name)

    def clear_flag(self, flag: Any) -> None:
        self.flags.discard(flag.name)

    def add_optimization_profile(self, profile: Any) -> int:
        for least, best, most in profile.shapes.values():
            if not all(a <= b <= c for a, b, c in zip(least, best, most, strict=True)):
                return -1
        self.profiles.append(profile)
        return len(self.profiles) - 1

    def _set_calibration_profile(self, profile: Any) -> bool:
        self.calibration_profile = profile
        return True


class Profile:
    def __init__(self) -> None:
        self.shapes: dict[str, tuple[Any, Any, Any]] = {}

    def set_shape(self, name: str, least: Any, best: Any, most: Any) -> None:
        self.shapes[name] = (tuple(least), tuple(best), tuple(most))


class HostMemory(bytes):
    nbytes = property(len)


class Builder:
    def __init__(self, state: Any, logger: Any) -> None:
        self._state, self._logger = state, logger
        if state.release < (11, 0):
            self.platform_has_fast_int8 = True

    def create_network(self, flags: int = 0) -> Network:
        return Network(self._state.release >= (10, 0) or bool(flags & 1))

    def create_builder_config(self) -> BuilderConfig:
        return BuilderConfig(self._state)

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: BuilderConfig) -> Any:
        shapes = config.profiles[0].shapes if config.profiles else {}
        for given in network.inputs:
            if -1 in given.shape and given.name not in shapes:
                return self._fail("Network has dynamic inputs, but no optimization profile")
        quantized = any(layer.type is not LayerType.ELEMENTWISE for layer in network.layers)
        if quantized and self._state.release < (11, 0) and "INT8" not in config.flags:
            return self._fail("Int8 precision has been set for a layer, but int8 is not configured")
        step = None
        if "INT8" in config.flags and not quantized:
            if -1 in network.inputs[0].shape and config.calibration_profile is None:
                return self._fail(
                    "Calibration profile is not set for a network with dynamic inputs"
                )
            step = self._calibrate(network, config, shapes)
            if step is None:
                return self._fail("Calibration failure occurred with no scaling factors detected")
        self._state.builds += 1
        header = {
            "version": self._state.version,
            "capability": list(self._state.gpu.capability),
            "flags": sorted(config.flags),
            "shapes": shapes,
            "workspace": next(iter(config.pools.values()), None),
            "detailed": getattr(config, "profiling_verbosity", None) is ProfilingVerbosity.DETAILED,
            "step": step,
            "build": next(_BUILDS),
        }
        text = json.dumps(header).encode()
        body = len(text).to_bytes(4, "little") + text + network.content
        return HostMemory(MAGIC + hashlib.sha256(body).digest() + body)

    def _calibrate(self, network: Network, config: BuilderConfig, shapes: Any) -> float | None:
        calibrator = config.int8_calibrator
        if calibrator is None or not calibrator.ready:
            return None
        given = network.inputs[0]
        shape = shapes[given.name][1] if given.name in shapes else given.shape
        size = 4 * int(np.prod(shape))
        assert calibrator.read_calibration_cache() is None
        assert calibrator.get_batch_size() == shape[0]
        largest = []
        while (addresses := calibrator.get_batch([given.name])) is not None:
            [address] = addresses
            if not self._state.gpu.has(address, size):
                return None
            batch = np.frombuffer(bytes(self._state.gpu.memory[address][:size]), np.float32)
            self._state.calibrated.append(batch.reshape(shape))
            largest.append(float(np.abs(batch).max()))
        calibrator.write_calibration_cache(memoryview(b"cache"))
        return max(largest) / 127 if largest else None

    def _fail(self, why: str) -> None:
        self._logger.log(Severity.ERROR, "builder.cpp: " + why)


def install(version: str, monkeypatch: Any, gpu: StandInGpu | None = None) -> ModuleType:
    """Put the stand-in and its GPU's library where the agent looks for them; return the module."""
    gpu = gpu or StandInGpu()
    module = make_tensorrt(version, gpu)
    library = gpu.library()
    wanted = f"libcudart.so.{gpu.version // 1000}" + (".0" if gpu.version < 12000 else "")

    def load(path: str) -> Any:
        if path != wanted:
            raise OSError(f"{path}: cannot open shared object file")
        return library

    monkeypatch.setitem(sys.modules, "tensorrt", module)
    monkeypatch.setattr("ctypes.CDLL", load)
    return module
