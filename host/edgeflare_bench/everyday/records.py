"""What the suite of everyday faults is made of: originals, and pairs that are healthy or faulty."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers import AnswerKind
from edgeflare.models import ONE_INPUT, InputOptions, Spec, resolve_input
from edgeflare.types import Sample
from edgeflare_agent.configuration.fixed_inputs import GivenInputs
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_bench.everyday.tasks import Task

SIGNATURE = "everyday faults"


@dataclass(frozen=True)
class EverydayOriginal:
    """A small float ONNX model that was trained, with natural inputs.

    `model` is an `onnx.ModelProto`, its batch axis fixed to 1; `path` its file. `samples` are 64 images
    (uint8 [H, W, C]) or clips (float32 [N] in -1..1) that it was never trained with, `labels` their
    classes: () where the task has none. `input` is what `--input` states, lists separated by commas;
    `given`: how a sample becomes several inputs. `calibration` has natural tensors [M, ...] as the model
    takes them, of other samples.
    """

    name: str
    model: Any
    path: Path
    samples: Sequence[Sample]
    labels: Sequence[int]
    input: Mapping[str, str]
    task: Task
    calibration: NDArray[np.float32]
    given: GivenInputs = ONE_INPUT

    @property
    def kind(self) -> AnswerKind[Any]:
        """The kind of its answers."""
        return self.task.kind


@dataclass(frozen=True)
class EverydayPair:
    """An original and a deployed model, as a user states them to a check.

    `name` is "original/tool chain/variant" and stable. `of` is the name of the `EverydayOriginal`. The
    inputs are as in `EverydayOriginal.input`. `expected`: kinds of causes of which the first that is
    told must be one; (): healthy, none may be told. `names`: tensors, operators, inputs or outputs
    of which the cause must name one; (): any. `device`: how the device departs from what is stated,
    see `evaluation`; {}: no device is asked.
    """

    name: str
    tool_chain: str
    original: Path
    deployed: Path
    of: str
    original_input: Mapping[str, str]
    deployed_input: Mapping[str, str]
    samples: Sequence[Sample]
    labels: Sequence[int]
    kind: AnswerKind[Any]
    expected: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    device: Mapping[str, Any] = field(default_factory=dict)
    original_given: GivenInputs = ONE_INPUT
    deployed_given: GivenInputs = ONE_INPUT


def is_reserved(name: str) -> bool:
    """Whether the pair of this name is not looked at before the final table: half of them are."""
    return zlib.crc32(f"{SIGNATURE}/{name}".encode()) % 2 == 1


def input_options(stated: Mapping[str, str]) -> InputOptions:
    """Return the options that are stated for an input. Raises pydantic's ValidationError."""
    lists = ("mean", "std", "clip", "size")
    values = {
        key: tuple(float(part) for part in value.split(",")) if key in lists else value
        for key, value in stated.items()
    }
    return InputOptions.model_validate(values)


def input_spec(info: TensorInfo, stated: Mapping[str, str]) -> Spec:
    """Return how samples enter an input of a file. Raises UsageError where that isn't stated fully."""
    return resolve_input(info, input_options(stated), InputOptions(), "the model")
