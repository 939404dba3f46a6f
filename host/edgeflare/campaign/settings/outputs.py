"""What both models' answers are, and when two of them are the same: tables of the configuration."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import Self

from edgeflare.answers.values import LARGEST_DISTANCES
from edgeflare.campaign.settings.flags import OUTPUTS, Flag, Key, conflict
from edgeflare.models import AbsolutePath
from edgeflare.types import DetectionRules, ValueMeasure, ValueRules

_Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class DetectionConfig(BaseModel):
    """What a detector's boxes must have to count, and when two are of one object."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    confidence: Annotated[_Share, Flag("--confidence", metavar="F", panel=OUTPUTS)] = Field(
        default=0.5,
        description="Of detectors and models of several labels, the least score that is an answer; default 0.5.",
    )
    nms: Annotated[_Share, Flag("--nms", metavar="F", panel=OUTPUTS)] = Field(
        default=0.45,
        description="Of detectors whose boxes are raw, the overlap (intersection over union) of two boxes "
        "of one class from which only the better one is kept; default 0.45.",
    )
    match_iou: Annotated[_Share, Flag("--match-iou", metavar="F", panel=OUTPUTS)] = Field(
        default=0.5,
        description="The least overlap of both models' boxes of one object; default 0.5.",
    )
    shift_iou: Annotated[_Share, Flag("--shift-iou", metavar="F", panel=OUTPUTS)] = Field(
        default=0.75,
        description="Below this overlap the deployed model's box has shifted; default 0.75.",
    )
    keep: Annotated[int | None, Flag("--keep-boxes", metavar="N", panel=OUTPUTS)] = Field(
        default=None,
        ge=1,
        description="The device sends only the N raw boxes with the highest scores: less traffic on a slow link.",
        examples=[300],
    )

    class_names: Annotated[AbsolutePath | None, Flag("--class-names", panel=OUTPUTS)] = Field(
        default=None,
        description="A file with the names of the classes, one a line, for reports and limits; by "
        "default those in the original's file.",
        examples=["coco.names"],
    )

    @model_validator(mode="after")
    def _can_shift(self) -> Self:
        if self.shift_iou < self.match_iou:
            raise ValueError(
                f"shift_iou (--shift-iou, {self.shift_iou:.15g}) is below match_iou (--match-iou, "
                f"{self.match_iou:.15g}): no object could have shifted then"
            )
        return self

    def rules(self, *, located: bool = True) -> DetectionRules:
        """Return the rules that the answers carry."""
        return DetectionRules(self.confidence, self.match_iou, self.shift_iou, located)


class ValuesConfig(BaseModel):
    """How answers of real values are compared: maps, embeddings and vectors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    measure: Annotated[ValueMeasure | None, Flag("--measure", metavar="NAME", panel=OUTPUTS)] = (
        Field(
            default=None,
            description="What --tolerance is compared with: labels (the share of pixels whose label differs; of "
            "maps the default), absolute (the largest difference of an element; of vectors the default), "
            "relative (that relative to the original's) or cosine (1 less the cosine; of embeddings the default).",
            examples=["absolute"],
        )
    )
    threshold: Annotated[float, Flag("--threshold", metavar="F", panel=OUTPUTS)] = Field(
        default=0.5,
        allow_inf_nan=False,
        description="Of maps with a single channel, the least value of label 1; default 0.5.",
    )
    axis: Annotated[int | None, Flag("--channel-axis", metavar="N", panel=OUTPUTS)] = Field(
        default=None,
        ge=-1,
        le=3,
        description="Of maps, the axis of the labels' scores in the original's output, without the batch: 0 "
        "(channels first) or -1 (last); by default as the sizes of input and output tell.",
        examples=[-1],
    )
    tolerances: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...] = Field(
        default=(),
        description="A tolerance for each element of a vector, in place of --tolerance.",
        examples=[[0.1, 0.1, 2.0]],
    )
    gallery: Annotated[AbsolutePath | None, Flag("--gallery", panel=OUTPUTS)] = Field(
        default=None,
        description="An .npz with embeddings [n, size] as `embeddings`: models of embeddings are compared by the "
        "nearest one of them, which is then a class.",
        examples=["gallery.npz"],
    )

    def rules(self, default: ValueMeasure, axis: int | None = 0) -> ValueRules:
        """Return the rules that the answers carry; `axis`: that of the channels, None of label maps."""
        return ValueRules(self.measure or default, self.threshold, axis, self.tolerances)

    @model_validator(mode="after")
    def _divides_by_tolerances(self) -> "ValuesConfig":
        if self.tolerances and self.measure in LARGEST_DISTANCES:
            raise conflict(
                "{tolerances} are of the elements of a vector, with measure absolute or relative, not with {measure}",
                tolerances=Key("tolerances"),
                measure=Key("measure", f'measure = "{self.measure}"', str(self.measure)),
            )
        return self
