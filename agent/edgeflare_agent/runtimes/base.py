"""What every runtime shares: checks and life cycle. A backend writes only its own steps."""

import os
from collections import Counter
from importlib import import_module
from typing import (
    Any,
    Callable,
    ClassVar,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
)

import numpy as np

from edgeflare_agent.arrays import Array, DType
from edgeflare_agent.errors import (
    InferenceError,
    ModelError,
    RequestError,
    RuntimeMissingError,
)
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.install_hints import how_to_install


class Option(NamedTuple):
    """One option of a runtime: its default, what it may be (for messages) and the check of that."""

    default: Any
    wanted: str
    accepts: Callable[[Any], bool]


def _is_thread_count(value: Any) -> bool:
    """Whether a value is a whole number from 1 to 1024."""
    return type(value) is int and 1 <= value <= 1024


def is_options(value: Any) -> bool:
    """Whether a value is an object of a library's options: {name: text, number or boolean}."""
    return isinstance(value, dict) and all(
        isinstance(one, (str, int, float, bool)) for one in value.values()
    )


THREADS = Option(1, "a whole number from 1 to 1024", _is_thread_count)


def import_library(module: str) -> Any:
    """Import a runtime's library; raise RuntimeMissingError where it is there but broken."""
    try:
        return import_module(module)
    except (ImportError, OSError, AttributeError) as error:
        raise RuntimeMissingError(
            "{} is installed but can't be imported ({}): {}".format(
                module,
                one_line(error),
                how_to_install("--force-reinstall", module.partition(".")[0].replace("_", "-")),
            )
        ) from error


class Runtime:
    """A loaded model, used by one thread at a time unless it is `shareable`.

    `inputs` and `outputs` describe its tensors; `metadata` is the text that the file carries;
    `options` is every option with its value.
    """

    name: ClassVar[str] = ""
    suffixes: ClassVar[Tuple[str, ...]] = ()
    """Of a user's runtime: the endings of its model files, such as ``.mnn``."""
    known_options: ClassVar[Mapping[str, Option]] = {"threads": THREADS}
    failures: Tuple[Type[Exception], ...] = ()
    """What the backend's library raises; each becomes a ModelError or an InferenceError."""
    shareable: ClassVar[bool] = False
    """Whether several threads may call `run` at once after all."""
    takes_several: ClassVar[bool] = False
    """Whether models may have several inputs, which `_infer_several` is given."""

    def __init__(self, path: str, options: Mapping[str, Any], root: str) -> None:
        """Load the file at `path`; what a runtime keeps for the next time goes below `root`."""
        self.path = path
        self.root = root
        self.options = self._checked_options(options)
        self.inputs: List[TensorInfo] = []
        self.outputs: List[TensorInfo] = []
        self.metadata: Dict[str, str] = {}
        self._closed = False
        self._fitting: Optional[Tuple[Tuple[int, ...], DType]] = None  # what fitted last
        self._all_fitting: List[Tuple[Tuple[int, ...], DType]] = []
        if not os.path.isfile(path):
            raise ModelError("there is no model file at {}".format(path))
        self._prepare()
        try:
            self._load()
        except self.failures as error:
            raise ModelError(
                "{} can't load {}: {}".format(self.name, path, one_line(error))
            ) from error

    def describe(self) -> Dict[str, Any]:
        """Return, as JSON, the runtime's name, package, version, threads, and what is in effect."""
        return {"name": self.name, "threads": self.options["threads"], **self._in_effect()}

    def run(self, tensor: Array) -> List[Array]:
        """Return one raw array an output, in the order of `outputs`, for one input tensor.

        Raises RequestError unless the model has one input and the tensor its shape and dtype;
        InferenceError where the runtime fails.
        """
        if self._closed:
            raise RequestError("the model {} was closed".format(self.path))
        fitting = (tensor.shape, tensor.dtype)
        if fitting != self._fitting:
            check_single_input(self.inputs, self.path)
            check_fits(self.inputs[0], tensor.shape, tensor.dtype.name)
            self._fitting = fitting
        try:
            return self._infer(np.ascontiguousarray(tensor))
        except self.failures as error:
            raise InferenceError(
                "{} failed to run {}: {}".format(self.name, self.path, one_line(error))
            ) from error

    def run_several(self, tensors: Sequence[Array]) -> List[Array]:
        """Return what `run` does, for one tensor an input, in the order of `inputs`.

        Raises RequestError unless there are as many, each of its input's shape and dtype;
        InferenceError where the runtime fails.
        """
        if len(tensors) == len(self.inputs) == 1:
            return self.run(tensors[0])
        if self._closed:
            raise RequestError("the model {} was closed".format(self.path))
        fitting = [(tensor.shape, tensor.dtype) for tensor in tensors]
        if fitting != self._all_fitting:
            check_inputs(self, self.path)
            if len(tensors) != len(self.inputs):
                raise RequestError(
                    "the model has {} inputs, and {} arrays were given".format(
                        len(self.inputs), len(tensors)
                    )
                )
            for info, tensor in zip(self.inputs, tensors):
                check_fits(info, tensor.shape, tensor.dtype.name)
            self._all_fitting = fitting
        try:
            return self._infer_several([_contiguous(tensor) for tensor in tensors])
        except self.failures as error:
            raise InferenceError(
                "{} failed to run {}: {}".format(self.name, self.path, one_line(error))
            ) from error

    def close(self) -> None:
        """Free the model. Safe to repeat."""
        if not self._closed:
            self._closed = True
            self._free()

    def _prepare(self) -> None:
        """Import the library and set `failures`; raise what is missing."""
        raise NotImplementedError

    def _load(self) -> None:
        """Load the file at `path`, set `inputs`, `outputs` and `metadata`."""
        raise NotImplementedError

    def _in_effect(self) -> Dict[str, Any]:
        """Return `package`, `version` and the options in effect, as the library reports them."""
        raise NotImplementedError

    def _infer(self, tensor: Array) -> List[Array]:
        """Run the model on a tensor that fits, without any state of earlier ones."""
        raise NotImplementedError

    def _infer_several(self, tensors: List[Array]) -> List[Array]:
        """Run a model of several inputs on contiguous tensors that fit, as `_infer` does."""
        raise NotImplementedError

    def _free(self) -> None:
        """Let go of the library's objects."""
        raise NotImplementedError

    def _checked_options(self, options: Mapping[str, Any]) -> Dict[str, Any]:
        for name, value in options.items():
            if name not in self.known_options:
                raise RequestError(
                    "runtime {} has no option {!r}; it has {}".format(
                        self.name, name, ", ".join(self.known_options)
                    )
                )
            option = self.known_options[name]
            if not option.accepts(value):
                raise RequestError(
                    "option {} of runtime {} must be {}, not {!r}".format(
                        name, self.name, option.wanted, value
                    )
                )
        defaults = {name: option.default for name, option in self.known_options.items()}
        return {**defaults, **options}


def check_inputs(runtime: Runtime, what: str) -> None:
    """Raise ModelError unless the model has as many inputs as its runtime takes."""
    if not runtime.inputs or not runtime.takes_several:
        check_single_input(runtime.inputs, what)


def check_single_input(inputs: List[TensorInfo], what: str) -> None:
    """Raise ModelError unless there is exactly one input."""
    if len(inputs) != 1:
        raise ModelError(
            "{} has {} inputs ({}); EdgeFlare drives models with one".format(
                what, len(inputs), names_text([info.name for info in inputs])
            )
        )


def check_fits(info: TensorInfo, shape: Tuple[Optional[int], ...], dtype: str) -> None:
    """Raise RequestError unless a tensor of this shape and dtype fits the model's input."""
    same_rank = len(shape) == len(info.shape)
    if not same_rank or any(n not in (None, given) for n, given in zip(info.shape, shape)):
        raise RequestError(
            "the model's input {} has shape {}, not {}".format(
                info.name, shape_text(info.shape), shape_text(shape)
            )
        )
    if dtype != info.dtype:
        raise RequestError(
            "the model's input {} is {}, not {}".format(info.name, info.dtype, dtype)
        )


def _contiguous(tensor: Array) -> Array:
    """Return the tensor with its values in order; one without axes stays one."""
    return tensor if tensor.flags.c_contiguous else np.ascontiguousarray(tensor)


def shape_text(shape: Tuple[Any, ...]) -> str:
    """Return a shape for people; a question mark stands for an open axis."""
    return " x ".join("?" if n is None else str(n) for n in shape)


def names_text(names: Sequence[str], most: int = 10) -> str:
    """Return the first names and the number of the others; a model's file decides how many it has."""
    more = len(names) - most
    return ", ".join(names[:most]) + (" and {:,} more".format(more) if more > 0 else "")


def one_line(error: Exception) -> str:
    """Return the first line of an error's text, or its type where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def counted_names(names: List[str]) -> str:
    """Return names with their counts, like "ADD x 3, SOFTMAX"."""
    return ", ".join(
        name if count == 1 else "{} x {}".format(name, count)
        for name, count in sorted(Counter(names).items())
    )
