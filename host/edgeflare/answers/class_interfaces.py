"""Two models that answer with scores of classes, or with labels: which outputs these are, and what is in them."""

from collections.abc import Sequence
from typing import Any, cast

from edgeflare._internal.text import shape_text
from edgeflare.answers.interface import ModelInterface, ModelOutputs, check_same_classes
from edgeflare.answers.outputs import (
    SINGLE_KINDS,
    AnswerReader,
    OutputKind,
    check_index,
    detect_kind,
    has_one_value,
    is_index,
    largest_sum_error,
    output_classes,
)
from edgeflare.answers.scores import LABELS, SCORES
from edgeflare.errors import ModelError
from edgeflare.words.answers import taken_for_probabilities, taken_for_sigmoids
from edgeflare_agent.audio_spec import AudioSpec
from edgeflare_agent.image_spec import TensorInfo

_SUM_TOLERANCE = 0.02


def _check_no_frames(model: ModelOutputs, output: TensorInfo) -> None:
    """Raise ModelError where an output has scores for each moment, of a model of audio or time first."""
    shape = output.shape
    is_first = output.name in model.unbatched and sum(size != 1 for size in shape) > 1
    if is_first:
        shape = shape[1:]
    elif not isinstance(model.spec, AudioSpec) or len(shape) != 3:
        return
    if is_first or sum(size != 1 for size in shape[1:]) > 1:
        raise ModelError(
            f"output {output.name!r} of {model.whose} has shape {shape_text(shape)}"
            + (
                ", whose first axis is no batch (one input has several entries there, such as moments in time)"
                if is_first
                else ""
            )
            + ": not one score for each class; if it returns text, state how its outputs become text "
            "with `--decoder vocabulary=FILE` (a token a line)"
            + (", else --task dense, vector or embedding" if is_first else "")
        )


def _original_classes(output: TensorInfo, config: Any) -> int:
    """Return the number of classes: that of the original's scores.

    Raises ModelError where its output is none of scores.
    """
    unknown = output.shape in ((), (None,))  # so is one whose rank the file leaves open
    if config.output == "label":
        raise ModelError(
            "the original model is stated to return labels, as `--output label` states of both "
            "models; only the deployed one may: use `--deployed-output label`"
        )
    if has_one_value(output) and not is_index(output) and config.output in SINGLE_KINDS:
        return 2
    if is_index(output) or (has_one_value(output) and not unknown):
        raise ModelError(
            f"output {output.name!r} of the original model is one value, not a score for each "
            "class: if it is the probability of one of two classes, state `--output sigmoid` "
            "(`sigmoid-logits` before the sigmoid); if it is a label, give the original as it was "
            "before it was made to tell a label alone (only the deployed model may: "
            "`--deployed-output label`); if it is a number, state `--task vector`"
        )
    return output_classes(output, "the original model")


def _returns_label(output: TensorInfo, config: Any, classes: int) -> bool:
    """Whether the deployed model's output is a class index, as stated or by its type and shape.

    Raises ModelError where it is none and has no score for each of the original's `classes` either.
    """
    if config.output == "label" or (config.output == "auto" and is_index(output)):
        check_index(output)
        return True
    if has_one_value(output) and classes == 2 and config.output in SINGLE_KINDS:
        return False
    if has_one_value(output):
        raise ModelError(
            f"output {output.name!r} of the deployed model is one value ({output.dtype}) where the "
            f"original has {classes} classes; if it is the class index, state `--deployed-output "
            "label`"
            + (
                ", if it is the probability of class 1 `--deployed-output sigmoid`"
                if classes == 2
                else ""
            )
        )
    count = output_classes(output, "the deployed model")
    check_same_classes(classes, count)
    return False


def class_outputs(original: ModelOutputs, deployed: ModelOutputs) -> tuple[TensorInfo, TensorInfo]:
    """Return both models' outputs of class scores. Raises ModelError for those of moments in time."""
    first, second = (
        model.single("the class scores", ", or state another --task")
        for model in (original, deployed)
    )
    _check_no_frames(original, first)
    _check_no_frames(deployed, second)
    return first, second


def classifying_interfaces(
    original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two classifiers. Raises ModelError where they don't fit."""
    first, second = class_outputs(original, deployed)
    classes = _original_classes(first, original.config)
    kind = LABELS if _returns_label(second, deployed.config, classes) else SCORES
    return ModelInterface(original.spec, first, classes), ModelInterface(
        deployed.spec, second, classes, kind
    )


def scores_form(
    side: ModelInterface,
    stated: str,
    outputs: Sequence[Any],
    whose: str,
    original: AnswerReader | None,
) -> tuple[OutputKind, str]:
    """Return what a model's scores are, as stated or by its outputs on the seeds, and a notice.

    `original`: how those of the original are read; None for the original itself. Only its outputs tell
    sigmoids from probabilities: a deployed model that is wrong may have any sum.
    """
    if side.repair is not None:
        return "probabilities", ""
    if has_one_value(side.output) and stated in SINGLE_KINDS:
        return SINGLE_KINDS[stated], ""
    if stated != "auto":
        return cast("OutputKind", stated), ""
    kind = detect_kind(side.output, outputs)
    if kind != "probabilities" or (original is not None and original.kind == "sigmoid"):
        return ("sigmoid" if kind == "probabilities" else kind), ""
    off = largest_sum_error(side.output, outputs)
    if off <= _SUM_TOLERANCE:
        return kind, ""
    if original is None:
        return "sigmoid", taken_for_sigmoids(whose, off)
    return kind, taken_for_probabilities(whose, off)
