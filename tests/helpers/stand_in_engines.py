"""The half of the TensorRT stand-in that runs engines, and the CUDA runtime library below it.

`StandInGpu` is C functions over memory of its own, as strict as a GPU: copies and inferences wait on their
stream until it is synchronised; an address that was never allocated or was freed, and an unknown stream,
fail as in CUDA.
"""

import ctypes
import enum
import hashlib
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime

OK, INVALID_VALUE, NO_DEVICE, INVALID_HANDLE, ILLEGAL_ADDRESS = 0, 1, 100, 400, 700
_TEXTS = {
    OK: b"no error",
    INVALID_VALUE: b"invalid argument",
    NO_DEVICE: b"no CUDA-capable device is detected",
    INVALID_HANDLE: b"invalid resource handle",
    ILLEGAL_ADDRESS: b"an illegal memory access was encountered",
}
_int, _size, _address = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
_int_out, _address_out = ctypes.POINTER(_int), ctypes.POINTER(_address)


class StandInGpu:
    """One GPU: `memory` {address: bytes}, `streams` {handle: what waits on it}."""

    def __init__(
        self,
        name: str = "Orin",
        capability: tuple[int, int] = (8, 7),
        version: int = 12060,
        devices: int = 1,
    ) -> None:
        self.name, self.capability, self.version, self.devices = name, capability, version, devices
        self.memory: dict[int, bytearray] = {}
        self.streams: dict[int, list[Callable[[], int]]] = {}
        self._next = 0x7F0000000000
        self._kept: list[object] = []

    def library(self) -> SimpleNamespace:
        """The library as ctypes would load it, with the names of its version."""
        library = SimpleNamespace()
        properties = ["cudaGetDeviceProperties"]
        if self.version // 1000 == 12:  # the only one with both
            properties.append("cudaGetDeviceProperties_v2")
        for name in properties:
            self._add(library, name, self._properties, _address, _int)
        self._add(library, "cudaGetDeviceCount", self._count, _int_out)
        self._add(library, "cudaSetDevice", lambda index: 0 if index == 0 else 101, _int)
        self._add(library, "cudaDeviceGetAttribute", self._attribute, _int_out, _int, _int)
        for name in ("cudaRuntimeGetVersion", "cudaDriverGetVersion"):
            self._add(library, name, self._version, _int_out)
        self._add(library, "cudaMalloc", self._malloc, _address_out, _size)
        self._add(library, "cudaFree", self._free, _address)
        copy = (_address, _address, _size, _int, _address)
        self._add(library, "cudaMemcpyAsync", self._copy, *copy)
        self._add(library, "cudaStreamCreate", self._stream, _address_out)
        self._add(library, "cudaStreamSynchronize", self._synchronize, _address)
        self._add(library, "cudaStreamDestroy", self._destroy, _address)
        texts = {code: ctypes.create_string_buffer(text) for code, text in _TEXTS.items()}
        library.cudaGetErrorString = ctypes.CFUNCTYPE(_address, _int)(
            lambda code: ctypes.addressof(texts[code])
        )
        return library

    def put(self, stream: int, work: Callable[[], int]) -> bool:
        """Have work wait on a stream; it returns a status."""
        if stream not in self.streams:
            return False
        self.streams[stream].append(work)
        return True

    def has(self, address: int, size: int) -> bool:
        """Whether so many bytes are allocated from this address."""
        return address in self.memory and len(self.memory[address]) >= size

    def _add(
        self, library: SimpleNamespace, name: str, function: Callable[..., int], *kinds: type
    ) -> None:
        setattr(library, name, ctypes.CFUNCTYPE(_int, *kinds)(function))

    def _properties(self, target: int, index: int) -> int:
        if index:
            return 101
        name = self.name.encode() + b"\0"
        struct = name + b"\xee" * ({11: 728, 12: 1032}.get(self.version // 1000, 1008) - len(name))
        ctypes.memmove(target, struct, len(struct))
        return OK

    def _count(self, found: "ctypes._Pointer[ctypes.c_int]") -> int:
        found[0] = self.devices
        return OK if self.devices else NO_DEVICE

    def _attribute(self, found: "ctypes._Pointer[ctypes.c_int]", which: int, _: int) -> int:
        found[0] = {75: self.capability[0], 76: self.capability[1]}[which]
        return OK

    def _version(self, found: "ctypes._Pointer[ctypes.c_int]") -> int:
        found[0] = self.version
        return OK

    def _malloc(self, found: "ctypes._Pointer[ctypes.c_void_p]", size: int) -> int:
        self._next += 0x10000000
        self.memory[self._next] = bytearray(size)
        found[0] = self._next
        return OK

    def _free(self, address: int | None) -> int:
        return OK if address is None or self.memory.pop(address, None) is not None else 1

    def _stream(self, found: "ctypes._Pointer[ctypes.c_void_p]") -> int:
        self._next += 0x10000000
        self.streams[self._next] = []
        found[0] = self._next
        return OK

    def _copy(self, target: int, source: int, size: int, kind: int, stream: int) -> int:
        if kind == 1:
            staged = ctypes.string_at(source, size)  # CUDA stages what lies in ordinary memory

            def work() -> int:
                if not self.has(target, size):
                    return ILLEGAL_ADDRESS
                self.memory[target][:size] = staged
                return OK
        else:

            def work() -> int:
                if not self.has(source, size):
                    return ILLEGAL_ADDRESS
                ctypes.memmove(target, bytes(self.memory[source][:size]), size)
                return OK

        return OK if self.put(stream, work) else INVALID_HANDLE

    def _synchronize(self, stream: int) -> int:
        if stream not in self.streams:
            return INVALID_HANDLE
        waiting, self.streams[stream] = self.streams[stream], []
        return next((status for status in [work() for work in waiting] if status), OK)

    def _destroy(self, stream: int) -> int:
        return OK if self.streams.pop(stream, None) is not None else INVALID_HANDLE


MAGIC = b"ftrt"
BY_VALUES = "by-values"
"""Name of an output's open axis whose length depends on the input's values."""
ONNX_TYPES = {1: "FLOAT", 2: "UINT8", 3: "INT8", 6: "INT32", 7: "INT64", 9: "BOOL", 10: "HALF"}
_NUMPY = {
    **{name.upper(): name for name in ("int8", "uint8", "int32", "int64", "bool")},
    "FLOAT": "float32",
    "HALF": "float16",
}


class Dims(tuple[int, ...]):
    """A shape; -1 is an open axis."""


class Severity(enum.Enum):
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)


class DataType(enum.Enum):
    FLOAT, HALF, INT8, INT32, BOOL, UINT8, FP8, BF16, INT64 = range(9)


class TensorFormat(enum.Enum):
    LINEAR, CHW4 = 0, 3


class TensorLocation(enum.Enum):
    DEVICE, HOST = range(2)


class TensorIOMode(enum.Enum):
    NONE, INPUT, OUTPUT = range(3)


class Runtime:
    def __init__(self, state: Any, logger: Any) -> None:
        self._state, self._logger = state, logger

    def deserialize_cuda_engine(self, plan: bytes) -> Any:
        why = self._why_not(bytes(plan))
        if why is not None:
            self._logger.log(Severity.ERROR, f"1: [runtime] Error Code 1: Serialization ({why})")
            self._logger.log(Severity.ERROR, "4: [runtime] Engine deserialization failed.")
            return None
        body = bytes(plan)[36:]
        size = int.from_bytes(body[:4], "little")
        header, content = json.loads(body[4 : 4 + size]), body[4 + size :]
        engine = Engine(self._state, self._logger, header, content)
        names = [name for name in dir(engine) if not name.startswith("_")]
        if self._state.release < (8, 5):
            return _Only(engine, [name for name in names if "tensor" not in name])
        if self._state.release >= (10, 0):
            return _Only(
                engine, [name for name in names if "bind" not in name and name not in _OLD]
            )
        return engine

    def _why_not(self, plan: bytes) -> str | None:
        if plan[:4] != MAGIC:
            return "Magic tag does not match"
        if hashlib.sha256(plan[36:]).digest() != plan[4:36]:
            return "the plan is truncated or damaged"
        size = int.from_bytes(plan[36:40], "little")
        header = json.loads(plan[40 : 40 + size])
        if header["version"] != self._state.version:
            return (
                "The engine plan file is not compatible with this version of TensorRT, expecting "
                f"library version {self._state.version} got {header['version']}"
            )
        if header["capability"] != list(self._state.gpu.capability):
            return "The engine plan file is generated on an incompatible device"
        return None


_OLD = ("get_profile_shape", "get_location")


class _Only:
    """An object that shows only some of another's names."""

    def __init__(self, inner: Any, names: list[str]) -> None:
        self._inner, self._names = inner, names

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(name)
        return getattr(self._inner, name)


class Engine:
    def __init__(self, state: Any, logger: Any, header: Any, content: bytes) -> None:
        self._state, self._logger, self._header = state, logger, header
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            content, settings, providers=["CPUExecutionProvider"]
        )
        graph = onnx.load_from_string(content).graph
        self._operators = [node.op_type for node in graph.node]
        self._values = [*graph.input, *graph.output]
        self._inputs = len(graph.input)
        self.num_bindings = self.num_io_tensors = len(self._values)
        self.num_optimization_profiles = 1

    def create_execution_context(self) -> Any:
        context = Context(self)
        named = ("set_input_shape", "get_tensor_shape", "set_tensor_address", "execute_async_v3")
        bound = ("set_binding_shape", "get_binding_shape", "execute_async_v2")
        shown = (named if self._state.release >= (8, 5) else ()) + (
            bound if self._state.release < (10, 0) else ()
        )
        return _Only(context, list(shown))

    def create_engine_inspector(self) -> Any:
        return SimpleNamespace(get_engine_information=self._information)

    def _information(self, form: Any) -> str:
        """One layer an operator, in the words of the version; the last stays in fp32."""
        assert form.name == "JSON"
        if not self._header["detailed"]:
            return json.dumps({"Layers": self._operators, "Bindings": []})
        old = self._state.release < (10, 0)
        full, half = (
            ("Row major linear FP32", "Row major linear FP16 format") if old else ("Float", "Half")
        )
        types = [half if "FP16" in self._header["flags"] else full] * (len(self._operators) - 1)
        layers = [
            {"Name": name, "LayerType": name, "Outputs": [{"Name": "o", "Format/Datatype": kind}]}
            for name, kind in zip(self._operators, [*types, full], strict=True)
        ]
        return json.dumps({"Layers": layers, "Bindings": []})

    def get_binding_name(self, index: int) -> str:
        return str(self._values[index].name)

    def get_binding_format(self, index: int) -> Any:
        return TensorFormat.LINEAR

    def get_location(self, index: int) -> Any:
        return TensorLocation.DEVICE

    def binding_is_input(self, index: int) -> bool:
        return index < self._inputs

    def get_binding_shape(self, index: int) -> Dims:
        return shape_of(self._values[index])

    def get_binding_dtype(self, index: int) -> DataType:
        name = ONNX_TYPES[self._values[index].type.tensor_type.elem_type]
        return DataType["INT32" if name == "INT64" and self._state.release < (10, 0) else name]

    def get_profile_shape(self, profile: int, index: int) -> Any:
        assert profile == 0
        return [Dims(shape) for shape in self._header["shapes"][self.get_binding_name(index)]]

    def get_tensor_name(self, index: int) -> str:
        return self.get_binding_name(index)

    def get_tensor_format(self, name: str) -> Any:
        return self.get_binding_format(self._index(name))

    def get_tensor_location(self, name: str) -> Any:
        return self.get_location(self._index(name))

    def get_tensor_mode(self, name: str) -> Any:
        return TensorIOMode.INPUT if self._index(name) < self._inputs else TensorIOMode.OUTPUT

    def get_tensor_shape(self, name: str) -> Dims:
        return self.get_binding_shape(self._index(name))

    def get_tensor_dtype(self, name: str) -> DataType:
        return self.get_binding_dtype(self._index(name))

    def get_tensor_profile_shape(self, name: str, profile: int) -> Any:
        return self.get_profile_shape(profile, self._index(name))

    def _index(self, name: str) -> int:
        return [value.name for value in self._values].index(name)

    def _run(self, tensors: list[Any]) -> list[Any]:
        """Run the model on a tensor an input as the builder's flags have it."""
        flags, step = self._header["flags"], self._header["step"]
        fed = {}
        for given, tensor in zip(self._session.get_inputs(), tensors, strict=True):
            fed[given.name] = tensor
            if tensor.dtype == np.int32 and given.type == "tensor(int64)":
                fed[given.name] = tensor.astype(np.int64)
            if step is not None:
                rounded = np.round(tensor / step).clip(-127, 127) * step
                fed[given.name] = rounded.astype(np.float32)
            elif "TF32" in flags and tensor.dtype == np.float32:
                fed[given.name] = (tensor.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        answers = self._session.run(None, fed)
        if "FP16" in flags:
            answers = [
                one.astype(np.float16).astype(one.dtype) if one.dtype.kind == "f" else one
                for one in answers
            ]
        return list(answers)


class Context:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._addresses: dict[str, int] = {}
        shapes = map(engine.get_binding_shape, range(engine._inputs))
        self._shapes: list[Any] = [None if -1 in shape else tuple(shape) for shape in shapes]

    def set_binding_shape(self, index: int, shape: Any) -> bool:
        declared = self._engine.get_binding_shape(index)
        least, _, most = (
            self._engine.get_profile_shape(0, index) if -1 in declared else (declared,) * 3
        )
        if len(shape) != len(least) or not all(
            a <= n <= b for a, n, b in zip(least, shape, most, strict=True)
        ):
            self._engine._logger.log(Severity.ERROR, "3: shape out of the profile's range")
            return False
        self._shapes[index] = tuple(shape)
        return True

    def get_binding_shape(self, index: int) -> Dims:
        if index < self._engine._inputs:
            return Dims(self._shapes[index] or self._engine.get_binding_shape(index))
        shape = self._engine.get_binding_shape(index)
        if -1 not in shape or None in self._shapes:
            return shape
        if any(one.dim_param == BY_VALUES for one in _axes(self._engine._values[index])):
            return shape
        zeros = [np.zeros(one, self._numpy(place)) for place, one in enumerate(self._shapes)]
        return Dims(self._engine._run(zeros)[index - self._engine._inputs].shape)

    def set_input_shape(self, name: str, shape: Any) -> bool:
        return self.set_binding_shape(self._engine._index(name), shape)

    def get_tensor_shape(self, name: str) -> Dims:
        return self.get_binding_shape(self._engine._index(name))

    def set_tensor_address(self, name: str, address: int) -> bool:
        if name not in [value.name for value in self._engine._values]:
            return False
        self._addresses[name] = address
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        names = [value.name for value in self._engine._values]
        if any(name not in self._addresses for name in names):
            self._engine._logger.log(Severity.ERROR, "3: an address of a tensor is not set")
            return False
        return self._execute([self._addresses[name] for name in names], stream_handle)

    def execute_async_v2(self, bindings: list[int], stream_handle: int) -> bool:
        return self._execute(bindings, stream_handle)

    def _execute(self, addresses: list[int], stream: int) -> bool:
        gpu = self._engine._state.gpu
        if None in self._shapes or len(addresses) != self._engine.num_bindings:
            return False
        sizes = [
            int(np.prod(self.get_binding_shape(index))) * np.dtype(self._numpy(index)).itemsize
            for index in range(len(addresses))
        ]
        if not all(gpu.has(address, size) for address, size in zip(addresses, sizes, strict=True)):
            self._engine._logger.log(Severity.ERROR, "1: Cuda Runtime (invalid argument)")
            return False
        shapes = list(self._shapes)

        def work() -> int:
            tensors = [
                np.frombuffer(bytes(gpu.memory[address][:size]), self._numpy(place)).reshape(shape)
                for place, (shape, address, size) in enumerate(
                    zip(shapes, addresses[: len(shapes)], sizes[: len(shapes)], strict=True)
                )
            ]
            for index, answer in enumerate(self._engine._run(tensors), len(shapes)):
                kept = answer.astype(self._numpy(index)).tobytes()
                gpu.memory[addresses[index]][: len(kept)] = kept
            return OK

        return gpu.put(stream, work)

    def _numpy(self, index: int) -> str:
        return _NUMPY[self._engine.get_binding_dtype(index).name]


def _axes(value: Any) -> Any:
    return value.type.tensor_type.shape.dim


def shape_of(value: Any) -> Dims:
    return Dims(one.dim_value if one.HasField("dim_value") else -1 for one in _axes(value))
