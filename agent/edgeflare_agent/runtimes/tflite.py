"""TFLite models through ai-edge-litert, or tflite-runtime where that is what a device has."""

import math
import os
import warnings
from collections import Counter
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import (
    InferenceError,
    ModelError,
    NumpyClashError,
    RequestError,
    RuntimeMissingError,
)
from edgeflare_agent.identity import package_version
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.install_hints import OLD_NUMPY, how_to_install, is_installed, tflite_packages
from edgeflare_agent.runtimes.base import (
    THREADS,
    Option,
    Runtime,
    counted_names,
    import_library,
    is_options,
)
from edgeflare_agent.runtimes.tflite_delegates import (
    ACCELERATORS,
    DELEGATED,
    CompiledModel,
    load_delegate,
    share_of_delegates,
)
from edgeflare_agent.wire import DEFAULT_MAX_BODY

TENSORS = "edgeflare:tensors"
"""Name of the output that the option `tensors` adds."""
_IDENTIFIER = b"TFL3"
_KERNELS = ("default", "reference")
_EDGE_TPU = "edgetpu-custom-op"


class TFLiteRuntime(Runtime):
    """Runs ``.tflite`` files.

    `delegate`: whether XNNPACK, which these packages bring, may take over; or the path, on the
    device, of another delegate's library; or "gpu" or "npu", for LiteRT's CompiledModel. What is
    in effect tells how many operators it runs, in how many parts of the graph. `delegate_options`:
    those of the library, or of LiteRT. An operator that a stated delegate can't run is an error
    unless `allow_fallback`; the CPU's own kernels run it then, not XNNPACK. `kernels`: "default"
    (optimised) or "reference", which exclude any delegate. Variable tensors are reset before every
    inference; a model with resource variables is loaded anew for each.

    `tensors`: one more output, `TENSORS`, uint8 [bytes], holds the input and all tensors that
    operators make of it, in the order of their indices in the file, each as it lies in memory. Not
    with a named delegate, which doesn't write the tensors within its parts of the graph. XNNPACK
    runs each operator alone then, or none: what is in effect tells that.
    """

    name = "tflite"
    takes_several = True
    known_options: ClassVar[Mapping[str, Option]] = {
        "threads": THREADS,
        "delegate": Option(
            True,
            "true, false, the path of a delegate's library, gpu or npu",
            lambda value: isinstance(value, bool) or (isinstance(value, str) and value != ""),
        ),
        "delegate_options": Option({}, "an object {option: value}", is_options),
        "allow_fallback": Option(False, "true or false", lambda value: isinstance(value, bool)),
        "kernels": Option("default", " or ".join(_KERNELS), lambda value: value in _KERNELS),
        "tensors": Option(False, "true or false", lambda value: isinstance(value, bool)),
    }
    failures = (ValueError, RuntimeError)

    def _prepare(self) -> None:
        if is_installed("ai_edge_litert"):
            self._package = "ai-edge-litert"
        elif is_installed("tflite_runtime"):
            self._package = "tflite-runtime"
            _refuse_numpy_clash(np.__version__)
        else:
            raise RuntimeMissingError(
                "no runtime for TFLite models is installed: {}".format(
                    how_to_install(*tflite_packages())
                )
            )
        self._library = import_library(self._package.replace("-", "_") + ".interpreter")

    def _load(self) -> None:
        with open(self.path, "rb") as file:
            start = file.read(64)
        if start[4:8] != _IDENTIFIER:
            raise ModelError("{} is not a TFLite model: {}".format(self.path, _what_it_is(start)))
        self._check_options()
        delegate = self.options["delegate"]
        is_library = isinstance(delegate, str) and delegate not in ACCELERATORS
        self._interpreter = self._make_interpreter(
            [load_delegate(self._library, delegate, self.options["delegate_options"])]
            if is_library
            else None
        )
        self._operators: List[Dict[str, Any]] = self._interpreter._get_ops_details()
        names = [one["op_name"] for one in self._operators]
        if _EDGE_TPU in names and not is_library:
            raise ModelError(
                "{} is compiled for the Edge TPU (it contains {}): run it with the runtime option "
                'delegate = "libedgetpu.so.1", on a device that has one, or take the file that it '
                "was compiled from".format(self.path, _EDGE_TPU)
            )
        self._interpreter.allocate_tensors()
        self._operators = self._interpreter._get_ops_details()  # XNNPACK comes only now
        self._keeps_resources = "VAR_HANDLE" in names
        if is_library:
            self._refuse_fallback()
        inputs = self._interpreter.get_input_details()
        outputs = self._interpreter.get_output_details()
        self.inputs = [_described(detail) for detail in inputs]
        self.outputs = [_described(detail) for detail in outputs]
        # Asking for the details again takes as long as a small model's inference.
        self._shapes: List[Tuple[int, ...]] = [tuple(detail["shape"]) for detail in inputs]
        self._targets = [detail["index"] for detail in inputs]
        self._results = [detail["index"] for detail in outputs]
        self._kept: List[int] = []
        if self.options["tensors"]:
            self._announce_tensors()
        self._compiled: Optional[CompiledModel] = None
        if delegate in ACCELERATORS:
            self._compiled = CompiledModel(self.path, self.options, inputs, outputs)

    def _make_interpreter(self, delegates: Optional[List[Any]]) -> Any:
        """Return an interpreter. Raises RequestError where it is to keep tensors and can't."""
        settings = {
            "model_path": self.path,
            "num_threads": self.options["threads"],
            "experimental_op_resolver_type": self._resolver(),
            "experimental_delegates": delegates,
        }
        if not self.options["tensors"]:
            return self._library.Interpreter(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that tensors which are kept need memory
            try:
                return self._library.Interpreter(experimental_preserve_all_tensors=True, **settings)
            except TypeError as error:
                raise RequestError(
                    "the tensors of {} can't be read: this {} can't keep them, a newer ai-edge-litert "
                    "can".format(self.path, self._package)
                ) from error

    def _check_options(self) -> None:
        """Raise RequestError for options that exclude each other."""
        named = isinstance(self.options["delegate"], str)
        if self.options["delegate_options"] and not named:
            raise RequestError("delegate_options need a `delegate` that is named")
        if named and self.options["kernels"] == "reference":
            raise RequestError(
                'kernels = "reference" excludes every delegate, and {!r} is stated: take one of '
                "the two out".format(self.options["delegate"])
            )
        if named and self.options["tensors"]:
            raise RequestError(
                "the tensors of a model can't be read where {!r} runs it, which keeps those within "
                "its part of the graph to itself".format(self.options["delegate"])
            )

    def _announce_tensors(self) -> None:
        """Announce the output of all tensors. Raises RequestError where they don't fit into one."""
        known = set(self._targets)
        for one in self._operators:
            if one["op_name"] != DELEGATED and not known.isdisjoint(map(int, one["inputs"])):
                known.update(int(index) for index in one["outputs"] if index >= 0)
        self._kept = sorted(known)
        details = {int(one["index"]): one for one in self._interpreter.get_tensor_details()}
        size = 0
        for index in self._kept:
            detail = details.get(index)
            if detail is None or np.dtype(detail["dtype"]).kind not in "biufc":
                raise RequestError(
                    "the tensors of {} can't be read: number {} holds no numbers".format(
                        self.path, index
                    )
                )
            size += math.prod(map(int, detail["shape"])) * np.dtype(detail["dtype"]).itemsize
        if size > DEFAULT_MAX_BODY:
            raise RequestError(
                "the tensors of {} can't be read: they have {} bytes, and one answer has {} at "
                "most".format(self.path, size, DEFAULT_MAX_BODY)
            )
        self.outputs.append(TensorInfo(TENSORS, (size,), "uint8", None))

    def _refuse_fallback(self) -> None:
        """Raise RuntimeMissingError unless the stated delegate runs every operator, or needn't."""
        share = share_of_delegates(self._operators)
        if share.left and not self.options["allow_fallback"]:
            raise RuntimeMissingError(
                "the delegate {} can't run {} of the {} operators of {} ({}), and TFLite gives "
                "them to the CPU: take a model with operators that it runs, or accept the CPU "
                "with the runtime option allow_fallback = true".format(
                    self._delegate_name(),
                    len(share.left),
                    len(share.operators),
                    self.path,
                    counted_names(share.left),
                )
            )

    def _in_effect(self) -> Dict[str, Any]:
        share = share_of_delegates(self._operators)
        delegate: Optional[str] = None
        if self._compiled is not None:
            delegate = self._compiled.words
        elif share.parts:
            delegate = share.words(self._delegate_name())
        elif isinstance(self.options["delegate"], str):
            delegate = "{}, no operator".format(self._delegate_name())
        stated = self._compiled is None and isinstance(self.options["delegate"], str)
        given = self.options["delegate_options"]
        return {
            "package": self._package,
            "version": package_version(self._package)[1],
            "kernels": self.options["kernels"],
            "delegate": delegate,
            **({"on_cpu": dict(Counter(share.left))} if stated and share.left else {}),
            **({"delegate_options": given} if given else {}),
        }

    def _delegate_name(self) -> str:
        stated = self.options["delegate"]
        return os.path.basename(stated) if isinstance(stated, str) else "XNNPACK"

    def _infer(self, tensor: Array) -> List[Array]:
        ready = self._compiled is None and not self._keeps_resources
        if not ready or self._shapes != [tensor.shape]:
            return self._infer_several([tensor])
        self._interpreter.reset_all_variables()
        self._interpreter.set_tensor(self._targets[0], tensor)
        return self._answers()

    def _infer_several(self, tensors: List[Array]) -> List[Array]:
        if self._keeps_resources:  # which no call resets: only a new interpreter forgets them
            self._load()
        if self._compiled is not None:
            return self._compiled.run(tensors)
        shapes = [tensor.shape for tensor in tensors]
        if shapes != self._shapes:
            self._shapes = []  # should it fail
            for target, shape in zip(self._targets, shapes):
                self._interpreter.resize_tensor_input(target, shape)
            self._interpreter.allocate_tensors()
            self._shapes = shapes
        self._interpreter.reset_all_variables()
        for target, tensor in zip(self._targets, tensors):
            self._interpreter.set_tensor(target, tensor)
        return self._answers()

    def _answers(self) -> List[Array]:
        self._interpreter.invoke()
        found = [self._interpreter.get_tensor(index) for index in self._results]
        return [*found, self._all_tensors()] if self._kept else found

    def _all_tensors(self) -> Array:
        """Return the bytes of all tensors. Raises InferenceError where they are not as announced."""
        content = b"".join(self._interpreter.get_tensor(one).tobytes() for one in self._kept)
        announced = self.outputs[-1].shape[0]
        if len(content) != announced:
            raise InferenceError(
                "the tensors of {} have {} bytes for this input, not {}: their sizes depend on "
                "it, so they can't be read".format(self.path, len(content), announced)
            )
        return np.frombuffer(content, np.uint8)

    def _free(self) -> None:
        self._compiled = None
        del self._interpreter

    def _resolver(self) -> Any:
        kinds = self._library.OpResolverType
        if self.options["kernels"] == "reference":
            return kinds.BUILTIN_REF
        # Beside another delegate, XNNPACK would take the rest, and which of the two runs an operator
        # could not be told.
        return (
            kinds.AUTO
            if self.options["delegate"] is True
            else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        )


def _refuse_numpy_clash(numpy_version: str) -> None:
    """Raise NumpyClashError where importing tflite_runtime would abort the process."""
    if int(numpy_version.split(".", maxsplit=1)[0]) >= 2:
        packages = tflite_packages()
        raise NumpyClashError(
            "tflite-runtime was built for numpy 1 and numpy {} is installed: {}".format(
                numpy_version,
                how_to_install(*((OLD_NUMPY,) if OLD_NUMPY in packages else packages)),
            )
        )


def _what_it_is(start: bytes) -> str:
    if not start:
        return "the file is empty"
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start):
        return "it is a text file that begins with {!r}".format(start[:24].decode("ascii"))
    return "its first bytes are {!r}, without the identifier TFL3".format(start[:8])


def _described(detail: Dict[str, Any]) -> TensorInfo:
    shape = detail["shape_signature"] if len(detail["shape_signature"]) else detail["shape"]
    parameters = detail["quantization_parameters"]
    scales, zero_points = parameters["scales"], parameters["zero_points"]
    if len(scales) > 1:
        raise ModelError(
            "tensor {!r} is quantised with {} scales along an axis; an input or output needs "
            "one".format(detail["name"], len(scales))
        )
    return TensorInfo(
        name=str(detail["name"]),
        shape=tuple(None if n < 0 else int(n) for n in shape),
        dtype=np.dtype(detail["dtype"]).name,
        quantization=(float(scales[0]), int(zero_points[0])) if len(scales) else None,
    )
