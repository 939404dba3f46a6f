"""What inspections and walks along gradients say beside their numbers: notices, and why there are none."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from edgeflare._internal.text import counted
from edgeflare_whitebox.units.measures import FEWEST

if TYPE_CHECKING:
    from edgeflare.seeds import SeedSource
    from edgeflare_whitebox.strategies.constraints import ConstrainedOptions
    from edgeflare_whitebox.units.inspection import UnitScores

SET_WORDS: Mapping[str, str] = {
    "seeds": "the seeds",
    "triggers": "the triggering inputs",
    "survey": "the survey's findings",
}
"""What is said of each set while it is run."""
UNANSWERED = "of {}, {} left out on which the original can't answer: {}"
NOT_STORED = "{} left out: the campaign hasn't stored their inputs"
NOT_REMADE = "{} of the survey left out: they aren't made again here"
NOT_FINITE = "{} left out on which a model answers NaN or infinity"
WITHOUT_LABELS = (
    "{} of {:,} without the label of a class of the original: all are compared without labels; "
    "label all seeds to see each class's recall"
)
OF_FIRST = "the deployed model's answers are those of {}, the first of {} that has any"


def skipped_notices(source: "SeedSource | None") -> list[str]:
    """Return a notice where files of the profile that was read could not be used."""
    if source is None or not source.skipped:
        return []
    first, count = source.skipped[0], len(source.skipped)
    more = ", and others" if count > 1 else ""
    return [
        f"of the profile, {counted(count, 'file')} skipped: {first.name} ({first.reason}){more}"
    ]


def few_inputs(count: int, classes: int, least: int) -> str:
    """Return that so many classes have inputs enough for pairs."""
    what = (
        ": of the original's pairs only those of two such classes are known"
        if count > 1
        else ", so that nothing can be said of the original's pairs: add seeds"
    )
    return f"{count:,} of {classes:,} classes have {least} inputs or more{what}"


def unscored(scores: "UnitScores", h: int) -> str:
    """Return why a hypothesis has no scores."""
    count, ones = scores.counts[h], scores.ones[h]
    inputs = counted(count, "input")
    if not count:
        return f"it says nothing of any of {counted(scores.records, 'input')}"
    if ones is None:
        return f"its values on {inputs} don't tell: it takes {FEWEST} inputs, and different values"
    return (
        f"it holds on {ones:,} of {inputs}: nothing can be said where it holds, or doesn't, on fewer "
        f"than {FEWEST}"
    )


def unit_notices(scores: "UnitScores") -> Iterator[str]:
    """Yield what the units' scores leave out."""
    if scores.failed:
        yield f"{counted(scores.failed, 'input')} left out on which the original can't answer"


def not_by_gradient(options: "ConstrainedOptions", crossings: int, queries: int) -> str:
    """Return why nothing was found."""
    by = f"by {options.constraint} in {options.steps} steps of {options.step:g} levels"
    if not crossings:
        return f"the original keeps its decision {by} at most; nothing was asked of the device"
    if not queries:
        return (
            f"no input beside the original's decision boundary that was reached {by} has the wanted margin; "
            "nothing was asked of the device"
        )
    return (
        f"the device decides as the original beside its decision boundary that was reached {by}; "
        "another constraint, or strategy boundary, may find a deviation"
    )


DIFFER_ON_SEED = (
    "the models on the host differ on the seed already; nothing was asked of the device"
)


def not_by_models(options: "ConstrainedOptions", *, tried: int, answered: int) -> str:
    """Return why nothing was found."""
    by = f"by {options.constraint} in {options.steps} steps of {options.step:g} levels"
    if not tried:
        return (
            f"the models on the host never differed {by} at most; nothing was asked of the device"
        )
    if not answered:
        return (
            f"no input on which the models on the host differed {by} has the wanted margin; nothing "
            "was asked of the device"
        )
    return (
        f"the device decides as the original where the models on the host differed {by}; another "
        "constraint, or strategy gradient, may find a deviation"
    )
