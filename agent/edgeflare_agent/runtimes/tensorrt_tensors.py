"""An engine's inputs and outputs, and TensorRT's log.

Inputs and outputs are known by name since TensorRT 8.5 and by the number of a binding before.

TensorRT reports errors to a logger and returns nothing.
"""

import json
import re
from collections import Counter
from functools import lru_cache
from typing import Any, Dict, List, Optional, Sequence, Tuple

from edgeflare_agent.errors import ModelError
from edgeflare_agent.image_spec import TensorInfo

_KEPT = 50
_TYPES = (
    ("int4", "int4"),
    ("int8", "int8"),
    ("fp8", "fp8"),
    ("bf16|bfloat16", "bf16"),
    ("fp16|half", "fp16"),
    ("fp32|float", "fp32"),
)
"""What the inspector calls a type, in words that differ by version, and our name."""


class TensorRTError(Exception):
    """A TensorRT call failed; the text is TensorRT's own where it logged any."""


@lru_cache(maxsize=None)
def log_of(library: Any) -> Any:
    """Return the one logger for a TensorRT library; TensorRT keeps the first that it is given.

    `clear` forgets, and `reason(otherwise)` returns, the first error since then.
    """

    class Log(library.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            library.ILogger.__init__(self)  # TensorRT crashes without it
            self._errors: List[str] = []

        def log(self, severity: Any, text: str) -> None:
            if severity.name in ("ERROR", "INTERNAL_ERROR") and len(self._errors) < _KEPT:
                self._errors.append(" ".join(str(text).split()))

        def clear(self) -> None:
            self._errors = []

        def reason(self, otherwise: str) -> str:
            return self._errors[0] if self._errors else otherwise

    return Log()


_DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
}
"""TensorRT's name -> numpy's (its own `nptype` fails in 8.x under numpy 1.24)."""

Shape = Tuple[int, ...]


class NamedTensors:
    """Inputs and outputs of an execution context by name: TensorRT 8.5 and newer."""

    def __init__(self, library: Any, engine: Any, context: Any) -> None:
        """Describe them in `inputs` and `outputs`. Raises ModelError for what can't be used."""
        self._context = context
        self.inputs: List[TensorInfo] = []
        self.outputs: List[TensorInfo] = []
        for index in range(engine.num_io_tensors):
            name = engine.get_tensor_name(index)
            _check_linear(library, name, engine.get_tensor_format(name))
            if engine.get_tensor_location(name) != library.TensorLocation.DEVICE:
                raise _on_host(name)
            is_input = engine.get_tensor_mode(name) == library.TensorIOMode.INPUT
            shape = tuple(engine.get_tensor_shape(name))
            limits = engine.get_tensor_profile_shape(name, 0) if is_input and -1 in shape else None
            info = _described(name, shape, engine.get_tensor_dtype(name), limits)
            (self.inputs if is_input else self.outputs).append(info)

    def resize(self, shapes: Sequence[Shape]) -> List[Shape]:
        """Set the inputs' shapes; return the outputs' shapes. Raises TensorRTError."""
        for info, shape in zip(self.inputs, shapes):
            if not self._context.set_input_shape(info.name, shape):
                raise _unfit(shape)
        return [
            _closed(info.name, tuple(self._context.get_tensor_shape(info.name)))
            for info in self.outputs
        ]

    def execute(self, given: Sequence[int], results: Sequence[int], stream: int) -> bool:
        """Put an inference on the stream: addresses of each input and of each output."""
        for info, address in zip([*self.inputs, *self.outputs], [*given, *results]):
            self._context.set_tensor_address(info.name, address)
        return bool(self._context.execute_async_v3(stream))


class BoundTensors:
    """Inputs and outputs of an execution context by binding: TensorRT before 8.5."""

    def __init__(self, library: Any, engine: Any, context: Any) -> None:
        """Describe them in `inputs` and `outputs`. Raises ModelError for what can't be used."""
        self._context = context
        self._inputs: List[int] = []
        self._results: List[int] = []
        self.inputs: List[TensorInfo] = []
        self.outputs: List[TensorInfo] = []
        for index in range(engine.num_bindings // engine.num_optimization_profiles):
            name = engine.get_binding_name(index)
            _check_linear(library, name, engine.get_binding_format(index))
            if engine.get_location(index) != library.TensorLocation.DEVICE:
                raise _on_host(name)
            is_input = engine.binding_is_input(index)
            shape = tuple(engine.get_binding_shape(index))
            limits = engine.get_profile_shape(0, index) if is_input and -1 in shape else None
            info = _described(name, shape, engine.get_binding_dtype(index), limits)
            if is_input:
                self._inputs.append(index)
                self.inputs.append(info)
            else:
                self._results.append(index)
                self.outputs.append(info)

    def resize(self, shapes: Sequence[Shape]) -> List[Shape]:
        """Set the inputs' shapes; return the outputs' shapes. Raises TensorRTError."""
        for index, shape in zip(self._inputs, shapes):
            if not self._context.set_binding_shape(index, shape):
                raise _unfit(shape)
        return [
            _closed(info.name, tuple(self._context.get_binding_shape(index)))
            for info, index in zip(self.outputs, self._results)
        ]

    def execute(self, given: Sequence[int], results: Sequence[int], stream: int) -> bool:
        """Put an inference on the stream: addresses of each input and of each output."""
        bindings = [0] * (len(given) + len(results))
        for index, address in zip([*self._inputs, *self._results], [*given, *results]):
            bindings[index] = address
        return bool(self._context.execute_async_v2(bindings, stream))


def tensors_of(library: Any, engine: Any, context: Any) -> Any:
    """Return the inputs and outputs as this version of TensorRT has them."""
    kind = NamedTensors if hasattr(engine, "num_io_tensors") else BoundTensors
    return kind(library, engine, context)


def dtype_name(name: str, dtype: Any) -> str:
    """Return numpy's name of a tensor's type. Raises ModelError where it has none."""
    if dtype.name not in _DTYPES:
        raise ModelError(
            "the tensor {!r} is of TensorRT's type {}, which numpy lacks".format(name, dtype.name)
        )
    return _DTYPES[dtype.name]


def _described(name: str, shape: Shape, dtype: Any, limits: Optional[Any]) -> TensorInfo:
    """Describe a tensor; an open axis that the engine's first profile holds fixed is that size."""
    axes: List[Optional[int]] = [None if n < 0 else n for n in shape]
    if limits is not None:
        least, _, most = limits
        axes = [low if low == high else None for low, high in zip(least, most)]
    return TensorInfo(name, tuple(axes), dtype_name(name, dtype))


def _check_linear(library: Any, name: str, layout: Any) -> None:
    if layout != library.TensorFormat.LINEAR:
        raise ModelError(
            "the tensor {!r} is laid out as {}; EdgeFlare takes linear inputs and outputs: build "
            "the engine without --inputIOFormats and --outputIOFormats".format(name, layout.name)
        )


def _closed(name: str, shape: Shape) -> Shape:
    if any(n < 0 for n in shape):
        raise TensorRTError(
            "the shape of the output {!r} depends on the input's values, which EdgeFlare can't use "
            "with TensorRT".format(name)
        )
    return shape


def _unfit(shape: Shape) -> TensorRTError:
    return TensorRTError(
        "the engine was not built for the input shape {}".format(" x ".join(map(str, shape)))
    )


def _on_host(name: str) -> ModelError:
    return ModelError(
        "the tensor {!r} is a shape in the host's memory; EdgeFlare drives models with tensors of "
        "data".format(name)
    )


def layers_by_type(library: Any, engine: Any) -> Optional[Dict[str, int]]:
    """Return {type: number of an engine's layers that write it}; None where the engine tells none.

    It does where it was built with detailed profiling, as those that the agent builds are.
    """
    if not hasattr(engine, "create_engine_inspector"):  # before 8.2
        return None
    inspector = engine.create_engine_inspector()
    text = inspector.get_engine_information(library.LayerInformationFormat.JSON)
    try:
        layers = json.loads(text)["Layers"]
        written = [str(one["Outputs"][0]["Format/Datatype"]) for one in layers if one["Outputs"]]
    except (ValueError, KeyError, TypeError, IndexError):  # names alone
        return None
    return dict(sorted(Counter(map(_type_in, written)).items())) or None


def _type_in(words: str) -> str:
    """Return the type in words such as "Channel major FP16 format where channel % 8 == 0"."""
    found = (name for known, name in _TYPES if re.search(known, words, re.IGNORECASE))
    return next(found, "other")
