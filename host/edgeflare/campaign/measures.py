"""The measures by which candidates are ranked, and the search that each of them needs."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from edgeflare.campaign.config import SearchConfig
from edgeflare.campaign.resolution import STRATEGY
from edgeflare.errors import UsageError

Measure: TypeAlias = Literal["disagreement", "severity", "queries"]
"""Of the most severe trigger from a seed: how far both models' answers are apart, or the smaller of both
models' margins; or the queries to the first one."""

DEVICE_BUDGET = 8
"""Default number of device queries for each seed where the most severe trigger is searched for.

Of five prunings of LeNet-5 on 150 seeds the two closest are apart by 1.2 half widths of the interval with the
first trigger alone, by 1.8 with 8 queries and by 1.7 with 20.
"""


def check_measure(measure: str) -> None:
    """Raise UsageError for an unknown measure."""
    if measure not in get_args(Measure):
        raise UsageError(f"there is no measure {measure}; take {', '.join(get_args(Measure))}")


def check_level(level: float) -> None:
    """Raise UsageError unless a confidence lies within (0, 1)."""
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}, but a confidence lies above 0 and below 1")


def check_rankable(measure: str, strategy: str, label_only: Sequence[str] = ()) -> None:
    """Raise UsageError where this strategy, or the models' outputs, can't give `measure`.

    `label_only` names the candidates that return a class and no probabilities.
    """
    check_measure(measure)
    if measure == "queries" and strategy == STRATEGY:
        raise UsageError(
            "the boundary search finds a trigger in one or two queries, whatever the model: its queries "
            "don't rank; take another measure, or the strategy dflare"
        )
    if label_only and measure != "queries":
        raise UsageError(
            f"{' and '.join(label_only)}: the deployed model returns a class and no probabilities, so that "
            f"there is no {measure}; rank by queries, with the strategy dflare"
        )


def search_for(measure: str, search: SearchConfig) -> SearchConfig:
    """Return `search` with its open settings chosen for `measure`.

    "queries": the paper's, dflare. Else the most severe trigger is looked for: boundary with a device
    budget. A strategy or budget that was stated stays. Raises UsageError for an unknown measure.
    """
    check_measure(measure)
    if measure == "queries":
        stated = "strategy" in search.model_fields_set
        return search if stated else search.model_copy(update={"strategy": "dflare"})
    if search.strategy != STRATEGY or search.options.get("device_budget") is not None:
        return search
    budget = min(DEVICE_BUDGET, search.max_queries or DEVICE_BUDGET)
    return search.model_copy(update={"options": {**search.options, "device_budget": budget}})
