"""ONNX models and built engines through NVIDIA's TensorRT, 8.x to 11.x.

Engines that were built on this device are cached under the digest of what they were built from.
"""

import hashlib
import json
import os
import time
import uuid
from contextlib import suppress
from typing import Any, Callable, ClassVar, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.cache import file_sha256, verified
from edgeflare_agent.errors import ModelError, RuntimeMissingError
from edgeflare_agent.identity import TENSORRT_PACKAGES, package_version
from edgeflare_agent.install_hints import how_to_install_tensorrt, is_installed
from edgeflare_agent.runtimes.base import THREADS, Option, Runtime, import_library
from edgeflare_agent.runtimes.cuda import CudaError, DeviceBuffer, open_cuda
from edgeflare_agent.runtimes.tensorrt_build import build_engine, read_metadata
from edgeflare_agent.runtimes.tensorrt_tensors import (
    Shape,
    TensorRTError,
    layers_by_type,
    log_of,
    tensors_of,
)

FOLDER = "engines"
_RECIPE = 1
"""Raised when the same options come to build another engine."""


class Built(NamedTuple):
    """A serialised engine, its SHA-256 in hex, and how long building it took, in seconds."""

    plan: bytes
    sha256: str
    build_s: float


class EngineCache:
    """The folder `root`/engines: each ``<key>.engine`` is described by a ``<key>.json``.

    The key is the digest of `made_from`, which holds, as JSON, all that an engine depends on.
    """

    def __init__(self, root: str) -> None:
        self._folder = os.path.join(root, FOLDER)

    def find(self, made_from: Mapping[str, Any]) -> Optional[Built]:
        """Return the whole engine that was made from exactly this, or None."""
        path = self._path(made_from)
        try:
            with open(path + ".json", encoding="utf-8") as file:
                about = json.load(file)
            with open(path + ".engine", "rb") as file:
                plan = file.read()
            known, build_s = str(about["engine_sha256"]), float(about["build_s"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if sha256_of(plan) != known:
            return None
        for ending in (".engine", ".json"):
            with suppress(OSError):  # the host may tidy up meanwhile
                os.utime(path + ending, None)  # recently used files are not removed
        return Built(plan, known, build_s)

    def build(self, made_from: Mapping[str, Any], build: Callable[[], bytes]) -> Built:
        """Build an engine and cache it; without disk space it is returned uncached."""
        begin = time.monotonic()
        plan = build()
        built = Built(plan, sha256_of(plan), round(time.monotonic() - begin, 2))
        about = {**made_from, "engine_sha256": built.sha256, "build_s": built.build_s}
        path = self._path(made_from)
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            _write(path + ".engine", plan)
            _write(path + ".json", json.dumps(about, indent=1, sort_keys=True).encode())
        except OSError:
            self.forget(made_from)
        return built

    def forget(self, made_from: Mapping[str, Any]) -> None:
        """Remove an engine. Safe to repeat."""
        for ending in (".json", ".engine"):
            with suppress(OSError):
                os.remove(self._path(made_from) + ending)

    def _path(self, made_from: Mapping[str, Any]) -> str:
        text = json.dumps({"recipe": _RECIPE, **made_from}, sort_keys=True)
        return os.path.join(self._folder, sha256_of(text.encode()))


def sha256_of(content: bytes) -> str:
    """Return a content's SHA-256, in hex."""
    return hashlib.sha256(content).hexdigest()


def _write(path: str, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = "{}-{}.part".format(path, uuid.uuid4().hex)
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.remove(temporary)
        raise


_ENGINE_ENDINGS = (".engine", ".plan")
_PRECISIONS = ("fp32", "fp16", "int8")
_NUMERIC = ("precision", "tf32", "workspace_mb", "input_shape")
"""The options that make another engine."""


def _is_shape(value: Any) -> bool:
    return value is None or (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(type(n) is int and n >= 1 for n in value)
    )


class TensorRTRuntime(Runtime):
    """Runs ``.onnx`` files, from which it builds and keeps engines, ``.engine`` and ``.plan``.

    `precision`: "fp32", "fp16" or "int8"; a model with Q/DQ nodes computes those in int8 under
    each. `tf32`: whether fp32 may be rounded to TF32. `workspace_mb`: memory that building and
    running may use, in MiB; None: TensorRT's own limit. `calibration`: name, in `root`/models, of a
    ``.npy`` with prepared input tensors [N, ...]. `input_shape`: sizes of the input's axes where
    the file leaves others than the first open, for a model with one input. All of these are for ``.onnx`` files. `threads`
    changes nothing.
    """

    name = "tensorrt"
    takes_several = True
    known_options: ClassVar[Mapping[str, Option]] = {
        "threads": THREADS,
        "precision": Option("fp32", ", ".join(_PRECISIONS), lambda value: value in _PRECISIONS),
        "tf32": Option(False, "true or false", lambda value: isinstance(value, bool)),
        "workspace_mb": Option(
            None,
            "a whole number from 1",
            lambda value: value is None or (type(value) is int and value >= 1),
        ),
        "calibration": Option(
            None,
            "the name of a .npy file",
            lambda value: value is None or (isinstance(value, str) and value.endswith(".npy")),
        ),
        "input_shape": Option(None, "a list of whole numbers from 1", _is_shape),
    }
    failures = (TensorRTError, CudaError, RuntimeError, TypeError, ValueError)

    def _prepare(self) -> None:
        if not is_installed("tensorrt"):
            raise RuntimeMissingError(
                "no TensorRT is installed for this Python: {}".format(how_to_install_tensorrt())
            )
        self._library = import_library("tensorrt")
        try:
            self._cuda = open_cuda()
        except CudaError as error:
            raise RuntimeMissingError(
                "TensorRT is installed, but the GPU can't be used ({}): check NVIDIA's driver and "
                "CUDA runtime, and that this user may use the GPU".format(error)
            ) from error

    def _load(self) -> None:
        self._log = log_of(self._library)
        self._library.init_libnvinfer_plugins(self._log, "")
        self._gpu, self._capability = self._cuda.device_name, self._cuda.compute_capability
        self._library_runtime = self._library.Runtime(self._log)
        self._about: Dict[str, Any] = {}
        if self.path.lower().endswith(_ENGINE_ENDINGS):
            self._engine = self._read_engine()
        else:
            self._engine = self._built_engine()
            self.metadata = read_metadata(self.path)
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise TensorRTError(
                self._log.reason("no execution context could be made: is the GPU's memory full?")
            )
        self._tensors = tensors_of(self._library, self._engine, self._context)
        self.inputs, self.outputs = self._tensors.inputs, self._tensors.outputs
        self._layers = layers_by_type(self._library, self._engine)
        self._stream = self._cuda.new_stream()
        self._given = [DeviceBuffer(self._cuda) for _ in self.inputs]
        self._results = [DeviceBuffer(self._cuda) for _ in self.outputs]
        self._shapes: List[Shape] = []
        self._result_shapes: List[Shape] = []

    def _in_effect(self) -> Dict[str, Any]:
        package, version = package_version(*TENSORRT_PACKAGES)
        return {
            "package": package,
            "version": version if version != "unknown" else self._library.__version__,
            "cuda": self._cuda.version,
            "cuda_driver": self._cuda.driver_version,
            "gpu": self._gpu,
            "compute_capability": self._capability,
            **({"layers": self._layers} if self._layers else {}),
            **self._about,
        }

    def _infer(self, tensor: Array) -> List[Array]:
        return self._infer_several([tensor])

    def _infer_several(self, tensors: List[Array]) -> List[Array]:
        self._log.clear()
        shapes = [tensor.shape for tensor in tensors]
        if shapes != self._shapes:
            self._shapes = []  # should it fail
            self._result_shapes = self._tensors.resize(shapes)
            self._shapes = shapes
        answers = [
            np.empty(shape, info.dtype) for shape, info in zip(self._result_shapes, self.outputs)
        ]
        given = [buffer.holding(tensor.nbytes) for buffer, tensor in zip(self._given, tensors)]
        results = [buffer.holding(answer.nbytes) for buffer, answer in zip(self._results, answers)]
        for address, tensor in zip(given, tensors):
            self._cuda.upload(address, tensor, self._stream)
        if not self._tensors.execute(given, results, self._stream):
            raise TensorRTError(self._log.reason("the inference could not be started"))
        for answer, result in zip(answers, results):
            self._cuda.download(answer, result, self._stream)
        self._cuda.synchronize(self._stream)
        return answers

    def _free(self) -> None:
        del self._tensors, self._context, self._engine, self._library_runtime
        for buffer in (*self._given, *self._results):
            buffer.free()
        self._cuda.destroy_stream(self._stream)

    def _read_engine(self) -> Any:
        """Return the engine of a file that holds one."""
        with open(self.path, "rb") as file:
            plan = file.read()
        engine = self._deserialized(plan)
        if engine is None:
            raise ModelError(
                "TensorRT can't use the engine {}: {}; an engine runs under the TensorRT version "
                "and on the kind of GPU that it was built with: build it anew with TensorRT {} on "
                "this {}, or give the .onnx file and it is built here".format(
                    self.path,
                    self._log.reason("it gave no reason").rstrip("."),
                    self._library.__version__,
                    self._gpu,
                )
            )
        self._about = {"precision": None, "engine_sha256": sha256_of(plan)}
        return engine

    def _built_engine(self) -> Any:
        """Return the engine of an ONNX file: a cached one that still loads, or a new one."""
        calibration, made_from = self._ingredients()
        cache = EngineCache(self.root)
        built = cache.find(made_from)
        engine = None if built is None else self._deserialized(built.plan)
        if built is None or engine is None:
            built = cache.build(
                made_from,
                lambda: build_engine(
                    self._library, self._log, self._cuda, self.path, self.options, calibration
                ),
            )
            engine = self._deserialized(built.plan)
        if engine is None:
            cache.forget(made_from)
            raise TensorRTError(
                "the engine that it built is of no use: {}".format(
                    self._log.reason("no reason given")
                )
            )
        self._about = {
            "precision": self.options["precision"],
            "tf32": self.options["tf32"],
            "calibration_sha256": made_from["calibration_sha256"],
            "engine_sha256": built.sha256,
            "build_s": built.build_s,
        }
        return engine

    def _ingredients(self) -> Tuple[Optional[str], Dict[str, Any]]:
        """Return the calibration file's path, and all that the engine depends on."""
        name, calibration = self.options["calibration"], None
        if name is not None and self.options["precision"] == "int8":
            calibration = verified(self.root, name, "calibration")
        made_from = {
            "model_sha256": file_sha256(self.path),
            "options": {option: self.options[option] for option in _NUMERIC},
            "calibration_sha256": calibration
            and os.path.splitext(os.path.basename(calibration))[0],
            "tensorrt": self._library.__version__,
            "gpu": self._gpu,
            "compute_capability": self._capability,
        }
        return calibration, made_from

    def _deserialized(self, plan: bytes) -> Any:
        self._log.clear()
        return self._library_runtime.deserialize_cuda_engine(plan)
