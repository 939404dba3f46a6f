"""The runtimes that a device may run a model with, and what can be set of each.

A user's runtime is an entry point of the group ``edgeflare.runtimes``: a subclass of
`edgeflare_agent.runtimes.Runtime` whose `name` is the entry point's and whose `suffixes` are those
of its model files. Its file goes to the device as part of the agent, so it is written
for Python 3.8 and imports the standard library, numpy, `edgeflare_agent` and, when a model is
loaded, its engine alone.
"""

import ast
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from edgeflare._internal import plugins, toml
from edgeflare.errors import UsageError

if TYPE_CHECKING:
    from edgeflare_agent.runtimes import Runtime

BUILT_IN = ("tflite", "onnx", "tensorrt", "torch", "keras", "executorch")

RuntimeName = Annotated[str, plugins.known_name("runtime", BUILT_IN)]
"""A built-in runtime or a user's."""

BY_EXTENSION: dict[str, RuntimeName] = {
    ".tflite": "tflite",
    ".lite": "tflite",
    ".onnx": "onnx",
    ".engine": "tensorrt",
    ".plan": "tensorrt",
    ".pt2": "torch",
    ".pt": "torch",
    ".ts": "torch",
    ".keras": "keras",
    ".h5": "keras",
    ".pte": "executorch",
}
"""The runtime of a model file's extension."""


class DeviceOptions(TypedDict, total=False):
    """Options of the runtime on a device; what is absent is left to the runtime.

    `threads`: of one inference. `delegate` (TFLite): the default (XNNPACK) delegate on or off, the
    path on the device of another delegate's library, or "gpu" or "npu" for LiteRT's CompiledModel;
    `delegate_options` (TFLite): {option: value} of that. `kernels` (TFLite): optimised or reference
    ones. `providers` (ONNX): execution providers, in order; `provider_options` (ONNX):
    {provider: {option: value}}. `allow_fallback` (TFLite, ONNX): whether the CPU may run what the
    stated delegate or providers can't. `graph_optimization` (ONNX): how far the graph may be
    rewritten; `exact_int8` (ONNX): sum 8-bit products exactly on x86-64 without VNNI, too.
    `tensors` (TFLite): return all tensors, too, which `edgeflare explain` asks for.

    Of TensorRT, where it builds an engine from an ``.onnx``: `precision` of the layers; `tf32`:
    whether fp32 may be rounded to TF32; `workspace_mb`: memory for building and running, in MiB;
    `calibration`: a ``.npy`` on the host with prepared input tensors, float32 [N, ...], for int8 of
    a model without Q/DQ nodes (see `edgeflare.campaign.write_calibration`).

    `input_shape` (TensorRT, PyTorch): sizes of axes that the file leaves open, or doesn't tell.
    `onednn` (PyTorch): whether oneDNN may compute operators.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    threads: Annotated[int, Field(ge=1, le=1024)]
    delegate: bool | Annotated[str, Field(min_length=1)]
    delegate_options: dict[str, str | int | float | bool]
    kernels: Literal["default", "reference"]
    providers: list[str]
    provider_options: dict[str, dict[str, str | int | float | bool]]
    allow_fallback: bool
    graph_optimization: Literal["all", "extended", "basic", "none"]
    exact_int8: bool
    tensors: bool
    precision: Literal["fp32", "fp16", "int8"]
    tf32: bool
    workspace_mb: Annotated[int, Field(ge=1)]
    calibration: str
    input_shape: list[Annotated[int, Field(ge=1)]]
    onednn: bool


def runtime_for(model: Path) -> RuntimeName:
    """Return the runtime, one of RuntimeName, for a model file's extension. Raises UsageError."""
    suffix = model.suffix.lower()
    if suffix in BY_EXTENSION:
        return BY_EXTENSION[suffix]
    known, broken = list(BY_EXTENSION), []
    for name in plugins.names("runtime"):
        try:
            users = users_runtime(name)
        except UsageError as error:
            broken.append(str(error))
            continue
        if users is None:
            continue
        if suffix in users[0].suffixes:
            return name
        known += (f"{one} ({name})" for one in users[0].suffixes)
    raise UsageError(
        f"can't tell the runtime of {model} by its extension; EdgeFlare runs "
        f"{', '.join(known)} files: convert it to one of them, or name its `runtime` in "
        f"campaign.toml or in the device's inventory entry"
        + (f" ({'; '.join(broken)})" if broken else "")
    )


def check_runtime(name: str) -> None:
    """Raise UsageError unless there is a runtime of this name and, of a user's, it can be used."""
    if name not in BUILT_IN and users_runtime(name) is None:
        known = ", ".join((*BUILT_IN, *plugins.names("runtime")))
        raise UsageError(f"no runtime is called {name!r}; there are {known}")


def options_of(name: str) -> Collection[str]:
    """Return the options that a runtime knows. Raises UsageError."""
    check_runtime(name)
    users = users_runtime(name)
    if users is not None:
        return users[0].known_options.keys()
    from edgeflare_agent.runtimes import class_of

    return class_of(name).known_options.keys()


def users_runtime(name: str) -> "tuple[type[Runtime], bytes] | None":
    """Return a user's runtime and its class' file, None for a built-in or unknown name.

    Raises UsageError.
    """
    found = None if name in BUILT_IN else plugins.load("runtime", name)
    if found is None:
        return None
    from edgeflare_agent.runtimes import Runtime

    if not (isinstance(found, type) and issubclass(found, Runtime)):
        raise plugins.unusable(
            "runtime", name, "must be a subclass of edgeflare_agent.runtimes.Runtime"
        )
    if found.name != name or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise plugins.unusable(
            "runtime",
            name,
            f"calls itself {found.name!r}; give both one name of small letters, digits and _",
        )
    file = Path(sys.modules[found.__module__].__file__ or "")
    try:
        source = file.read_bytes()
        ast.parse(source, feature_version=(3, 8))
    except OSError as error:
        raise plugins.unusable(
            "runtime", name, f"has no source file {file}: {error.strerror}"
        ) from error
    except SyntaxError as error:
        why = f"is not written for Python 3.8, which devices may have: {file}, line {error.lineno}"
        raise plugins.unusable("runtime", name, why) from error
    return found, source


def calibration_file(runtime: str, options: Mapping[str, Any]) -> Path | None:
    """Return the host's calibration file that these options name. Raises UsageError."""
    named = options.get("calibration")
    if runtime != "tensorrt" or named is None:
        return None
    path = toml.expand_home(str(named))
    if path.suffix != ".npy" or not path.is_file():
        raise UsageError(
            f"`calibration` is {named!r}, which is no .npy file here: give one with prepared input tensors, "
            "such as `edgeflare.campaign.write_calibration` writes"
        )
    return path
