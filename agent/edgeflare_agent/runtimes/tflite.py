"""TFLite models through ai-edge-litert, or tflite-runtime where that is what a device has."""

from typing import Any, ClassVar, Dict, List, Mapping, Optional, Set, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, NumpyClashError, RuntimeMissingError
from edgeflare_agent.identity import package_version
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.install_hints import OLD_NUMPY, how_to_install, is_installed, tflite_packages
from edgeflare_agent.runtimes.base import THREADS, Option, Runtime, import_library

_IDENTIFIER = b"TFL3"
_KERNELS = ("default", "reference")
_DELEGATE = "DELEGATE"


class TFLiteRuntime(Runtime):
    """Runs ``.tflite`` files.

    `delegate`: whether XNNPACK, the one delegate that these packages bring, may take over; what is
    in effect tells how many operators it runs, in how many parts of the graph. `kernels`: "default"
    (optimised) or "reference", which exclude any delegate. Variable tensors are reset before every
    inference; a model with resource variables is loaded anew for each.
    """

    name = "tflite"
    known_options: ClassVar[Mapping[str, Option]] = {
        "threads": THREADS,
        "delegate": Option(True, "true or false", lambda value: isinstance(value, bool)),
        "kernels": Option("default", " or ".join(_KERNELS), lambda value: value in _KERNELS),
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
        self._interpreter = self._library.Interpreter(
            model_path=self.path,
            num_threads=self.options["threads"],
            experimental_op_resolver_type=self._resolver(),
        )
        self._interpreter.allocate_tensors()
        self._operators: List[Dict[str, Any]] = self._interpreter._get_ops_details()
        self._keeps_resources = any(one["op_name"] == "VAR_HANDLE" for one in self._operators)
        inputs = self._interpreter.get_input_details()
        outputs = self._interpreter.get_output_details()
        self.inputs = [_described(detail) for detail in inputs]
        self.outputs = [_described(detail) for detail in outputs]
        # Asking for the details again takes as long as a small model's inference.
        self._shape: Tuple[int, ...] = tuple(inputs[0]["shape"]) if inputs else ()
        self._targets = [detail["index"] for detail in inputs]
        self._results = [detail["index"] for detail in outputs]

    def _in_effect(self) -> Dict[str, Any]:
        return {
            "package": self._package,
            "version": package_version(self._package)[1],
            "kernels": self.options["kernels"],
            "delegate": _delegated(self._operators),
        }

    def _infer(self, tensor: Array) -> List[Array]:
        if self._keeps_resources:  # which no call resets: only a new interpreter forgets them
            self._load()
        if tensor.shape != self._shape:
            self._shape = ()  # should it fail
            self._interpreter.resize_tensor_input(self._targets[0], tensor.shape)
            self._interpreter.allocate_tensors()
            self._shape = tensor.shape
        self._interpreter.reset_all_variables()
        self._interpreter.set_tensor(self._targets[0], tensor)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(index) for index in self._results]

    def _free(self) -> None:
        del self._interpreter

    def _resolver(self) -> Any:
        kinds = self._library.OpResolverType
        if self.options["kernels"] == "reference":
            return kinds.BUILTIN_REF
        return kinds.AUTO if self.options["delegate"] else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES


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


def _delegated(operators: List[Dict[str, Any]]) -> Optional[str]:
    """Return, like "XNNPACK, 5 of 8 operators in 3 parts", what is delegated; None for nothing.

    `operators` are all nodes of the graph: those of the file, then one for each part that the
    delegate runs in place of some of them. Those are found from the part's outputs back to its
    inputs.
    """
    parts = [one for one in operators if one["op_name"] == _DELEGATE]
    if not parts:
        return None
    own = [one for one in operators if one["op_name"] != _DELEGATE]
    producer = {int(tensor): one for one in own for tensor in one["outputs"]}
    replaced: Set[int] = set()
    for part in parts:
        inputs = {int(tensor) for tensor in part["inputs"]}
        pending = {int(tensor) for tensor in part["outputs"]}
        while pending:
            tensor = pending.pop()
            found = None if tensor in inputs else producer.get(tensor)
            if found is not None and found["index"] not in replaced:
                replaced.add(found["index"])
                pending.update(int(one) for one in found["inputs"])
    words = "XNNPACK, {} of {} operators".format(len(replaced), len(own))
    return words if len(parts) == 1 else "{} in {} parts".format(words, len(parts))


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
