"""Before a search begins: do the two models belong together, on the seeds as they are?"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from edgeflare.campaign.config import SearchConfig
from edgeflare.campaign.mismatch import Explanation
from edgeflare.campaign.statistics import wilson
from edgeflare.errors import PreflightError, SeedError
from edgeflare.seeds import RawSeed
from edgeflare.types import Decision, Outputs, Scores

MINIMUM_SEEDS = 20
DISAGREEMENT_LIMIT = 0.20


class SeedFigures(NamedTuple):
    """What the checks need of one seed that both models answered: labels are None where not known."""

    id: str
    label: int | None
    decision: Decision
    original: int
    deployed: int
    classes: int

    @classmethod
    def of(cls, seed_id: str, label: int | None, outputs: Outputs) -> "SeedFigures":
        """Return the figures of one seed."""
        original, deployed = outputs.original, outputs.deployed
        classes = 0 if original is None else len(original)
        return cls(seed_id, label, outputs.decision, _top(original), _top(deployed), classes)


def check_pair(
    seeds: Sequence[SeedFigures], explanation: Explanation | None = None, *, allow: bool
) -> list[str]:
    """Look at both models' answers on the seeds; return notices for the user.

    Raises PreflightError, unless `allow`, where the lower 95 % bound of the rate of disagreement is
    above 20 %, where another preprocessing is a clearly better `explanation` of the answers, or
    where the lower 95 % bound of a model's accuracy on labelled seeds is no better than chance.
    With fewer than 20 seeds it only warns.
    """
    problems = [
        problem
        for problem in (
            _disagreement(seeds),
            explanation.sentence() if explanation else "",
            _accuracy(seeds, "original"),
            _accuracy(seeds, "deployed"),
        )
        if problem
    ]
    if not problems:
        return []
    sentence = " ".join(problems)
    if len(seeds) < MINIMUM_SEEDS:
        return [f"{sentence} With only {len(seeds)} seeds this may be chance."]
    if allow:
        return [f"{sentence} Going on, as --allow-disagreement says."]
    raise PreflightError(
        f"{sentence} The preprocessing or the model pair looks wrong: check scale, mean, std, colour "
        "order and layout of both inputs (`--original-input`, `--deployed-input`), or go on with "
        "--allow-disagreement."
    )


def check_labels(seeds: Sequence[RawSeed], classes: int) -> None:
    """Raise SeedError, naming a seed, where a label is no class number of the models."""
    for seed in seeds:
        if seed.label is not None and not 0 <= seed.label < classes:
            raise SeedError(
                f"seed {seed.id} has the label {seed.label}, but the models have {classes} classes, "
                f"0 to {classes - 1}: correct the labels, or leave them out"
            )


def slowness(seconds: Sequence[float], search: SearchConfig) -> list[str]:
    """Return a notice where the time budget will end searches before the query budget does."""
    if not seconds or not search.timeout_s or not search.max_queries:
        return []
    typical = median(seconds)
    affordable = int(search.timeout_s / typical) if typical else search.max_queries
    if affordable >= search.max_queries:
        return []
    sentence = (
        f"one inference takes {typical:.2g} s on the device, so the time budget of "
        f"{search.timeout_s:g} s ends a search after about {affordable} queries; such an end depends "
        f"on speed. For repeatable results state --max-queries {affordable} or a longer --timeout."
    )
    return [sentence]


def _disagreement(seeds: Sequence[SeedFigures]) -> str:
    differing = [seed for seed in seeds if seed.decision is Decision.DEVIATION]
    if not differing or wilson(len(differing), len(seeds))[0] <= DISAGREEMENT_LIMIT:
        return ""
    examples = ", ".join(
        f"{seed.id} ({seed.original} against {seed.deployed})" for seed in differing[:3]
    )
    return (
        f"The two models disagree on {len(differing)} of {len(seeds)} seeds as they are, far more "
        f"than compression explains: {examples}."
    )


def _accuracy(seeds: Sequence[SeedFigures], which: str) -> str:
    labelled = [seed for seed in seeds if seed.label is not None]
    if not labelled:
        return ""
    right = sum(getattr(seed, which) == seed.label for seed in labelled)
    chance = 1 / labelled[0].classes
    if wilson(right, len(labelled))[0] > chance:
        return ""
    return (
        f"The {which} model is right on only {right} of {len(labelled)} labelled seeds, no better "
        f"than guessing among {labelled[0].classes} classes."
    )


def _top(scores: Scores | None) -> int:
    return -1 if scores is None else int(scores.argmax())
