"""The settings of detectors: which boxes count, and when two are of one object."""

from typing import Annotated

from pydantic import BaseModel, Field, model_validator
from typing_extensions import Self

from edgeflare._internal.flags import OUTPUTS, Flag, ForTasks
from edgeflare._internal.toml import AbsolutePath
from edgeflare.types import DetectionRules

_Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


class DetectionConfig(BaseModel, extra="forbid", frozen=True):
    """What a detector's boxes must have to count, and when two are of one object."""

    confidence: Annotated[
        _Share,
        Flag("--confidence", metavar="F", panel=OUTPUTS),
        ForTasks("detection", "multi-label"),
    ] = Field(
        default=0.5,
        description="Of detectors and models of several labels, the least score that is an answer; default 0.5.",
    )
    nms: Annotated[_Share, Flag("--nms", metavar="F", panel=OUTPUTS), ForTasks("detection")] = (
        Field(
            default=0.45,
            description="Of detectors whose boxes are raw, the overlap (intersection over union) of two boxes "
            "of one class from which only the better one is kept; default 0.45.",
        )
    )
    match_iou: Annotated[
        _Share, Flag("--match-iou", metavar="F", panel=OUTPUTS), ForTasks("detection")
    ] = Field(
        default=0.5,
        description="The least overlap of both models' boxes of one object; default 0.5.",
    )
    shift_iou: Annotated[
        _Share, Flag("--shift-iou", metavar="F", panel=OUTPUTS), ForTasks("detection")
    ] = Field(
        default=0.75,
        description="Below this overlap the deployed model's box has shifted; default 0.75.",
    )
    keep: Annotated[
        int | None, Flag("--keep-boxes", metavar="N", panel=OUTPUTS), ForTasks("detection")
    ] = Field(
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
