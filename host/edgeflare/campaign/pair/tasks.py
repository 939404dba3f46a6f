"""Which task both models have, and the outputs that answer it, where that isn't classes or text."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare._internal.text import shape_text
from edgeflare.campaign.pair.interface import Comparison, ModelInterface
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import (
    AnswerReader,
    DetectionReader,
    DetectorOptions,
    InputSpec,
    Spec,
    TensorInfo,
    complete_options,
    infer_format,
)
from edgeflare.oracles import TASKS, VALUE_TASKS
from edgeflare.types import Task


class ModelOutputs(NamedTuple):
    """A model's outputs as its file has them; `whose` it is, for messages."""

    tensors: Sequence[TensorInfo]
    metadata: Mapping[str, str]
    config: ModelConfig
    spec: Spec
    whose: str

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of the input, (0, 0) of audio."""
        return self.spec.size if isinstance(self.spec, InputSpec) else (0, 0)

    @property
    def named(self) -> Sequence[TensorInfo]:
        """The output that is named, or all of them. Raises ModelError where it has none of this name."""
        name = self.config.output_name
        found = [one for one in self.tensors if name in (None, one.name)]
        if not found:
            names = ", ".join(one.name for one in self.tensors)
            raise ModelError(f"{self.whose} has no output {name!r}; it has {names}")
        return found


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
    for one in (original, deployed):
        if isinstance(one.config.decoder, DetectorOptions):
            return "detection", ""
    if original.config.output != "auto" or deployed.config.output != "auto":
        return "classification", ""
    found = infer_format(original.named, original.size, original.metadata)
    if found is None:
        return "classification", ""
    return (
        "detection",
        f"the models are taken for detectors ({found[1]}); state --task if they are none",
    )


_USES: tuple[tuple[str, str, str, frozenset[Task]], ...] = (
    ("detection", "confidence", "--confidence", frozenset({"detection", "multi-label"})),
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
    found = f"these models answer with {TASKS[task]} ({task})"
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


def detector_format(model: ModelOutputs) -> DetectorOptions:
    """Return the format of a detector's outputs, as stated or inferred.

    Raises ModelError where nothing tells it, and UsageError for a model that takes no upright image.
    """
    if not isinstance(model.spec, InputSpec):
        raise UsageError(
            f"{model.whose} takes audio, and detectors take images: state another --task"
        )
    if model.spec.orientation != "upright":
        raise UsageError(
            f"{model.whose} turns its input ({model.spec.orientation}), and its boxes with it; give a detector "
            "that takes upright images"
        )
    stated = model.config.decoder
    if isinstance(stated, DetectorOptions):
        return stated
    if stated is not None:
        raise UsageError(f"the decoder that is stated for {model.whose} makes text, not boxes")
    found = infer_format(model.named, model.size, model.metadata)
    if found is None:
        shapes = ", ".join(f"{one.name} {shape_text(one.shape)}" for one in model.tensors)
        raise ModelError(
            f"the outputs of {model.whose} ({shapes}) don't tell how they become boxes; if it is a detector, state "
            "the format with `--decoder kind=yolo` (or yolo-objectness, end-to-end, ssd, ssd-raw, fastestdet, grid), "
            "else another --task"
        )
    return found[0]


def detector_sides(
    config: CampaignConfig, original: ModelOutputs, deployed: ModelOutputs, reason: str
) -> tuple[ModelInterface, ModelInterface]:
    """Return the sides of two detectors; `reason`: why they are taken for detectors."""
    compared = Comparison(config.detection.rules(), config.detection.nms)
    sides = []
    for one in (original, deployed):
        options = detector_format(one)
        tensors = tuple(one.named)
        if options.outputs:
            wanted = [
                tensor for name in options.outputs for tensor in tensors if tensor.name == name
            ]
            tensors = tuple(wanted) or tensors
        side = ModelInterface(
            *(one.spec, tensors[0]), task="detection", outputs=tensors, detector=options
        )
        sides.append(side._replace(compared=compared))
    first, second = sides
    if (
        first.detector
        and second.detector
        and first.detector.background == second.detector.background
    ):
        check_same_objects(*(_usual_reader(side) for side in sides))
    if reason:
        sides[0] = sides[0]._replace(inferred=reason)
    return sides[0], sides[1]


def _usual_reader(side: ModelInterface) -> AnswerReader:
    assert side.detector is not None  # noqa: S101 - it is a detector's side
    usual = complete_options(side.detector, side.outputs, side.size, ())
    return side._replace(detector=usual).reader("detections")


def check_same_objects(original: AnswerReader, deployed: AnswerReader) -> None:
    """Raise ModelError for two detectors of two numbers of classes, as far as both are known."""
    if isinstance(original, DetectionReader) and isinstance(deployed, DetectionReader):
        counts = original.classes, deployed.classes
        if 0 not in counts:
            check_same_classes(*counts)


def with_background_of(original: AnswerReader, deployed: ModelInterface) -> ModelInterface:
    """Return a deployed detector with the original's class of the background where none is stated.

    Rounded to 8 bits its scores need not add up to 1, which is what would tell.
    """
    if not isinstance(original, DetectionReader) or deployed.detector is None:
        return deployed
    if deployed.detector.background is not None or deployed.detector.kind != original.options.kind:
        return deployed
    update = {"background": original.options.background}
    return deployed._replace(detector=deployed.detector.model_copy(update=update))


def check_same_classes(original: int, deployed: int) -> None:
    """Raise ModelError for two numbers of classes."""
    if original != deployed:
        raise ModelError(
            f"the original model has {original} classes and the deployed model {deployed}: they "
            "are not two versions of one model"
        )


def kept_boxes(
    most: int | None, options: DetectorOptions | None, tensors: Sequence[TensorInfo]
) -> dict[str, Any] | None:
    """Return how the device reduces a detector's raw outputs to its `most` best anchors; None: not.

    As `edgeflare_agent.configuration.reduction.Reduction` takes it. Raises UsageError where the
    outputs aren't of anchors with a score each, have open axes, or don't tell which scores matter.
    """
    if most is None:
        return None
    kind = None if options is None else options.kind
    if options is None or kind not in ("yolo", "ssd-raw"):
        raise UsageError(
            "--keep-boxes is for detectors whose raw boxes have a score each (kinds yolo and ssd-raw); leave it out"
        )
    if any(None in one.shape[1:] for one in tensors):
        raise UsageError("--keep-boxes needs a model with fixed output shapes; leave it out")
    if kind == "ssd-raw":
        if options.background is None:
            raise UsageError(
                "--keep-boxes of a decoder of kind ssd-raw needs the class of the background: state "
                "`--decoder background=0`, or -1 for none"
            )
        count = max(size or 0 for size in tensors[0].shape[1:])
        axes = [one.shape.index(count, 1) if count in one.shape[1:] else 1 for one in tensors]
        classes = min(size or 1 for size in tensors[0].shape[1:])
        rows = [1, classes - 1] if options.background == 0 else None
        return {"count": most, "scores": 0, "axis": axes, "rows": rows}
    shape = [size or 0 for size in tensors[0].shape]
    axis = 2 if len(shape) > 2 and shape[2] >= shape[1] else 1
    values = shape[3 - axis]
    if most <= values:
        raise UsageError(
            f"--keep-boxes {most} keeps fewer boxes than a box has values, {values}: state more"
        )
    return {"count": most, "scores": 0, "axis": [axis], "rows": [4, values - 1]}


def reduced(side: ModelInterface, keep: Mapping[str, Any] | None) -> ModelInterface:
    """Return a detector whose device keeps the best anchors, with the shapes that come from it."""
    if keep is None:
        return side
    outputs = []
    for tensor, axis in zip(side.outputs, keep["axis"], strict=True):
        shape = list(tensor.shape)
        shape[axis] = min(keep["count"], shape[axis] or keep["count"])
        outputs.append(tensor._replace(shape=tuple(shape)))
    return side._replace(outputs=tuple(outputs), output=outputs[0], keep=keep)
