"""The limits of a campaign's results; crossing one ends the command with exit code 1."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from edgeflare.models import AbsolutePath


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"must be a share from 0 to 1 (0.05 is 5 %), not {value:g}")
    return value


# Strict: a limit that was written as a text or as true would else hold by accident.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[Number, AfterValidator(_share)]


class LimitsConfig(BaseModel):
    """The limits of a campaign's results; None: not checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_deviation_rate: Share | None = Field(
        default=None,
        description="Of the searched seeds, the largest share with a trigger.",
        examples=[0.9],
    )
    max_seed_deviation_rate: Share | None = Field(
        default=None,
        description="Of all seeds, the largest share on which the models differ as they are.",
        examples=[0.02],
    )
    min_median_queries: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        default=None,
        description="The smallest median of the search queries to a seed's first trigger. A search "
        "without one counts as more than any.",
        examples=[5],
    )
    min_l2: Annotated[Number, Field(gt=0)] | None = Field(
        default=None,
        description="The smallest L2 distance of a trigger that was searched for from its seed. "
        "Pixels count from 0 to 1, samples from -1 to 1.",
        examples=[0.5],
    )
    max_severity: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="The largest severity of a trigger: the smaller of both models' margins. A "
        "margin is top-1 minus top-2 probability, of transcripts that of the words that differ. "
        "Give the search a device_budget.",
        examples=[0.3],
    )
    max_disagreement: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="The largest disagreement of a trigger: the share of probability put on "
        "different classes. Of transcripts: the share of words that differ. A badly damaged model "
        "is sure of nothing, so this measures damage better than the severity.",
        examples=[0.2],
    )
    max_confident_deviation: Share | None = Field(
        default=None,
        description="The largest share of the survey's inputs that deviates: kept where its upper "
        "95 % bound is not larger, crossed where the share itself is; in between the command ends "
        "with exit code 4.",
        examples=[0.03],
    )
    verdict: Literal["sound"] | None = Field(
        default=None,
        description="With sound, the deployed model must be no worse than its healthy references "
        "(--reference). Where the survey can't tell, the command ends with exit code 4.",
        examples=["sound"],
    )
    new_pairs: Annotated[bool, Field(strict=True)] = Field(
        default=True,
        description="false: no pair of classes may deviate that doesn't in the baseline.",
        examples=[False],
    )
    baseline: AbsolutePath | None = Field(
        default=None,
        description="The folder of a finished campaign, for new_pairs.",
        examples=["campaigns/last-release"],
    )
    max_new_triggers: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        default=None,
        description="Of a replay, the largest number of inputs that deviate and did not before.",
        examples=[0],
    )

    @model_validator(mode="after")
    def _has_a_baseline(self) -> "LimitsConfig":
        if not self.new_pairs and self.baseline is None:
            raise ValueError(
                "new_pairs = false needs a baseline: name the folder of a finished campaign, "
                'baseline = "campaigns/..."'
            )
        if self.new_pairs and self.baseline is not None:
            raise ValueError("baseline is used with new_pairs = false only")
        return self
