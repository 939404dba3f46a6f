"""The faults that a campaign's pursuit found: what the deviating inputs have in common."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from edgeflare._internal.records import JsonRecord
from edgeflare.analysis.survey import SurveyedInput, surveyed_input
from edgeflare.answers import AnswerKind
from edgeflare.answers.metrics import top_label
from edgeflare.answers.parts import Margins
from edgeflare.campaign.survey.inputs import (
    SurveyInputs,
    confirmed_faults,
    family_names,
)
from edgeflare.statistics import CountedPair
from edgeflare.store import Store, SurveyRecord
from edgeflare.store.state import FaultThreshold, StoredFault

__all__ = ["Fault", "FaultFigures", "FaultPair", "FaultThreshold", "fault_figures"]
_WORST = 5


FaultPair: TypeAlias = CountedPair[int | None]
"""Of both models' classes; None of NaN, infinity or transcripts."""


@dataclass(frozen=True)
class Fault:
    """Deviating inputs that have a condition in common, which fresh inputs confirm.

    `number` counts from 1, for each `replica` anew. `words` say the condition. `inputs` is the
    number of different deviating inputs, from so many `seeds`. `families` counts the families that
    made them, the most frequent first, `pairs` the classes.

    `fresh_inside`, `fresh_outside`: how many inputs on both sides of the condition were asked about
    after it was chosen, and how many of them deviate. `precision`: the share of those inside that
    deviate; `recall`: the share of those deviating that are inside. `worst`: the deviating inputs
    with the largest margins.
    """

    number: int
    words: str
    thresholds: tuple[FaultThreshold, ...]
    inputs: int
    seeds: int
    families: dict[str, int]
    pairs: tuple[FaultPair, ...]
    fresh_inside: int
    fresh_inside_deviating: int
    fresh_outside: int
    fresh_outside_deviating: int
    precision: float | None
    recall: float | None
    worst: tuple[SurveyedInput, ...]
    replica: str = ""


@dataclass(frozen=True)
class FaultFigures(JsonRecord):
    """What going after the survey's deviations found, and what it cost.

    `faults`: the first is the one that was pursued first; each has different fresh inputs of
    several seeds that deviate. `unlisted`: different confident deviations, of the survey and the
    pursuit, that belong to none of them, from so many `unlisted_seeds`. `queries`: the device
    queries of pursuit and checks, their confirmations, and the inputs given to the original alone.
    """

    faults: tuple[Fault, ...]
    queries: dict[str, int]
    unlisted: int = 0
    unlisted_seeds: int = 0


def fault_figures(store: Store) -> FaultFigures | None:
    """Return the faults that a pursuit found; None where none has ended. Raises StoreError."""
    stored = store.state.faults
    if stored is None:
        return None
    inputs = SurveyInputs(store)
    rest = {
        (replica, one.sample): one.seed_id
        for replica in stored
        for one in store.survey(replica, deviating=True)
    }
    faults = []
    for replica, number, entry, members in confirmed_faults(store):
        fault = _fault(entry, members, inputs, store.kind)
        faults.append(replace(fault, replica=replica, number=number))
        for one in members:
            rest.pop((replica, one.sample), None)
    counts = [store.survey_counts(phase) for phase in ("pursuit", "check")]
    queries = {
        "pursuit": counts[0].survey,
        "check": counts[1].survey,
        "confirmation": sum(one.confirmation for one in counts),
        "host_only": sum(one.host_only for one in counts),
    }
    return FaultFigures(tuple(faults), queries, len(rest), len({*rest.values()}))


def _fault(
    entry: StoredFault,
    surveyed: Sequence[SurveyRecord],
    inputs: SurveyInputs,
    kind: AnswerKind[Any],
) -> Fault:
    members = list({one.sample: one for one in reversed(surveyed)}.values())[::-1]
    checked = entry.checked
    assert checked is not None  # noqa: S101 - confirmed faults have it
    families = Counter(name for one in members for name in family_names(one))
    pairs = Counter((top_label(one.original), top_label(one.deployed)) for one in members)
    worst = sorted(members, key=_severity, reverse=True)[:_WORST]
    return Fault(
        number=0,
        words=entry.words,
        thresholds=tuple(entry.thresholds),
        inputs=len(members),
        seeds=len({one.seed_id for one in members}),
        families=dict(families.most_common()),
        pairs=tuple(CountedPair(*pair, count) for pair, count in pairs.most_common()),
        fresh_inside=checked.inside,
        fresh_inside_deviating=checked.inside_deviating,
        fresh_outside=checked.outside,
        fresh_outside_deviating=checked.outside_deviating,
        precision=checked.precision,
        recall=checked.recall,
        worst=tuple(surveyed_input(one, inputs, kind) for one in worst),
    )


def _severity(one: SurveyRecord) -> float:
    return Margins(one.original_margin, one.deployed_margin).smaller or 0.0
