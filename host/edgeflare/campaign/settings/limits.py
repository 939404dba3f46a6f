"""The limits of a campaign's results; crossing one ends the command with exit code 1."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from edgeflare._internal.flags import KINDS_OF_LIMITS
from edgeflare.answers import KINDS, AnswerKind
from edgeflare.errors import UsageError
from edgeflare.models import AbsolutePath


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"must be a share from 0 to 1 (0.05 is 5 %), not {value:g}")
    return value


# Strict: a limit that was written as a text or as true would else hold by accident.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[Number, AfterValidator(_share)]


def _kind_of_limit(value: Any) -> str:
    return KINDS_OF_LIMITS[isinstance(value, Mapping)]


KindLimit: TypeAlias = Annotated[
    Annotated[Share, Tag(KINDS_OF_LIMITS[0])]
    | Annotated[dict[str, Share], Tag(KINDS_OF_LIMITS[1])],
    Discriminator(_kind_of_limit),
]
"""A limit for all classes together, or one for each of some, by name or number."""


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
    max_disagreement: Annotated[Number, Field(ge=0)] | None = Field(
        default=None,
        description="The largest disagreement of a trigger: the share of probability put on "
        "different classes. Of transcripts: the share of words that differ; of values: their "
        "distance, which may be above 1. A badly damaged model is sure of nothing, so this measures "
        "damage better than the severity.",
        examples=[0.2],
    )
    max_confident_deviation: Share | None = Field(
        default=None,
        description="The largest share of the survey's inputs that deviates: kept where its upper "
        "95 % bound is not larger, crossed where the share itself is; in between the command ends "
        "with exit code 4.",
        examples=[0.03],
    )
    max_lost: KindLimit | None = Field(
        default=None,
        description="Of the objects that the original detects on the seeds, the largest share that "
        "the deployed model does not: for all classes together, or a table by class, by name or "
        "number. Kept where the upper 95 % bound is not larger (0: where there is none), crossed "
        "where the share itself is; in between the command ends with exit code 4.",
        examples=[{"person": 0.01}],
    )
    max_ghost: KindLimit | None = Field(
        default=None,
        description="Of the objects that the deployed model detects on the seeds, the largest share "
        "that the original does not. As max_lost.",
        examples=[0.05],
    )
    max_class: KindLimit | None = Field(
        default=None,
        description="Of the objects that the original detects on the seeds, the largest share that "
        "the deployed model detects as another class. As max_lost.",
        examples=[0.02],
    )
    max_shift: KindLimit | None = Field(
        default=None,
        description="Of the objects that the original detects on the seeds, the largest share whose "
        "box shifts, to an overlap below shift_iou. As max_lost.",
        examples=[0.1],
    )
    verdict: Literal["sound"] | None = Field(
        default=None,
        description="With sound, the deployed model must be no worse than its healthy references "
        "(--reference), and must not fall on the seeds as they are. Where that can't be told, the "
        "command ends with exit code 4.",
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


def class_number(name: str, names: Sequence[str] | None) -> int | None:
    """Return the number of a class by its name, or its number as text; None where it is unknown.

    A number is unknown, too, where the names are known and it is none of theirs.
    """
    if names is not None and name in names:
        return list(names).index(name)
    if not (name.isascii() and name.isdigit()):
        return None
    return int(name) if names is None or int(name) < len(names) else None


def check_kind_limits(
    limits: LimitsConfig, kind: AnswerKind[Any], names: Sequence[str] | None
) -> None:
    """Raise UsageError for limits that don't fit the kind of the models' answers, or name no class.

    `names` are those of the classes, None where they are not known.
    """
    apart = limits.max_disagreement
    if apart is not None and apart > max(1.0, kind.largest_distance):
        raise UsageError(
            f"limits.max_disagreement = {apart:g} is never exceeded: only the distance of values may "
            "be above 1; state a number from 0 to 1"
        )
    fitting = {rule.key for rule in kind.checks()}
    for key in dict.fromkeys(rule.key for limited in KINDS for rule in limited.checks()):
        limit = getattr(
            limits, key, None
        )  # a kind of another distribution may name what has no field
        if limit is None:
            continue
        if key not in fitting:
            nouns = [other.noun for other in KINDS if key in {one.key for one in other.checks()}]
            raise UsageError(
                f"limits.{key} is for models of {' or '.join(nouns)}, which these are not: leave it out"
            )
        for name in limit if isinstance(limit, dict) else ():
            if class_number(name, names) is None:
                raise _no_class(key, name, names)


def _no_class(key: str, name: str, names: Sequence[str] | None) -> UsageError:
    if names is None:
        return UsageError(
            f"limits.{key}: there is no class {name!r}; no names of classes are known: state them "
            "with --class-names FILE, or name the class by its number"
        )
    return UsageError(
        f"limits.{key}: there is no class {name!r}; it is none of the {len(names)} classes, 0 to "
        f"{len(names) - 1}: {'correct the number' if name.isdigit() else 'check its spelling'}"
    )
