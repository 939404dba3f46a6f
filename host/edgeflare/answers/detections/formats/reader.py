"""A detector's raw outputs -> `Detections`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import plugins
from edgeflare._internal.text import names_text, shape_text
from edgeflare.answers.detections.formats.dense import Decoder, Found, listed
from edgeflare.answers.detections.formats.grid import Grids
from edgeflare.answers.detections.formats.heads import SplitHead, YoloHead
from edgeflare.answers.detections.formats.options import BUILT_IN, DetectorOptions
from edgeflare.answers.detections.formats.processed import EndToEnd, SsdObjects
from edgeflare.answers.detections.formats.suppression import best, ordered, suppressed
from edgeflare.answers.outputs import OutputKind
from edgeflare.errors import ModelError, UsageError
from edgeflare.types import DetectionRules, Detections, Output
from edgeflare_agent.configuration.reduction import Reduction
from edgeflare_agent.decoding import RawOutput
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

CANDIDATE_SHARE = 0.25
"""Candidates score at least this share of the confidence.

It is enough to tell how near an object is to being detected, and few enough: of photographs, about
60 to 160 of 484 to 4420 anchors of the real detectors reach it, while most of the others have a
score near 0.
"""

_USUAL_RULES = DetectionRules()

RawOutputs: TypeAlias = NDArray[Any] | Sequence[NDArray[Any]]
"""The raw outputs of one sample in the order of the tensors; an array alone is the only one."""


@dataclass(frozen=True)
class DetectionReader:
    """Converts one model's raw outputs to detections.

    `tensors` describe the raw outputs of a sample, in their order. `size`: the model's input, (height,
    width) in pixels. `nms`: boxes of one class that overlap with a better one by more than this IoU
    are suppressed, where `options.suppresses`. Raises ModelError where the tensors are not of the
    stated format, UsageError where a user's decoder is unusable.
    """

    tensors: tuple[TensorInfo, ...]
    options: DetectorOptions
    size: tuple[int, int]
    rules: DetectionRules = _USUAL_RULES
    nms: float = 0.45
    places: tuple[int, ...] = field(init=False)
    decoder: Decoder = field(init=False)

    kind: OutputKind = field(default="detections", init=False)

    def __post_init__(self) -> None:
        """Find the tensors that the format needs, and check them."""
        places = read_places(self.tensors, self.options)
        chosen = tuple(self.tensors[place] for place in places)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "decoder", decoder_of(chosen, self.options, self.size))

    @property
    def classes(self) -> int:
        """The number of classes; 0 where the outputs don't tell."""
        return self.decoder.classes

    def read(self, raw: RawOutput | Output | RawOutputs) -> Detections:
        """Return the detections, and candidates below the confidence, of one sample's raw outputs.

        Integers are de-quantised by each tensor's own parameters. Candidates score at least
        `CANDIDATE_SHARE` of the confidence; `suppression.MOST` remain, the best ones, or all that are
        detected where those are more. Ties of scores are ordered by anchor. Where a raw output has
        NaN or infinity at an anchor, that one comes first with a score of NaN; it is neither
        suppressed nor suppresses others. Detections are returned unchanged. Raises ModelError where
        the arrays are not those of the tensors, and where a user's decoder fails.
        """
        if isinstance(raw, Detections):
            return raw
        several = raw if isinstance(raw, tuple | list) else (raw,)
        raws = [one for one in several if isinstance(one, np.ndarray)]
        if len(raws) != len(self.tensors):
            raise ModelError(
                f"{len(raws)} raw outputs were read where the model has {len(self.tensors)}; read "
                "all outputs that the decoder is stated for"
            )
        floor = CANDIDATE_SHARE * self.rules.confidence
        found = self.decoder.decode([raws[place] for place in self.places], floor)
        found = ordered(found)
        if self.options.suppresses:
            found = suppressed(found, self.nms)
        return Detections(*best(found, self.rules.confidence), self.rules)

    def read_all(self, raws: Sequence[RawOutput | Output]) -> list[Output]:
        """Return the detections of several samples' raw outputs, each as `read` has it."""
        return [self.read(raw) for raw in raws]


class _UsersDecoder(Decoder):
    """A user's own decoder, from an entry point."""

    def __post_init__(self) -> None:
        plugins.check_installed("detector", self.options.kind, BUILT_IN)
        if not callable(plugins.load("detector", self.options.kind)):
            raise plugins.unusable(
                "detector", self.options.kind, "must be a function of outputs and size"
            )

    def decode(self, raws: Sequence[NDArray[Any]], floor: float) -> Found:
        real = {
            tensor.name: dequantize(raw, tensor.quantization)
            for raw, tensor in zip(raws, self.tensors, strict=True)
        }
        try:
            made = plugins.load("detector", self.options.kind)(real, self.size)
            boxes, labels, scores = (np.asarray(one, np.float64) for one in made)
        except Exception as error:  # the user's code: it may raise anything
            raise self._unusable(f"failed: {type(error).__name__}: {error}") from error
        count = len(scores) if scores.ndim == 1 else -1
        if boxes.shape != (count, 4) or labels.shape != (count,):
            raise self._unusable(
                f"returned boxes, labels and scores of shapes {shape_text(boxes.shape)}, "
                f"{shape_text(labels.shape)} and {shape_text(scores.shape)}, not [n, 4], [n] and [n]"
            )
        return listed(boxes, labels, scores, floor)

    def _unusable(self, why: str) -> ModelError:
        return ModelError(str(plugins.unusable("detector", self.options.kind, why)))


def decoder_of(
    tensors: tuple[TensorInfo, ...], options: DetectorOptions, size: tuple[int, int]
) -> Decoder:
    """Return the decoder of a format for its tensors. Raises ModelError where they don't fit."""
    if options.kind == "auto":
        raise ModelError(
            "the kind of the decoder is auto, which reads nothing: take the format that `infer_format` "
            "returns, or state the kind"
        )
    return _DECODERS.get(options.kind, _UsersDecoder)(tensors, options, size)


_DECODERS: Mapping[str, type[Decoder]] = {
    "yolo": YoloHead,
    "yolo-objectness": YoloHead,
    "end-to-end": EndToEnd,
    "ssd": SsdObjects,
    "ssd-raw": SplitHead,
    "grid": Grids,
    "fastestdet": Grids,
}
_TENSORS = {"yolo": 1, "yolo-objectness": 1, "end-to-end": 1, "ssd-raw": 2, "fastestdet": 1}
"""Number of tensors of a format that has a fixed one."""


def read_places(tensors: Sequence[TensorInfo], options: DetectorOptions) -> tuple[int, ...]:
    """Return the places of the tensors that a format reads, in its order.

    As `options.outputs` names them, else all of them. Raises ModelError for a name that no tensor
    has, and for another number than the format has.
    """
    names = [tensor.name for tensor in tensors]
    for name in options.outputs:
        if name not in names:
            raise ModelError(
                f"the model has no output {name!r}, which the decoder is to read; it has "
                + names_text(names)
            )
    places = tuple(names.index(name) for name in options.outputs) or tuple(range(len(names)))
    expected = _TENSORS.get(options.kind, len(places))
    if len(places) != expected:
        raise ModelError(
            f"a decoder of kind {options.kind} reads {expected} outputs, and here are {len(places)} "
            f"({names_text([names[place] for place in places])}); name those with `--decoder outputs=`"
        )
    return places


def keep_anchors(
    tensors: Sequence[TensorInfo], options: DetectorOptions, most: int
) -> tuple[Mapping[str, Any], tuple[TensorInfo, ...]]:
    """Return how a device reduces raw outputs to the `most` best anchors, and the tensors then.

    `tensors`: in the order of the format. The first value is what
    `edgeflare_agent.configuration.reduction.Reduction` reads. Raises UsageError where the outputs
    aren't of anchors with a score each, have open axes, or don't tell which scores matter;
    ModelError where they aren't of the format.
    """
    if options.kind not in ("yolo", "ssd-raw"):
        raise UsageError(
            "--keep-boxes is for detectors whose raw boxes have a score each (kinds yolo and ssd-raw); leave it out"
        )
    if any(None in tensor.shape[1:] for tensor in tensors):
        raise UsageError("--keep-boxes needs a model with fixed output shapes; leave it out")
    if options.kind == "ssd-raw" and options.background is None:
        raise UsageError(
            "--keep-boxes of a decoder of kind ssd-raw needs the class of the background: state "
            "`--decoder background=0`, or -1 for none"
        )
    chosen = tuple(tensors[place] for place in read_places(tensors, options))
    head = decoder_of(chosen, options, (0, 0))
    assert isinstance(head, YoloHead | SplitHead)  # noqa: S101 - by its kind
    if most <= head.values:
        raise UsageError(
            f"--keep-boxes {most} keeps no more boxes than a box has values, {head.values}: state more"
        )
    reduction = Reduction(most, 0, head.anchor_axes, head.score_rows)
    return reduction.to_json(), tuple(reduction.announced(tensors))
