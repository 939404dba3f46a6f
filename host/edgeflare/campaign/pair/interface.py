"""One model as a campaign sees it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers import LABELS, kind_of_output, kind_of_task
from edgeflare.answers.kind import AnswerKind
from edgeflare.models import (
    AnswerReader,
    ChosenInput,
    DetectorOptions,
    InferredFormat,
    InputSpec,
    Repair,
    Spec,
    TensorInfo,
)
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
    form: str = ""
    """What its output is, such as logits, once outputs to the first seeds were seen."""
    chosen: ChosenInput | None = None
    """Which input the samples become, and what the others are given."""

    @property
    def kind(self) -> AnswerKind[Any]:
        """The kind of its answers."""
        return LABELS if self.labels_only else kind_of_task(self.task)

    @property
    def transcribes(self) -> bool:
        """Whether the answers are text."""
        return self.task == "transcript"

    @property
    def answers(self) -> str:
        """What the answers are, in words."""
        return self.kind.tasks[self.task]

    @property
    def has_classes(self) -> bool:
        """Whether the answers are scores of classes, of which one is meant."""
        return self.kind.has_classes

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

    def reader(self, form: str) -> AnswerReader:
        """Return how its raw outputs, of this form, become answers. Raises ModelError where they can't."""
        reader: AnswerReader = kind_of_output(form).reader(self._replace(form=form))
        return reader

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


def stored_format(output: Mapping[str, Any], folder: Path) -> tuple[str, DetectorOptions | None]:
    """Return what outputs are, by the stored `model_identity` of a campaign in `folder`.

    The format is that of a detector. Raises StoreError where either is damaged.
    """
    with decoding(folder, "what is known of the models"):
        kind, detector = output["kind"], output.get("detector")
        kind_of_output(kind)
        return kind, None if detector is None else DetectorOptions.model_validate(detector)


def plain_interfaces(
    task: Task, original: Any, deployed: Any
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two models, `ModelOutputs`, with their only output each.

    Raises ModelError where several could be meant.
    """
    first, second = (
        ModelInterface(outputs.spec, outputs.single(f"the {task} answer"), task=task)
        for outputs in (original, deployed)
    )
    return first, second
