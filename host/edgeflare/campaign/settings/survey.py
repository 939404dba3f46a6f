"""The settings of a campaign's survey: what is asked far from the seeds, before the search."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from edgeflare.campaign.settings.flags import Flag
from edgeflare.survey.sampling import SurveySettings


class SurveyConfig(BaseModel):
    """The survey before the search: how often the device decides differently far from the seeds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: Annotated[bool, Flag("--survey/--no-survey")] = Field(
        default=True,
        description="Before the search ask about inputs far from the seeds at which the original "
        "is sure, for the rate of deviations there and its bound.",
    )
    queries: Annotated[int, Flag("--survey-queries", metavar="N")] = Field(
        default=3,
        ge=1,
        le=1000,
        description="Device queries of the survey for each seed (confirmations come on top).",
    )
    sure: Annotated[float, Flag("--sure", metavar="F")] = Field(
        default=0.3,
        ge=0,
        lt=1,
        allow_inf_nan=False,
        description="The survey asks about inputs on which the original's top-1 probability is at "
        "least F above its second; 0 <= F < 1.",
    )
    candidates: int = Field(
        default=28,
        ge=1,
        le=10_000,
        description="Inputs that the original alone is asked about for each seed, at most, to find "
        "those on which it is sure.",
    )
    families: Annotated[tuple[str, ...], Flag("--family", metavar="NAME")] = Field(
        default=(),
        description="A family of inputs to be surveyed in place of all; may be repeated.",
        examples=[["gain", "noise"]],
    )

    @property
    def sampling(self) -> SurveySettings:
        """What the survey from one seed needs of this."""
        return SurveySettings(self.queries, self.sure, max(self.candidates, self.queries))
