"""The runtimes that a device may run a model with, and what can be set of each."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from edgeflare.errors import UsageError

RuntimeName = Literal["tflite", "onnx"]

BY_EXTENSION: dict[str, RuntimeName] = {".tflite": "tflite", ".lite": "tflite", ".onnx": "onnx"}
"""The runtime that a model file's extension stands for."""


class DeviceOptions(TypedDict, total=False):
    """Options of the runtime on a device; what is absent is left to the runtime.

    `threads`: of one inference. `delegate` (TFLite): the default (XNNPACK) delegate on or off.
    `kernels` (TFLite): optimised or reference ones. `providers` (ONNX): execution providers, in order.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    threads: Annotated[int, Field(ge=1, le=1024)]
    delegate: bool
    kernels: Literal["default", "reference"]
    providers: list[str]


def runtime_for(model: Path) -> RuntimeName:
    """Return the runtime, tflite or onnx, for a model file's extension. Raises UsageError."""
    try:
        return BY_EXTENSION[model.suffix.lower()]
    except KeyError:
        raise UsageError(
            f"can't tell the runtime of {model} by its extension; EdgeFlare runs "
            f"{', '.join(BY_EXTENSION)} files: convert it to one of them, or name its `runtime` in "
            "campaign.toml"
        ) from None
