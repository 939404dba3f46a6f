"""The limits of a campaign: what must hold of its results, or the command line ends with exit code 1."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from edgeflare import toml


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"must be a share from 0 to 1 (0.05 is 5 %), not {value:g}")
    return value


# Strict: a limit that was written as a text or as true would else hold by accident.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[Number, AfterValidator(_share)]


class LimitsConfig(BaseModel):
    """What a campaign's results must keep to; what is None is not looked at.

    `max_deviation_rate`: the share of the searched seeds with a triggering input. `max_seed_deviation_rate`:
    the share of the answered seeds on which the models differ as they are. `min_median_queries`: the median
    over the searched seeds of the search queries to the first triggering input; a seed without one counts as
    more than any. `min_l2`: no triggering input that was searched for is nearer to its seed, pixels from 0 to
    1, audio in its own units. `max_severity`: no triggering input whose smaller margin (top-1 minus top-2 probability, of both
    models; of transcripts that of the words that differ) is larger. `max_disagreement`: no triggering input at
    which the two models put a larger share of probability on different classes, or hear a larger share of words
    otherwise; of these two the better measure of damage, since a badly damaged model
    is sure of nothing. The search finds the most severe ones where it has a `device_budget`. `new_pairs` =
    False: no pair of classes (the original's label, the deployed model's) deviates that doesn't in
    `baseline`, the folder of a finished campaign; for models of classes only. `max_new_triggers`, for replays: so many inputs may
    deviate that did not before.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_deviation_rate: Share | None = None
    max_seed_deviation_rate: Share | None = None
    min_median_queries: Annotated[int, Field(strict=True, ge=1)] | None = None
    min_l2: Annotated[Number, Field(gt=0)] | None = None
    max_severity: Annotated[Number, Field(ge=0, le=1)] | None = None
    max_disagreement: Annotated[Number, Field(ge=0, le=1)] | None = None
    new_pairs: Annotated[bool, Field(strict=True)] = True
    baseline: (
        Annotated[Path, AfterValidator(lambda path: toml.expanded(path).absolute())] | None
    ) = None
    max_new_triggers: Annotated[int, Field(strict=True, ge=0)] | None = None

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
