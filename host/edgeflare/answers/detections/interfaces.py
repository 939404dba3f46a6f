"""Two detectors: the formats of their outputs, and the boxes that a device keeps."""

from collections.abc import Sequence
from typing import Any

from edgeflare._internal.text import names_text, shape_text
from edgeflare.answers.detections.formats import (
    DetectionReader,
    DetectorOptions,
    InferredFormat,
    check_format,
    choose_format,
    complete_options,
    infer_format,
    keep_anchors,
)
from edgeflare.answers.detections.formats.reader import RawOutputs
from edgeflare.answers.detections.kind import DETECTIONS
from edgeflare.answers.detections.settings import DetectionConfig
from edgeflare.answers.interface import Comparison, ModelInterface, ModelOutputs, check_same_classes
from edgeflare.answers.outputs import AnswerReader
from edgeflare.errors import ModelError, UsageError
from edgeflare.words.answers import boxes_read_as, taken_for_detectors


def detector_format(model: ModelOutputs) -> InferredFormat:
    """Return the format of a detector's outputs, as stated or inferred; of stated ones no reason.

    Raises ModelError where nothing tells it, and UsageError for a model that takes no upright image.
    """
    images = model.image_spec
    if images is None:
        raise UsageError(
            f"{model.whose} takes audio, and detectors take images: state another --task"
        )
    if images.orientation != "upright":
        raise UsageError(
            f"{model.whose} turns its input ({images.orientation}), and its boxes with it; give a detector "
            "that takes upright images"
        )
    if model.parts > 1:
        raise UsageError(
            f"{model.whose} detects objects, and boxes don't tell which of the pictures beside each other "
            "they are in: search one input, and give the others by --fixed-inputs"
        )
    stated = model.config.decoder
    if stated is None:
        stated = DetectorOptions()
    if not isinstance(stated, DetectorOptions):
        raise UsageError(f"the decoder that is stated for {model.whose} makes text, not boxes")
    if stated.kind != "auto":
        check_format(stated, model.tensors, model.metadata)
        return InferredFormat(stated, "")
    named = [one for one in model.named if one.name in stated.outputs] or model.named
    found = infer_format(named, model.size, model.metadata)
    if found is None:
        shapes = names_text(
            [f"{tensor.name} {shape_text(tensor.shape)}" for tensor in model.tensors]
        )
        raise ModelError(
            f"the outputs of {model.whose} ({shapes}) don't tell how they become boxes; if it is a detector, state "
            "the format with `--decoder kind=yolo` (or yolo-objectness, end-to-end, ssd, ssd-raw, fastestdet, grid), "
            "else another --task"
        )
    kept = {name: value for name, value in stated if name != "kind" and value not in (None, ())}
    others = tuple(one.model_copy(update=kept) for one in found.others)
    return found._replace(options=found.options.model_copy(update=kept), others=others)


def detector_interfaces(
    settings: DetectionConfig, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two detectors; the device sends as many boxes as is stated."""
    compared = Comparison(settings.rules(), settings.nms)
    formats = detector_format(original), detector_format(deployed)
    first, second = (
        _side(model, found, compared)
        for model, found in zip((original, deployed), formats, strict=True)
    )
    readers = _usual_reader(first), _usual_reader(second)
    if formats[0].options.background == formats[1].options.background:
        check_same_objects(*readers)
    return first, keeping_boxes(second, settings.keep)


def _side(model: ModelOutputs, found: InferredFormat, compared: Comparison) -> ModelInterface:
    """Return a detector's side: its outputs are those that the format names, in its order."""
    options, tensors = found.options, tuple(model.named)
    named = [tensor for name in options.outputs for tensor in tensors if tensor.name == name]
    tensors = tuple(named) or tensors
    return ModelInterface(
        model.spec,
        tensors[0],
        kind=DETECTIONS,
        task="detection",
        outputs=tensors,
        detector=options,
        formats=found if found.others else None,
        compared=compared,
    )


def _usual_reader(side: ModelInterface) -> AnswerReader:
    assert side.detector is not None  # noqa: S101 - it is a detector's side
    usual = complete_options(side.detector, side.outputs, side.size, ())
    return side._replace(detector=usual).reader("detections")


def detecting_reason(original: ModelOutputs, deployed: ModelOutputs) -> str | None:
    """Return why two models are taken for detectors, "" where that is stated; None: they aren't.

    Raises ModelError as `infer_format`.
    """
    if original.image_spec is None:
        return None
    configs = original.config, deployed.config
    if any(isinstance(config.decoder, DetectorOptions) for config in configs):
        return ""
    if any(config.output != "auto" for config in configs):
        return None
    inferred = infer_format(original.named, original.size, original.metadata)
    if inferred is None or original.parts > 1:
        return None
    return taken_for_detectors(inferred[1])


def settled(
    side: ModelInterface, outputs: Sequence[Any], whose: str, original: AnswerReader | None
) -> tuple[ModelInterface, str]:
    """Return a detector with the whole format that its values fit, and a notice; "": none.

    Raises ModelError for another number of classes than that of the `original`.
    """
    if original is not None:
        side = with_background_of(original, side)
    raws = [output if isinstance(output, tuple) else (output,) for output in outputs]
    detector, notice = format_by_values(side, raws, original, whose)
    if detector is not None:
        complete = complete_options(detector, side.outputs, side.size, raws)
        side = side._replace(detector=complete)
    if original is not None:
        check_same_objects(original, side.reader("detections"))
    return side, notice


def format_by_values(
    side: ModelInterface, raws: Sequence[RawOutputs], original: AnswerReader | None, whose: str
) -> tuple[DetectorOptions | None, str]:
    """Return the format that a detector's values fit, and a notice; "": the usual one.

    `original`: how the original is read; outputs of the same shape are read alike, whatever damage
    makes of a deployed model's values. Raises ModelError as `choose_format`.
    """
    if side.formats is None:
        return side.detector, ""
    formats, usual = (side.formats.options, *side.formats.others), side.formats.options
    if isinstance(original, DetectionReader):
        shapes = [sorted(map(str, one.shape)) for one in (original.tensors[0], side.outputs[0])]
        same = tuple(one for one in formats if one.kind == original.options.kind)
        formats = same if same and shapes[0] == shapes[1] else formats
    options = choose_format(formats, side.outputs, side.size, raws, is_usual=side.formats.is_usual)
    exchanged = options.kind == "ssd"
    is_said = isinstance(original, DetectionReader) and original.options.kind == options.kind
    # Of rows of 6 values one format alone fits, and a list of objects is the usual one.
    is_expected = options == usual and (side.formats.is_usual or usual.kind == "end-to-end")
    if is_expected or (is_said and not exchanged):
        return options, ""
    return options, boxes_read_as(whose, options.kind, options.outputs[1:] if exchanged else ())


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


def keeping_boxes(side: ModelInterface, most: int | None) -> ModelInterface:
    """Return a detector whose device sends only the `most` anchors with the best scores; None: all.

    Raises UsageError and ModelError as `edgeflare.answers.detections.formats.keep_anchors`.
    """
    if most is None or side.detector is None:
        return side
    keep, outputs = keep_anchors(side.outputs, side.detector, most)
    return side._replace(outputs=outputs, output=outputs[0], keep=keep, formats=None)
