"""The settings of a campaign's survey: what is asked far from the seeds, before the search."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, model_validator

from edgeflare._internal import toml
from edgeflare._internal.flags import Flag, Key, conflict
from edgeflare.store import is_address
from edgeflare.survey.sampling import SurveySettings

_PURSUIT_QUERIES = 120
INT8 = "int8"
"""The reference that is made on the host of the original; any other one is a campaign, by its folder or
address."""
_INT8_OF = f"{INT8}:"


def _reference(value: str) -> str:
    if value == INT8:
        return value
    if value.startswith(_INT8_OF):
        return _INT8_OF + str(toml.expand_home(value.removeprefix(_INT8_OF)).absolute())
    return value if is_address(value) else str(toml.expand_home(value).absolute())


def float_model(reference: str, original: Path) -> Path | None:
    """Return the float model that int8 models are made of for a reference; None for a campaign."""
    if reference == INT8:
        return original
    made = reference.startswith(_INT8_OF)
    return Path(reference.removeprefix(_INT8_OF)) if made else None


class SurveyConfig(BaseModel, extra="forbid", frozen=True):
    """The survey before the search: how often the device decides differently far from the seeds."""

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
        "least F above its second.",
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

    references: Annotated[
        tuple[Annotated[str, AfterValidator(_reference)], ...],
        Flag("--reference", metavar="int8|int8:FILE|CAMPAIGN"),
    ] = Field(
        default=(),
        description="Healthy deployments to compare with on the survey's inputs, for the verdict: "
        "int8 (models made on the host from the ONNX original), int8:FILE "
        "(made from the pruned or distilled float model that was quantised), or the folder of "
        "another campaign of the same original, seeds and seed; may be repeated.",
        examples=[["int8"]],
    )

    pursuit: Annotated[int | None, Flag("--pursuit-queries", metavar="N")] = Field(
        default=None,
        ge=0,
        description="Device queries, in all, for going after the deviations that the survey saw "
        "(confirmations come on top); 0: none. By default 2 for each seed, 120 at most; where "
        "nothing deviates and margins hardly fall 16 at most are asked.",
        examples=[100],
    )

    @model_validator(mode="after")
    def _references_have_inputs(self) -> "SurveyConfig":
        if self.references and not self.enabled:
            raise conflict(
                "{references} is answered on the survey's inputs: leave the survey on",
                references=Key("references"),
            )
        return self

    def pursuit_queries(self, seeds: int) -> int:
        """Return the device queries of a pursuit after the survey of so many seeds."""
        return min(2 * seeds, _PURSUIT_QUERIES) if self.pursuit is None else self.pursuit

    @property
    def off(self) -> "SurveyConfig":
        """The same settings without a survey, and so without references."""
        return self.model_copy(update={"enabled": False, "references": ()})

    @property
    def sampling(self) -> SurveySettings:
        """What the survey from one seed needs of this."""
        return SurveySettings(self.queries, self.sure, max(self.candidates, self.queries))
