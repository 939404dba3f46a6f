"""Which task both models have, and what is stated that fits it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edgeflare._internal.text import names_text
from edgeflare.answers import KINDS, kind_of_task
from edgeflare.answers.oracles import DETECTION_TASKS, VALUE_TASKS
from edgeflare.campaign.pair.interface import picture_size
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.errors import InferenceFailedError, ModelError, UsageError
from edgeflare.models import (
    DetectorOptions,
    InputSpec,
    OriginalModel,
    Spec,
    TensorInfo,
    is_batch_open,
)
from edgeflare.types import Sample, Task


class ModelOutputs(NamedTuple):
    """A model's outputs as its file has them; `whose` it is, for messages."""

    tensors: Sequence[TensorInfo]
    metadata: Mapping[str, str]
    config: ModelConfig
    spec: Spec
    whose: str
    parts: int = 1
    """The number of the inputs that samples become."""
    unbatched: frozenset[str] = frozenset()
    """Outputs whose first axis in the file is no batch; in `tensors` they have one of 1 before it."""

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of an input, (0, 0) of audio."""
        return picture_size(self.spec, self.parts)

    @property
    def named(self) -> Sequence[TensorInfo]:
        """The output that is named, or all of them. Raises ModelError where it has none of this name."""
        name = self.config.output_name
        found = [tensor for tensor in self.tensors if name in (None, tensor.name)]
        if not found:
            names = names_text([tensor.name for tensor in self.tensors])
            raise ModelError(f"{self.whose} has no output {name!r}; it has {names}")
        return found

    def single(self, what: str, advice: str = "") -> TensorInfo:
        """Return the output that is named, or the only one. Raises ModelError.

        `what` is in it, and `advice` what else can be done, in messages.
        """
        found = self.named
        if len(found) == 1:
            return found[0]
        names = names_text([one.name for one in found])
        flag = "original" if "original" in self.whose else "deployed"
        raise ModelError(
            f"{self.whose} has {len(found)} outputs ({names}); name the one with {what} with "
            f"`--{flag}-output-name`{advice}"
        )


def unbatched_outputs(original: OriginalModel, spec: Spec) -> frozenset[str]:
    """Return the names of the original's outputs whose first axis is no batch, such as [time, 1, symbols].

    Some have more than 1 there in the file. Others have it open, though the model takes one sample
    alone: a blank one tells.
    """
    found = {one.name for one in original.outputs if _has_other_first_axis(one)}
    is_open = [one.name for one in original.outputs if len(one.shape) > 1 and not one.shape[0]]
    if not is_open or is_batch_open(original.inputs):
        return frozenset(found)
    if isinstance(spec, InputSpec):
        blank: Sample = np.zeros((*spec.upright_size, spec.channels), np.uint8)
    else:
        blank = np.zeros(spec.samples or spec.rate, np.float32)
    original.configure(spec, is_open)
    try:
        raws = original.raw(blank)
    except InferenceFailedError:
        return frozenset(found)
    for name, raw in zip(is_open, raws, strict=True):
        if isinstance(raw, np.ndarray) and raw.ndim > 1 and raw.shape[0] > 1:
            found.add(name)
    return frozenset(found)


def unbatched_like(
    outputs: Sequence[TensorInfo], original: Sequence[TensorInfo], names: frozenset[str]
) -> frozenset[str]:
    """Return the names of a deployed model's outputs whose first axis is no batch.

    Where its file leaves that open, those of the original's shape are as the original's `names`.
    """
    shapes = {one.shape[1:] for one in original if one.name in names}
    return frozenset(
        output.name
        for output in outputs
        if _has_other_first_axis(output)
        or (output.shape[:1] == (None,) and output.shape[1:] in shapes)
    )


def _has_other_first_axis(tensor: TensorInfo) -> bool:
    return len(tensor.shape) > 1 and tensor.shape[0] not in (None, 0, 1)


def with_batch(tensors: Sequence[TensorInfo], unbatched: frozenset[str]) -> list[TensorInfo]:
    """Return outputs with a batch axis of 1 before the others where the file has none."""
    return [
        tensor._replace(shape=(1, *tensor.shape)) if tensor.name in unbatched else tensor
        for tensor in tensors
    ]


def find_task(
    config: CampaignConfig, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[Task, str]:
    """Return the task, as stated or by the original's outputs, and the reason; "": it is stated.

    Raises ModelError for formats that are known and not supported.
    """
    if config.task != "auto":
        return config.task, ""
    if not isinstance(original.spec, InputSpec):
        return "classification", ""
    for model in (original, deployed):
        if isinstance(model.config.decoder, DetectorOptions):
            return "detection", ""
    if original.config.output != "auto" or deployed.config.output != "auto":
        return "classification", ""
    for kind in KINDS:
        reason = kind.suits(original, deployed)
        if reason:
            return next(iter(kind.tasks)), reason
    return "classification", ""


_USES: tuple[tuple[str, str, str, frozenset[Task]], ...] = (
    ("detection", "confidence", "--confidence", DETECTION_TASKS),
    ("detection", "nms", "--nms", frozenset({"detection"})),
    ("detection", "match_iou", "--match-iou", frozenset({"detection"})),
    ("detection", "shift_iou", "--shift-iou", frozenset({"detection"})),
    ("detection", "keep", "--keep-boxes", frozenset({"detection"})),
    ("values", "measure", "--measure", VALUE_TASKS),
    ("values", "threshold", "--threshold", frozenset({"dense"})),
    ("values", "axis", "--channel-axis", frozenset({"dense"})),
    ("values", "tolerances", "tolerances in [values]", frozenset({"vector"})),
    ("values", "gallery", "--gallery", frozenset({"embedding"})),
)
"""Settings of some tasks alone: table, key, what users type, and the tasks."""
_SCORES = ("auto", "probabilities", "logits", "sigmoid", "sigmoid-logits", "label")
_OUTPUTS: Mapping[Task, Sequence[str]] = {
    "classification": _SCORES,
    "multi-label": _SCORES[:-1],
    "transcript": ("auto", "transcript"),
}
"""What may be stated of the models' output, by task; of others nothing."""


def check_settings(config: CampaignConfig, task: Task) -> None:
    """Raise UsageError where something is stated that answers of this task don't have."""
    tables = {"detection": config.detection, "values": config.values}
    found = f"these models answer with {kind_of_task(task).tasks[task]} ({task})"
    for table, key, flag, tasks in _USES:
        stated = getattr(tables[table], key)
        if task not in tasks and stated != type(tables[table]).model_fields[key].default:
            raise UsageError(
                f"{flag} is for --task {', '.join(sorted(tasks))}, and {found}: leave it out, or state the task"
            )
    for name, model in (("original", config.original), ("deployed", config.deployed)):
        if model.output not in _OUTPUTS.get(task, ("auto",)):
            raise UsageError(
                f"the {name} model is stated to return {model.output} (--output), and {found}: leave it out, or "
                "state another --task"
            )
        makes = "detection" if isinstance(model.decoder, DetectorOptions) else "transcript"
        if model.decoder is not None and task != makes:
            raise UsageError(
                f"the decoder that is stated for the {name} model is for --task {makes}, and {found}: leave it "
                "out, or state the task"
            )


def check_same_classes(original: int, deployed: int) -> None:
    """Raise ModelError for two numbers of classes."""
    if original != deployed:
        raise ModelError(
            f"the original model has {original} classes and the deployed model {deployed}: they "
            "are not two versions of one model"
        )
