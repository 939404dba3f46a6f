"""What may run a TFLite model's operators besides the CPU's kernels, and which it runs."""

import ctypes
import math
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Set, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, RequestError, RuntimeMissingError
from edgeflare_agent.runtimes.base import import_library, one_line

ACCELERATORS = {"gpu": "GPU", "npu": "NPU"}
"""What LiteRT's CompiledModel runs a model on: our name -> its name."""
_CREATE = "tflite_plugin_create_delegate"
DELEGATED = "DELEGATE"
"""Name of the operator that stands for a part of the graph which a delegate runs."""


class Share(NamedTuple):
    """What delegates run of a graph: of `operators` (names) all but `left`, in `parts` parts."""

    operators: List[str]
    left: List[str]
    parts: int

    def words(self, delegate: str) -> str:
        """Return it like "XNNPACK, 5 of 8 operators in 3 parts"."""
        count = len(self.operators)
        words = "{}, {} of {} operators".format(delegate, count - len(self.left), count)
        return words if self.parts == 1 else "{} in {} parts".format(words, self.parts)


def share_of_delegates(operators: List[Dict[str, Any]]) -> Share:
    """Return what is delegated of a graph.

    `operators` are all of its nodes: those of the file, then one for each part that the delegate
    runs in place of some of them. Those are found from the part's outputs back to its inputs.
    """
    parts = [one for one in operators if one["op_name"] == DELEGATED]
    own = [one for one in operators if one["op_name"] != DELEGATED]
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
    left = [str(one["op_name"]) for one in own if one["index"] not in replaced]
    return Share([str(one["op_name"]) for one in own], left, len(parts))


def load_delegate(library: Any, path: str, options: Mapping[str, Any]) -> Any:
    """Load a delegate's shared library and create the delegate. Raises RuntimeMissingError.

    `library` is the module of the interpreter, `path` a file or a name that the system finds.
    """
    path = os.path.expanduser(path)
    try:
        # Beforehand: LiteRT's own attempt ends in a traceback about its half-made object.
        is_delegate = hasattr(ctypes.PyDLL(path), _CREATE)
    except OSError as error:
        raise RuntimeMissingError(
            "the delegate {!r} can't be loaded ({}): install it on this device, or state the full "
            "path of its library".format(path, one_line(error))
        ) from error
    if not is_delegate:
        raise RuntimeMissingError(
            "{!r} is no delegate of TFLite: it has no function {}".format(path, _CREATE)
        )
    try:
        return library.load_delegate(path, dict(options))
    except ValueError as error:
        said = " ".join(str(error).split("\n")[1:]).strip() or "it gives no reason"
        raise RuntimeMissingError(
            "the delegate {!r} doesn't start: {}; check that its hardware is connected and not in "
            "use, and its delegate_options".format(path, said)
        ) from error


class CompiledModel:
    """A model that LiteRT's CompiledModel runs on a GPU or NPU.

    `delegate_options` are LiteRT's by group and name, such as ``gpu.enforce_f32`` or
    ``intel_openvino.graph_backend``; a value of an enumeration is given by its name. LiteRT tells
    whether the whole model is accelerated, not which operators are.
    """

    def __init__(self, path: str, options: Mapping[str, Any], inputs: Any, outputs: Any) -> None:
        """Compile the file; `inputs` and `outputs` are the interpreter's details of them.

        Raises RuntimeMissingError where LiteRT has no CompiledModel or the model isn't run there as
        a whole and `allow_fallback` isn't set; RequestError for an unknown option.
        """
        where = ACCELERATORS[options["delegate"]]
        try:
            self._library = import_library("ai_edge_litert.compiled_model")
        except RuntimeMissingError as error:
            raise RuntimeMissingError(
                "the delegate {!r} needs ai-edge-litert 2 or newer: {}".format(
                    options["delegate"], error
                )
            ) from error
        # Beside the CPU, LiteRT calls a model accelerated that the CPU alone runs: alone comes first.
        try:
            self._model = self._compiled(path, where, options)
            self.words = "{}, the whole model".format(where)
        except RuntimeError as error:
            if not options["allow_fallback"]:
                raise RuntimeMissingError(
                    "LiteRT can't run all of {} on the {} ({}): check that the device has one and "
                    "its driver, take a model with operators that it runs, or accept the CPU with "
                    "the runtime option allow_fallback = true".format(path, where, _reason(error))
                ) from error
            self._model = self._compiled(path, where, options, beside_cpu=True)
            self.words = "{} and CPU, LiteRT doesn't tell which runs an operator".format(where)
        self._signature = next(iter(self._model.get_signature_list()))
        details = self._model.get_output_tensor_details(self._signature)
        names = {int(one["index"]): name for name, one in details.items()}
        if any(one["index"] not in names for one in outputs):
            raise ModelError(
                "the signature {!r} of {} lacks some of the model's outputs, which LiteRT's "
                "CompiledModel can't return then: convert it with one signature of them all".format(
                    self._signature, path
                )
            )
        self._outputs = [names[one["index"]] for one in outputs]
        self._shapes: List[Tuple[int, ...]] = []
        given = self._model.get_input_tensor_details(self._signature)
        by_index = {int(one["index"]): name for name, one in given.items()}
        self._inputs = [by_index[one["index"]] for one in inputs] if len(given) > 1 else list(given)
        self._make_buffers()

    def _compiled(
        self, path: str, where: str, options: Mapping[str, Any], beside_cpu: bool = False
    ) -> Any:
        """Compile the file for an accelerator, alone or beside the CPU. Raises RuntimeError."""
        kinds = self._library.HardwareAccelerator
        wanted = getattr(kinds, where)
        settings = self._library.Options(
            hardware_accelerators=wanted | kinds.CPU if beside_cpu else wanted,
            cpu_options=self._library.CpuOptions(num_threads=options["threads"]),
        )
        for name, value in options["delegate_options"].items():
            _set_option(settings, name, value)
        model = self._library.CompiledModel.from_file(path, options=settings)
        if not beside_cpu and not model.is_fully_accelerated():
            raise RuntimeError("some of its operators are not accelerated")
        return model

    def run(self, tensors: Sequence[Array]) -> List[Array]:
        """Return the outputs for one tensor an input, both in the interpreter's order."""
        shapes = [tensor.shape for tensor in tensors]
        if shapes != self._shapes:
            self._shapes = []  # should it fail
            for name, shape in zip(self._inputs, shapes):
                self._model.resize_input_tensor_by_name(
                    self._signature, name, list(shape), strict=False
                )
            self._make_buffers()
        for name, tensor in zip(self._inputs, tensors):
            self._buffers[name].write(tensor)
        self._model.run_by_name(self._signature, self._buffers, self._results)
        return [
            self._results[name].read(math.prod(shape), dtype).reshape(shape)
            for name, (shape, dtype) in self._layout.items()
        ]

    def _make_buffers(self) -> None:
        """Make the buffers of all inputs and outputs, of the sizes in effect."""
        given = self._model.get_input_tensor_details(self._signature)
        details = self._model.get_output_tensor_details(self._signature)
        self._shapes = [tuple(int(n) for n in given[name]["shape"]) for name in self._inputs]
        self._layout = {
            name: (tuple(int(n) for n in details[name]["shape"]), np.dtype(details[name]["dtype"]))
            for name in self._outputs
        }
        self._buffers = {
            name: self._model.create_input_buffer_by_name(self._signature, name)
            for name in self._inputs
        }
        self._results = {
            name: self._model.create_output_buffer_by_name(self._signature, name)
            for name in details
        }


def _reason(error: RuntimeError) -> str:
    """Return the last line of LiteRT's error, which may be a place in its source alone."""
    last = str(error).split("\u2514 ")[-1]
    return "LiteRT gives no reason" if last.startswith("ERROR: [") else last


def _set_option(settings: Any, name: str, value: Any) -> None:
    """Set LiteRT's option of this group and name, like ``gpu.enforce_f32``. Raises RequestError."""
    group, _, field = name.partition(".")
    options = getattr(settings, group + "_options", None)
    if options is None or not field or field.startswith("_") or not hasattr(options, field):
        groups = ("gpu", "qualcomm", "intel_openvino")
        there = [
            "{}.{}".format(one, known)
            for one in groups
            for known in vars(getattr(settings, one + "_options", object))
            if not known.startswith("_")
        ]
        raise RequestError("LiteRT has no option {!r}; it has {}".format(name, ", ".join(there)))
    kinds = getattr(options, field.upper(), None)
    if kinds is not None:
        if not isinstance(value, str) or value.upper() not in kinds.__members__:
            raise RequestError(
                "option {} must be one of {}, not {!r}".format(
                    name, ", ".join(kinds.__members__), value
                )
            )
        value = kinds[value.upper()]
    setattr(options, field, value)
