"""What the checks of a triage share: both models on this machine, the seeds, and what was found so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers import SCORES, AnswerKind
from edgeflare.errors import ModelError
from edgeflare.triage.agreement import (
    FEWEST_SEEDS,
    GAIN,
    HEALTHY,
    MARGIN,
    OTHER_TOOLS,
    Outputs,
    by_seed,
    coarser,
    least_agreement,
)
from edgeflare.triage.cause import CORRECTED, Cause, NumberFormat
from edgeflare.triage.model import HostModel, ModelFile, RecordedModel
from edgeflare.triage.ways import Way
from edgeflare.types import Sample

MOST_SEEDS = 24
_LARGE_BYTES, _LARGE_INPUT = 20 << 20, 500_000
"""Of models whose files have more bytes together, or an input of more values, `FEWEST_SEEDS` are
compared: what bounds the work must not depend on how busy the machine is."""
LOSSY_CLASSES, LOSSY = 0.85, 15.0
"""Rounding that goes too far: the same class on fewer seeds than this, and a lower agreement. Healthy
int8 pairs have 87.5 % and more, but for ties at 37 dB."""
LOST_ACCURACY, LOST_SEEDS = 0.1, 5
"""An accuracy that falls by so much, on so many seeds, is a fault whatever references do."""


@dataclass(frozen=True)
class DeviceAnswers:
    """What the device answered to some seeds: the raw outputs' real values, one array an output.

    `repeated`: to how many of them it answered otherwise when it was asked again. `accelerator`: what
    runs the model there in place of the CPU, such as a delegate; "": nothing is known of one.
    """

    samples: Sequence[Sample]
    rows: Sequence[int]
    outputs: Outputs
    repeated: int = 0
    accelerator: str = ""


@dataclass(frozen=True)
class PairSeeds:
    """The seeds of a triage: samples, their class labels (-1: none), and rows of other inputs.

    `device`: what the device answered; None: no device was asked. `orientations`: by a seed's place, how
    an EXIF tag turns its image.
    """

    samples: Sequence[Sample]
    labels: Sequence[int] = ()
    rows: Sequence[int] = ()
    device: DeviceAnswers | None = None
    orientations: Mapping[int, str] = field(default_factory=dict)

    def row(self, place: int) -> int:
        """Return the row of a seed among the models' other inputs."""
        return self.rows[place] if self.rows else 0


@dataclass
class Pair:
    """Both models, the seeds, and what is known of them so far.

    `kind`: that of their answers. `causes` grow as checks find them; `ruled_out`
    has what was tried and doesn't fit, with counts. `is_unusable`: one side's answers tell nothing,
    so that nothing can be compared; `on_device`: the original's and the device's answers, where the same
    file answers otherwise there than here. Where the deployed file can't be run here, `seeds` are those
    that the device's answers are to.
    """

    files: tuple[ModelFile, ModelFile]
    seeds: PairSeeds
    kind: AnswerKind[Any] = SCORES
    causes: list[Cause] = field(default_factory=list)
    ruled_out: dict[str, Any] = field(default_factory=dict)
    is_unusable: bool = False
    on_device: tuple[Outputs, Outputs] | None = None
    near_on_device: tuple[Outputs, Outputs] | None = None
    """The same, where a float file answers there as well as half precision would."""
    lost_accuracy: float = 0.0
    reference: float | None = None
    """The agreement of a fresh int8 copy of the original, in dB."""
    exchanged_outputs: Outputs | None = None
    """The deployed model's outputs in the original's order, where they are exchanged."""
    output_order: tuple[int, ...] | None = None
    """Which output of the deployed model holds what each of the original's does, where they are exchanged."""
    has_reference: bool = False
    """Whether a fresh copy was tried."""
    reference_same_class: float | None = None
    sharp_layer: int | None = None
    """How many computing operators stand before the one behind which the tensors sharply part."""

    def __post_init__(self) -> None:
        original, deployed = self.files
        self.original = HostModel(original)
        self.deployed = HostModel(deployed) if deployed.runtime else RecordedModel(deployed)

    @property
    def is_recorded(self) -> bool:
        """Whether the deployed file can't be run here, so that the device's answers stand for it."""
        return isinstance(self.deployed, RecordedModel)

    @property
    def models(self) -> tuple[HostModel, HostModel]:
        """The original and the deployed model."""
        return self.original, self.deployed

    @cached_property
    def is_large(self) -> bool:
        """Whether both files together, or an input, are so large that less is asked."""
        models = self.models[: 1 if self.is_recorded else 2]
        size = sum(model.file.path.stat().st_size for model in models)
        values = max(sum(tensor.size for tensor in self.tensors(model, 0)) for model in models)
        return size > _LARGE_BYTES or values > _LARGE_INPUT

    @property
    def most_seeds(self) -> int:
        """How many seeds are compared at most: 24, and 8 of large models."""
        return FEWEST_SEEDS if self.is_large else MOST_SEEDS

    @cached_property
    def places(self) -> list[int]:
        """The seeds that are compared, evenly spread over those that aren't the same."""
        different = {
            (
                sample.shape,
                sha256(np.ascontiguousarray(sample).data).digest(),
                self.seeds.row(place),
            ): place
            for place, sample in reversed([*enumerate(self.seeds.samples)])
        }
        seeds = sorted(different.values())
        most = min(len(seeds), self.most_seeds)
        return [seeds[at] for at in np.unique(np.linspace(0, len(seeds) - 1, most).astype(int))]

    def tensors(self, model: HostModel, place: int, way: Way | None = None) -> list[NDArray[Any]]:
        """Return what a model's inputs are given for a seed, as stated or in another way."""
        seeds = self.seeds
        return model.tensors(seeds.samples[place], way or Way(model.spec), seeds.row(place))

    def fed(self, model: HostModel, place: int) -> list[NDArray[np.float64]]:
        """Return the real values that a model's inputs are fed for a seed, before they are quantised."""
        return model.fed(self.seeds.samples[place], self.seeds.row(place))

    def answers(
        self, model: HostModel, way: Way | None = None, places: Sequence[int] | None = None
    ) -> Outputs | None:
        """Return a model's answers to seeds; None where shapes change by seed. Raises ModelError."""
        places = self.places if places is None else places
        if model.file.runtime == "" and way is None and self.seeds.device is not None:
            return tuple(output[places] for output in self.seeds.device.outputs)
        samples = [self.seeds.samples[place] for place in places]
        rows = [self.seeds.row(place) for place in places]
        return model.answers(samples, way or Way(model.spec), rows)

    @cached_property
    def of_original(self) -> Outputs | None:
        """The original's answers to the compared seeds."""
        return self.answers(self.original)

    @cached_property
    def of_deployed(self) -> Outputs | None:
        """What the deployed file answers on this machine."""
        return self.answers(self.deployed)

    @property
    def both(self) -> tuple[Outputs, Outputs]:
        """The answers of both models, of shapes that don't change by seed."""
        first, second = self.of_original, self.of_deployed
        assert first is not None and second is not None, "checked before"  # noqa: S101, PT018
        return first, second

    @cached_property
    def number_format(self) -> NumberFormat:
        """The coarser format of both files' numbers."""
        return coarser(self.original.number_format, self.deployed.number_format)

    @property
    def expected(self) -> float:
        """The agreement that healthy pairs of this number format reach, in dB."""
        return HEALTHY[self.number_format]

    @cached_property
    def agreement(self) -> float:
        """How well the two agree as they are stated, in dB."""
        return least_agreement(*self.both)

    @cached_property
    def classes_at(self) -> int | None:
        """The place of the output that has scores of classes; None where there is none."""
        return self.kind.class_scores_at(self.both[0])

    @cached_property
    def same_class(self) -> float | None:
        """The share of the seeds on which both models decide for one class."""
        return self.share_of_one_class(*self.both)

    def share_of_one_class(self, first: Outputs, second: Outputs) -> float | None:
        """Return on which share of seeds these answers are for one class; None where none is meant."""
        place = self.classes_at
        if place is None or len(second) <= place:
            return None
        scores = by_seed(first[place]), by_seed(second[place])
        if scores[0].shape != scores[1].shape:
            return None
        return float((scores[0].argmax(axis=1) == scores[1].argmax(axis=1)).mean())

    @property
    def is_off(self) -> bool:
        """Whether the pair agrees worse than healthy pairs do."""
        return self.are_off(*self.both)

    def are_off(self, first: Outputs, second: Outputs) -> bool:
        """Whether a deployed model with these answers is worse than healthy ones, or loses too much."""
        agreement, same_class = (
            least_agreement(first, second),
            self.share_of_one_class(first, second),
        )
        is_lossy = same_class is not None and same_class < LOSSY_CLASSES and agreement < LOSSY
        return (
            agreement < self.expected
            or (is_lossy and self.number_format != "float32")
            or self.lost_accuracy >= LOST_ACCURACY
            or any(cause.kind == "constant" for cause in self.causes)
        )

    @property
    def loses_much(self) -> bool:
        """Whether the pair is further below a fresh int8 copy than healthy files of other tool chains are."""
        return self.reference is not None and self.agreement < self.reference - OTHER_TOOLS

    @property
    def is_slightly_off(self) -> bool:
        """Whether an int8 pair is healthy by itself, and not far below a fresh int8 copy."""
        return (
            self.number_format == "int8"
            and not self.is_off
            and (self.reference is None or self.agreement >= self.reference - 2 * MARGIN)
        )

    def corrects(self, agreement: float) -> bool:
        """Whether a change that brings this agreement makes the pair healthy."""
        needed = self.expected
        if self.reference is not None:
            # a smaller input doesn't leave a range that cuts off, either: that mends it in part
            is_cut = any(cause.kind == "calibration" for cause in self.causes)
            needed = max(needed, self.reference - (2 * MARGIN if is_cut else OTHER_TOOLS))
        return agreement >= needed and agreement - self.agreement >= GAIN

    @property
    def is_corrected(self) -> bool:
        """Whether a change was found that makes the pair agree."""
        return any(cause.strength == CORRECTED for cause in self.causes)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(height, width) of the images of the compared seeds; none of clips."""
        shapes = {self.seeds.samples[place].shape[:-1] for place in self.places}
        return [(int(shape[0]), int(shape[1])) for shape in sorted(shapes) if shape]

    def score(
        self, model: HostModel, expected: Outputs, way: Way, places: Sequence[int]
    ) -> Callable[[int], float]:
        """Return what tells how well a model that is fed in a way agrees with answers to the first seeds."""
        samples = [self.seeds.samples[place] for place in places]
        rows = [self.seeds.row(place) for place in places]
        return agreement_with(model, expected, way, samples, rows)


def agreement_with(
    model: HostModel, expected: Outputs, way: Way, samples: Sequence[Sample], rows: Sequence[int]
) -> Callable[[int], float]:
    """Return what tells how well a model that is fed in a way agrees with answers to the first samples."""

    def of_first(count: int) -> float:
        try:
            answers = model.answers(samples[:count], way, rows[:count])
        except ModelError:
            return -np.inf
        if answers is None or not all(np.isfinite(output).all() for output in answers):
            return -np.inf
        first = tuple(output[:count] for output in expected)
        pair = (answers, first) if model.side == "original" else (first, answers)
        return least_agreement(*pair)

    return of_first
