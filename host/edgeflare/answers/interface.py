"""Two models as a campaign sees them: their outputs as their files have them, and how these become answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import names_text
from edgeflare.answers import SCORES, kind_of_output
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.outputs import AnswerReader
from edgeflare.errors import ModelError
from edgeflare.types import DetectionRules, Task, ValueRules
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.configuration.fixed_inputs import GivenInputs
from edgeflare_agent.image_spec import InputSpec, TensorInfo
from edgeflare_agent.repair import Repair


class ChosenInput(NamedTuple):
    """The input of a model that samples become, and what the others are given.

    `rows`: where inputs have a row for each seed, that of each by the seed's name; else empty.
    """

    tensor: TensorInfo
    given: GivenInputs
    rows: Mapping[str, int]


class ModelOutputs(NamedTuple):
    """A model's outputs as its file has them; `whose` it is, for messages.

    `config` is the model's table of the campaign's configuration.
    """

    tensors: Sequence[TensorInfo]
    metadata: Mapping[str, str]
    config: Any
    whose: str
    spec: Any = None
    """How samples enter it, a `Spec`; None as long as that is not known."""
    parts: int = 1
    """The number of the inputs that samples become."""
    unbatched: frozenset[str] = frozenset()
    """Outputs whose first axis in the file is no batch; in `tensors` they have one of 1 before it."""
    in_file: Sequence[TensorInfo] = ()
    """All outputs with the shapes of the file."""
    decoder: Mapping[str, Any] | None = None
    """What the file tells of how outputs become text."""

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of an input, (0, 0) of audio."""
        return picture_size(self.spec, self.parts)

    @property
    def image_spec(self) -> InputSpec | None:
        """How images enter it; None: it takes audio, or that is not known."""
        return of_images(self.spec)

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
        names = names_text([tensor.name for tensor in found])
        flag = "original" if "original" in self.whose else "deployed"
        raise ModelError(
            f"{self.whose} has {len(found)} outputs ({names}); name the one with {what} with "
            f"`--{flag}-output-name`{advice}"
        )


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

    `kind`: of its answers, with a `task` of it; `classes` are known where one is meant. `outputs`:
    those that are read together, `output` being the first; empty where one counts. `detector`: how
    they become boxes, `DetectorOptions`; `compared`: what answers other than classes and text carry. `decoder` is what
    identifies the way to a transcript, `sent_decoder` what a device is sent for it. `repair`
    replaces the answers, which are probabilities then. `doubt`: how what is stated contradicts the
    model's file.
    """

    spec: Spec
    output: TensorInfo
    classes: int = 0
    kind: AnswerKind[Any] = SCORES
    task: Task = "classification"
    outputs: tuple[TensorInfo, ...] = ()
    detector: Any = None
    keep: Mapping[str, Any] | None = None
    """How the device reduces its boxes."""
    formats: Any = None
    """The `InferredFormat` that the outputs' shapes tell values are still to decide it."""
    compared: Comparison = Comparison()
    decoder: Mapping[str, Any] | None = None
    sent_decoder: Mapping[str, Any] | None = None
    repair: Repair | None = None
    doubt: str = ""
    inferred: str = ""
    """Why it is taken for what it is, where nothing states that."""
    feed: Mapping[str, Any] | None = None
    """What tells how samples enter it, where that isn't stated: `source` and `names`."""
    form: str = ""
    """What its output is, such as logits, once outputs to the first seeds were seen."""
    chosen: ChosenInput | None = None
    """Which input the samples become, and what the others are given."""

    @property
    def answers(self) -> str:
        """What the answers are, in words."""
        return self.kind.tasks[self.task]

    @property
    def size(self) -> tuple[int, int]:
        """The height and width of the input, (0, 0) of audio; of several searched ones, of each."""
        return picture_size(self.spec, self.parts)

    @property
    def image_spec(self) -> InputSpec | None:
        """How images enter it; None: it takes audio."""
        return of_images(self.spec)

    @property
    def label_count(self) -> int:
        """The number of the classes of which a label names one; 0: its answers have none."""
        return self.classes if self.kind.has_classes else 0

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


def of_images(spec: Spec | None) -> InputSpec | None:
    """Return how images enter a model; None: it takes audio, or that is not known."""
    return spec if isinstance(spec, InputSpec) else None


def picture_size(spec: Spec | None, parts: int) -> tuple[int, int]:
    """Return the height and width of each of so many pictures beside each other, (0, 0) of audio."""
    images = of_images(spec)
    return (0, 0) if images is None else (images.size[0], images.size[1] // parts)


def plain_interfaces(
    kind: AnswerKind[Any], task: Task, original: ModelOutputs, deployed: ModelOutputs
) -> tuple[ModelInterface, ModelInterface]:
    """Return the interfaces of two models with their only output each.

    Raises ModelError where several could be meant.
    """
    first, second = (
        ModelInterface(outputs.spec, outputs.single(f"the {task} answer"), kind=kind, task=task)
        for outputs in (original, deployed)
    )
    return first, second


def check_same_classes(original: int, deployed: int) -> None:
    """Raise ModelError for two numbers of classes."""
    if original != deployed:
        raise ModelError(
            f"the original model has {original} classes and the deployed model {deployed}: they "
            "are not two versions of one model"
            + (
                "; one class more may be the background: export both with the same classes"
                if abs(original - deployed) == 1
                else ""
            )
        )
