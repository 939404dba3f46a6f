"""Runtimes: each loads a model file and runs it. Imported only when a model asks for one.

A user's runtime is a subclass of `Runtime`. It imports from here what it needs besides: `Option`
for its options, `TensorInfo` to describe inputs and outputs, `Array` for annotations,
`import_library` to import its engine; `edgeflare_agent.errors` has the errors.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Dict, Mapping, Optional, Type

from edgeflare_agent.arrays import Array
from edgeflare_agent.cache import default_root
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.runtimes.base import THREADS, Option, Runtime, import_library

__all__ = [
    "ADDED",
    "RUNTIMES",
    "THREADS",
    "Array",
    "Option",
    "Runtime",
    "TensorInfo",
    "class_of",
    "import_library",
    "load",
]

RUNTIMES: Dict[str, str] = {
    "tflite": "edgeflare_agent.runtimes.tflite:TFLiteRuntime",
    "onnx": "edgeflare_agent.runtimes.onnx:OnnxRuntime",
    "tensorrt": "edgeflare_agent.runtimes.tensorrt:TensorRTRuntime",
    "torch": "edgeflare_agent.runtimes.frameworks:TorchRuntime",
    "keras": "edgeflare_agent.runtimes.frameworks:KerasRuntime",
    "executorch": "edgeflare_agent.runtimes.frameworks:ExecuTorchRuntime",
}
"""The built-in runtimes: name -> module and class.

A new one also needs, on the host, its name, file suffixes and options in ``devices/runtimes.py``
and its package in ``devices/provisioning/probe.py``.
"""

ADDED = "added_{}"
"""Module that the host adds to the agent for a user's runtime, by the runtime's name."""


def load(
    path: str, runtime: str, options: Mapping[str, Any], root: Optional[str] = None
) -> Runtime:
    """Load the model file at `path` with the named runtime; `root` is the cache folder.

    Raises RequestError for an unknown runtime or option, ModelError for a file that can't be used,
    RuntimeMissingError and NumpyClashError where the device lacks something.
    """
    made = class_of(runtime)
    return made(path, options, default_root() if root is None else root)


def class_of(runtime: str) -> Type[Runtime]:
    """Return the class of a built-in or added runtime; its engine is not imported. Raises RequestError."""
    added = "{}.{}".format(__name__, ADDED.format(runtime))
    if runtime in RUNTIMES:
        module, _, name = RUNTIMES[runtime].partition(":")
        built_in: Type[Runtime] = getattr(import_module(module), name)
        return built_in
    if runtime.isidentifier() and find_spec(added) is not None:
        for value in vars(import_module(added)).values():
            if isinstance(value, type) and issubclass(value, Runtime) and value.name == runtime:
                return value
    raise RequestError(
        "no runtime is called {!r}; there are {}".format(runtime, ", ".join(RUNTIMES))
    )
