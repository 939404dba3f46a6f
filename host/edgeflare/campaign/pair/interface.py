"""One model as a campaign sees it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare.models import (
    AnswerReader,
    ChosenInput,
    DetectionReader,
    DetectorOptions,
    InferredFormat,
    InputSpec,
    OutputKind,
    OutputReader,
    Repair,
    Spec,
    TensorInfo,
)
from edgeflare.models.value_outputs import GalleryReader, TagsReader, ValuesReader
from edgeflare.oracles import TASKS
from edgeflare.store.database import decoding
from edgeflare.types import DetectionRules, Task, ValueRules


class Comparison(NamedTuple):
    """What the answers carry: how two of them are compared."""

    rules: DetectionRules = DetectionRules()
    nms: float = 0.45
    value_rules: ValueRules = ValueRules()
    moved_axes: tuple[int, int] | None = None
    """From which axis to which the channels of this model's maps are moved."""
    as_labels: bool = False
    """Whether maps are read as their labels."""
    gallery: NDArray[np.float64] | None = None
    gallery_path: Path | None = None


class ModelInterface(NamedTuple):
    """One model as the campaign sees it: how samples enter it, and which output counts.

    `task`: what the answers are; `classes` are known of classification alone. `outputs`: those that
    are read together, `output` being the first; empty where one counts. `detector`: how they become
    boxes; `compared`: what answers other than classes and text carry. `labels_only`: the
    output is a class index, not a score for each class. `decoder` is what identifies the way to a
    transcript. `repair` replaces the answers, which are probabilities then. `doubt`: how what is
    stated contradicts the model's file.
    """

    spec: Spec
    output: TensorInfo
    classes: int = 0
    labels_only: bool = False
    task: Task = "classification"
    outputs: tuple[TensorInfo, ...] = ()
    detector: DetectorOptions | None = None
    keep: Mapping[str, Any] | None = None
    """How the device reduces its boxes."""
    formats: InferredFormat | None = None
    """What the outputs' shapes tell of the format where values are still to decide it."""
    compared: Comparison = Comparison()
    decoder: Mapping[str, Any] | None = None
    repair: Repair | None = None
    doubt: str = ""
    inferred: str = ""
    """Why it is taken for what it is, where nothing states that."""
    chosen: ChosenInput | None = None
    """Which input the samples become, and what the others are given."""

    @property
    def transcribes(self) -> bool:
        """Whether the answers are text."""
        return self.task == "transcript"

    @property
    def answers(self) -> str:
        """What the answers are, in words."""
        return TASKS[self.task]

    @property
    def has_classes(self) -> bool:
        """Whether the answers are scores of classes, of which one is meant."""
        return self.task == "classification"

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of the input, (0, 0) of audio; of several searched ones, of each."""
        return picture_size(self.spec, self.parts)

    @property
    def parts(self) -> int:
        """The number of the inputs that samples become."""
        return 1 if self.chosen is None else self.chosen.given.parts

    @property
    def asked(self) -> str | tuple[str, ...]:
        """The name of the output that counts, or the names of those that are read together."""
        return tuple(output.name for output in self.outputs) if self.outputs else self.output.name

    def reader(self, kind: OutputKind) -> AnswerReader:
        """Return how its raw outputs become answers. Raises ModelError where they can't."""
        compared = self.compared
        if kind == "detections" and self.detector is not None:
            return DetectionReader(
                self.outputs, self.detector, self.size, compared.rules, compared.nms
            )
        if kind in ("tags", "tag-logits"):
            return TagsReader(self.output, compared.rules, kind == "tag-logits")
        if kind == "values":
            return ValuesReader(
                self.outputs, compared.value_rules, compared.moved_axes, compared.as_labels
            )
        if kind == "gallery" and compared.gallery is not None:
            return GalleryReader(self.output, compared.gallery)
        return OutputReader(self.output, kind, self.classes)

    def stored_reader(self, output: Mapping[str, Any], folder: Path) -> AnswerReader:
        """Return the reader of a campaign that has begun, of its stored `model_identity`.

        Raises StoreError where that is damaged in the campaign `folder`.
        """
        kind, detector = stored_format(output, folder)
        side = self if detector is None else self._replace(detector=detector)
        return side.reader(kind)


def picture_size(spec: Spec, parts: int) -> tuple[int, int]:
    """Return the height and width of each of so many pictures beside each other, (0, 0) of audio."""
    return (spec.size[0], spec.size[1] // parts) if isinstance(spec, InputSpec) else (0, 0)


def stored_format(
    output: Mapping[str, Any], folder: Path
) -> tuple[OutputKind, DetectorOptions | None]:
    """Return what outputs are, by the stored `model_identity` of a campaign in `folder`.

    The format is that of a detector. Raises StoreError where either is damaged.
    """
    with decoding(folder, "what is known of the models"):
        kind, detector = output["kind"], output.get("detector")
        if kind not in get_args(OutputKind):
            raise ValueError(f"{str(kind)[:99]} is no kind of output")
        return kind, None if detector is None else DetectorOptions.model_validate(detector)
