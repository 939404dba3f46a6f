"""Models of the training frameworks, PyTorch and Keras, and of PyTorch's own runtime for devices."""

import itertools
import os
import threading
import warnings
from contextlib import nullcontext
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, RuntimeMissingError
from edgeflare_agent.identity import package_version
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.install_hints import how_to_install, is_installed
from edgeflare_agent.runtimes.base import (
    THREADS,
    Option,
    Runtime,
    import_library,
    names_text,
    one_line,
)

_Shape = Tuple[Optional[int], ...]
_KERAS_BACKENDS = ("tensorflow", "torch", "jax")
_EXPORT_TORCH = (
    "torch.export.save(torch.export.export(model.eval(), (example,)), 'model.pt2')"  # one line
)
_EXPORT_KERAS = "model.save('model.keras')"
_EXPORT_EXECUTORCH = (
    "executorch.exir.to_edge_transform_and_lower(torch.export.export(model.eval(), (example,)))"
    ".to_executorch().save('model.pte')"
)


def _is_shape(value: Any) -> bool:
    """Whether a value is a list of sizes, each a whole number above zero."""
    return isinstance(value, list) and all(type(n) is int and n > 0 for n in value)


_LOADING = threading.Lock()
"""PyTorch reads one exported program at a time: it keeps in a global which."""


class _Framework(Runtime):
    """What the frameworks share: any error of theirs is the model's, and zeros show the outputs.

    A backend opens its file in `_open` and answers in `_answers`.
    """

    failures = (RuntimeError, ValueError, TypeError, KeyError, AssertionError, IndexError)
    package: ClassVar[str] = ""
    export: ClassVar[str] = ""
    """How a file that it loads is written."""

    def _load(self) -> None:
        try:
            info = self._open()
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                "{} can't load {} ({}): write it with {}".format(
                    self.package, self.path, one_line(error), self.export
                )
            ) from error
        self.inputs = [info]
        zeros = np.zeros([1 if n is None else n for n in info.shape], info.dtype)
        is_batch_open = bool(info.shape) and info.shape[0] is None
        self.outputs = [
            TensorInfo(
                name="output_{}".format(number),
                shape=(None, *one.shape[1:])
                if is_batch_open and one.shape[:1] == (1,)
                else one.shape,
                dtype=one.dtype.name,
            )
            for number, one in enumerate(self._answers(zeros))
        ]
        if not self.outputs:
            raise ModelError("{} has no output that is a tensor of numbers".format(self.path))

    def _infer(self, tensor: Array) -> List[Array]:
        return self._answers(tensor)

    def _in_effect(self) -> Dict[str, Any]:
        return {"package": self.package, "version": package_version(self.package)[1]}

    def _require(self, *modules: str) -> None:
        """Raise RuntimeMissingError unless these modules are installed."""
        missing = [one for one in modules if not is_installed(one)]
        if missing:
            raise RuntimeMissingError(
                "{} is needed for {} models and is not installed: {}".format(
                    " and ".join(missing), self.name, how_to_install(*missing)
                )
            )

    def _open(self) -> TensorInfo:
        """Load the file; return what its one input is. May raise anything."""
        raise NotImplementedError

    def _answers(self, tensor: Array) -> List[Array]:
        """Return every output that is a tensor, in the model's order."""
        raise NotImplementedError


class TorchRuntime(_Framework):
    """Runs ``.pt2`` files of torch.export, and TorchScript (``.pt``, ``.ts``), on the CPU.

    `input_shape`: the sizes of a TorchScript model's input, which its file doesn't tell, such as
    [1, 3, 224, 224]; its dtype is float32. `onednn`: whether oneDNN may compute operators; the
    answers' last bits depend on it.
    """

    name = "torch"
    package = "torch"
    export = _EXPORT_TORCH
    known_options: ClassVar[Mapping[str, Option]] = {
        "threads": THREADS,
        "input_shape": Option(None, "a list of sizes", _is_shape),
        "onednn": Option(True, "true or false", lambda value: isinstance(value, bool)),
    }

    def _prepare(self) -> None:
        self._require("torch")
        self._torch = import_library("torch")

    def _open(self) -> TensorInfo:
        torch = self._torch
        torch.set_num_threads(self.options["threads"])
        torch.backends.mkldnn.enabled = self.options["onednn"]
        if self.path.lower().endswith(".pt2"):
            with _LOADING:
                program = torch.export.load(self.path)
            return self._opened(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated; these files are there
            self._model = torch.jit.load(self.path, map_location="cpu").eval()
        if self.options["input_shape"] is None:
            raise ModelError(
                "{} is TorchScript, which doesn't tell the sizes of its input: state them as "
                "`input_shape`, such as [1, 3, 224, 224], in the `options` of the model in "
                "campaign.toml, or write it with {}".format(self.path, self.export)
            )
        return TensorInfo("input", tuple(self.options["input_shape"]), "float32")

    def _opened(self, program: Any) -> TensorInfo:
        """Take a program of torch.export; return what its input is."""
        wanted = program.graph_signature.user_inputs
        given = [
            node
            for node in program.graph.nodes
            if node.op == "placeholder" and node.name in wanted and "val" in node.meta
        ]
        if len(given) != 1:
            raise ModelError(
                "{} has {} inputs ({}); EdgeFlare drives models with one".format(
                    self.path, len(given), names_text([node.name for node in given])
                )
            )
        self._model = program.module()
        value = given[0].meta["val"]
        sizes = tuple(int(n) if type(n) is int else None for n in value.shape)
        return TensorInfo(given[0].name, sizes, str(value.dtype).rpartition(".")[2])

    def _answers(self, tensor: Array) -> List[Array]:
        torch = self._torch
        with torch.no_grad():
            answer = self._model(torch.from_numpy(np.array(tensor)))
        return [_array(torch, one) for one in _flat(answer) if isinstance(one, torch.Tensor)]

    def _in_effect(self) -> Dict[str, Any]:
        known = super()._in_effect()
        return {**known, "onednn": self.options["onednn"]}

    def _free(self) -> None:
        del self._model


class KerasRuntime(_Framework):
    """Runs ``.keras`` files of Keras 3, on the backend that KERAS_BACKEND names or that is installed."""

    name = "keras"
    package = "keras"
    export = _EXPORT_KERAS

    def _prepare(self) -> None:
        self._require("keras")
        there = [one for one in _KERAS_BACKENDS if is_installed(one)]
        if not there and "KERAS_BACKEND" not in os.environ:
            raise RuntimeMissingError(
                "no backend of Keras is installed ({}): {}".format(
                    ", ".join(_KERAS_BACKENDS), how_to_install("torch")
                )
            )
        os.environ.setdefault("KERAS_BACKEND", there[0] if there else "")  # read by the import
        self._keras = import_library("keras")
        if not hasattr(self._keras, "tree"):
            raise RuntimeMissingError(
                "the Keras that is installed is {}, and 3 or newer is needed: {}".format(
                    self._keras.__version__, how_to_install("--upgrade", "keras")
                )
            )
        self._without_gradients: Any = nullcontext
        if self._keras.backend.backend() == "torch":
            torch = import_library("torch")
            torch.set_num_threads(self.options["threads"])
            self._without_gradients = torch.no_grad

    def _open(self) -> TensorInfo:
        self._model = self._keras.models.load_model(self.path, compile=False)
        if len(self._model.inputs) != 1:
            raise ModelError(
                "{} has {} inputs; EdgeFlare drives models with one".format(
                    self.path, len(self._model.inputs)
                )
            )
        given = self._model.inputs[0]
        return TensorInfo(str(given.name), tuple(given.shape), str(given.dtype))

    def _answers(self, tensor: Array) -> List[Array]:
        with self._without_gradients():
            answer = self._keras.tree.flatten(self._model(tensor, training=False))
        return [np.array(self._keras.ops.convert_to_numpy(one)) for one in answer]

    def _in_effect(self) -> Dict[str, Any]:
        backend = self._keras.backend.backend()
        known = super()._in_effect()
        return {**known, "backend": "{} {}".format(backend, package_version(backend)[1])}

    def _free(self) -> None:
        del self._model


class ExecuTorchRuntime(_Framework):
    """Runs ``.pte`` files, which PyTorch models are lowered to for devices.

    Which backend runs which operators is settled when the file is made: what is in effect tells the
    backends that the file names. A file with one that isn't built in can't be loaded.
    """

    name = "executorch"
    package = "executorch"
    export = _EXPORT_EXECUTORCH

    def _prepare(self) -> None:
        self._require("executorch", "torch")
        self._torch = import_library("torch")
        self._torch.set_num_threads(self.options["threads"])
        self._library = import_library("executorch.runtime")

    def _open(self) -> TensorInfo:
        self._program = self._library.Runtime.get().load_program(self.path)
        self._method = self._program.load_method("forward")
        about = self._method.metadata
        if about.num_inputs() != 1:
            raise ModelError(
                "{} has {} inputs; EdgeFlare drives models with one".format(
                    self.path, about.num_inputs()
                )
            )
        given = about.input_tensor_meta(0)
        dtype = _EXECUTORCH_DTYPES.get(int(given.dtype()))
        if dtype is None:
            raise ModelError(
                "the input of {} is of ExecuTorch's type {}, which EdgeFlare doesn't send".format(
                    self.path, given.dtype()
                )
            )
        return TensorInfo("input", tuple(given.sizes()), dtype)

    def _answers(self, tensor: Array) -> List[Array]:
        answer = self._method.execute([self._torch.from_numpy(np.array(tensor))])
        return [_array(self._torch, one) for one in answer if isinstance(one, self._torch.Tensor)]

    def _in_effect(self) -> Dict[str, Any]:
        names = self._library.Runtime.get().backend_registry.registered_backend_names
        with open(self.path, "rb") as file:
            content = file.read()
        used = [name for name in names if name.encode("ascii") in content]
        return {**super()._in_effect(), "backends": used}

    def _free(self) -> None:
        del self._method, self._program


_EXECUTORCH_DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 6: "float32"}
"""ExecuTorch's numbers of types, which are PyTorch's."""


def _flat(answer: Any) -> Sequence[Any]:
    """Return the values of an answer that is one value, or a list, tuple or dict of answers."""
    if isinstance(answer, dict):
        answer = list(answer.values())
    if not isinstance(answer, (list, tuple)):
        return [answer]
    return list(itertools.chain.from_iterable(map(_flat, answer)))


def _array(torch: Any, tensor: Any) -> Array:
    """Return a tensor as numpy has it; numpy has no bfloat16."""
    exact = tensor.detach().cpu()
    array: Array = (exact.float() if exact.dtype == torch.bfloat16 else exact).numpy().copy()
    return array
