"""The runtimes that a device may run a model with, and what can be set of each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from edgeflare import toml
from edgeflare.errors import UsageError

RuntimeName = Literal["tflite", "onnx", "tensorrt"]

BY_EXTENSION: dict[str, RuntimeName] = {
    ".tflite": "tflite",
    ".lite": "tflite",
    ".onnx": "onnx",
    ".engine": "tensorrt",
    ".plan": "tensorrt",
}
"""The runtime that a model file's extension stands for."""


OPTIONS_OF: dict[RuntimeName, frozenset[str]] = {
    "tflite": frozenset({"threads", "delegate", "kernels"}),
    "onnx": frozenset(
        {"threads", "providers", "provider_options", "allow_fallback", "graph_optimization"}
    ),
    "tensorrt": frozenset(
        {"threads", "precision", "tf32", "workspace_mb", "calibration", "input_shape"}
    ),
}
"""The options that each runtime knows."""


class DeviceOptions(TypedDict, total=False):
    """Options of the runtime on a device; what is absent is left to the runtime.

    `threads`: of one inference. `delegate` (TFLite): the default (XNNPACK) delegate on or off.
    `kernels` (TFLite): optimised or reference ones. `providers` (ONNX): execution providers, in order;
    `provider_options` (ONNX): {provider: {option: value}}; `allow_fallback` (ONNX): whether the CPU may run
    what they can't. `graph_optimization` (ONNX): how far the
    graph may be rewritten.

    Of TensorRT, where it builds an engine from an ``.onnx``: `precision` of the layers; `tf32`: whether
    fp32 may be rounded to TF32; `workspace_mb`: memory for building and running, in MiB; `calibration`:
    a ``.npy`` on the host with prepared input tensors, float32 [N, ...], for int8 of a model without
    Q/DQ nodes (see `edgeflare.write_calibration`); `input_shape`: sizes of axes that the file leaves
    open.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    threads: Annotated[int, Field(ge=1, le=1024)]
    delegate: bool
    kernels: Literal["default", "reference"]
    providers: list[str]
    provider_options: dict[str, dict[str, str | int | float | bool]]
    allow_fallback: bool
    graph_optimization: Literal["all", "extended", "basic", "none"]
    precision: Literal["fp32", "fp16", "int8"]
    tf32: bool
    workspace_mb: Annotated[int, Field(ge=1)]
    calibration: str
    input_shape: list[Annotated[int, Field(ge=1)]]


def runtime_for(model: Path) -> RuntimeName:
    """Return the runtime, one of RuntimeName, for a model file's extension. Raises UsageError."""
    try:
        return BY_EXTENSION[model.suffix.lower()]
    except KeyError:
        raise UsageError(
            f"can't tell the runtime of {model} by its extension; EdgeFlare runs "
            f"{', '.join(BY_EXTENSION)} files: convert it to one of them, or name its `runtime` in "
            "campaign.toml or in the device's inventory entry"
        ) from None


def calibration_file(runtime: str, options: Mapping[str, Any]) -> Path | None:
    """Return the host's calibration file that these options name. Raises UsageError where it is none."""
    named = options.get("calibration")
    if runtime != "tensorrt" or named is None:
        return None
    path = toml.expanded(str(named))
    if path.suffix != ".npy" or not path.is_file():
        raise UsageError(
            f"`calibration` is {named!r}, which is no .npy file here: give one with prepared input tensors, "
            "such as `edgeflare.write_calibration` writes"
        )
    return path
