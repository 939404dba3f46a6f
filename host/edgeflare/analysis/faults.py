"""The faults that a campaign's pursuit found: what the deviating inputs have in common."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edgeflare.analysis.survey import SurveyedInput, surveyed_input
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.metrics import top_label
from edgeflare.oracles import Margins
from edgeflare.store import FAULTS, Store, SurveyRecord
from edgeflare.store.survey import SurveyKey
from edgeflare.survey.description import Accuracy
from edgeflare.survey.proposals import CHAIN

_WORST = 5


@dataclass(frozen=True)
class FaultThreshold:
    """One part of a fault's condition: a feature of the input is below `at`, or at least `at`.

    `label`: the feature is 1 where the original answers this class, else 0; None of all others.
    """

    feature: str
    below: bool
    at: float
    label: int | None = None


@dataclass(frozen=True)
class FaultPair:
    """Both models' classes on deviating inputs of a fault; None of NaN, infinity or transcripts."""

    original: int | None
    deployed: int | None
    count: int


@dataclass(frozen=True)
class Fault:
    """Deviating inputs that have a condition in common, or at least repeat.

    `number` counts from 1, for each `replica` anew. `words` say the condition, and are "" where no
    condition explains deviations that repeat on inputs made like them. `inputs` is the number of
    deviating inputs, from so many `seeds`. `families` counts the families that made them, the most
    frequent first, `pairs` the classes.

    `fresh_inside`, `fresh_outside`: how many inputs on both sides of the condition were asked about
    after it was chosen, and how many of them deviate; None where the budget ended before.
    `precision`: the share of those inside that deviate; `recall`: the share of those deviating that
    are inside; both None without any. `worst`: the deviating inputs with the largest margins.
    """

    number: int
    words: str
    thresholds: tuple[FaultThreshold, ...]
    inputs: int
    seeds: int
    families: dict[str, int]
    pairs: tuple[FaultPair, ...]
    fresh_inside: int | None
    fresh_inside_deviating: int | None
    fresh_outside: int | None
    fresh_outside_deviating: int | None
    precision: float | None
    recall: float | None
    worst: tuple[SurveyedInput, ...]
    replica: str = ""


@dataclass(frozen=True)
class FaultFigures:
    """What going after the survey's deviations found, and what it cost.

    `faults`: the first is the one that was pursued first. `single`: confident deviations that no
    fault explains and that did not repeat on inputs made like them. `queries`: the device queries
    of pursuit and checks, their confirmations, and the inputs given to the original alone.
    """

    faults: tuple[Fault, ...]
    single: int
    queries: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return asdict(self)


def fault_figures(store: Store) -> FaultFigures | None:
    """Return the faults that a pursuit found; None where none has ended. Raises StoreError."""
    stored: Mapping[str, Sequence[Mapping[str, Any]]] | None = store.fact(FAULTS)
    if stored is None:
        return None
    inputs = SurveyInputs(store)
    faults: list[Fault] = []
    single = 0
    for replica, found in sorted(stored.items()):
        wanted = {_key(one) for entry in found for one in entry["inputs"]}
        records = {one.key: one for one in store.survey(replica) if one.key in wanted}
        number = 0
        for entry in found:
            if entry["words"] or entry["repeats"]:
                number += 1
                faults.append(_fault(entry, number, replica, records, inputs))
            else:
                single += len(entry["inputs"])
    counts = [store.survey_counts(phase) for phase in ("pursuit", "check")]
    queries = {
        "pursuit": counts[0].survey,
        "check": counts[1].survey,
        "confirmation": sum(one.confirmation for one in counts),
        "host_only": sum(one.host_only for one in counts),
    }
    return FaultFigures(tuple(faults), single, queries)


def _key(stored: Sequence[Any]) -> SurveyKey:
    seed_id, phase, number = stored
    return seed_id, phase, number


def _fault(
    entry: Mapping[str, Any],
    number: int,
    replica: str,
    records: Mapping[SurveyKey, SurveyRecord],
    inputs: SurveyInputs,
) -> Fault:
    members = [records[_key(one)] for one in entry["inputs"]]
    checked = Accuracy(**entry["checked"]) if entry["checked"] and entry["words"] else None
    families = Counter(name for one in members for name in _families(one))
    pairs = Counter((top_label(one.original), top_label(one.deployed)) for one in members)
    worst = sorted(members, key=_severity, reverse=True)[:_WORST]
    return Fault(
        number=number,
        words=entry["words"],
        thresholds=tuple(FaultThreshold(**one) for one in entry["thresholds"]),
        inputs=len(members),
        seeds=len({one.seed_id for one in members}),
        families=dict(families.most_common()),
        pairs=tuple(FaultPair(*pair, count) for pair, count in pairs.most_common()),
        fresh_inside=checked.inside if checked else None,
        fresh_inside_deviating=checked.inside_deviating if checked else None,
        fresh_outside=checked.outside if checked else None,
        fresh_outside_deviating=checked.outside_deviating if checked else None,
        precision=checked.precision if checked else None,
        recall=checked.recall if checked else None,
        worst=tuple(surveyed_input(one, inputs) for one in worst),
        replica=replica,
    )


def _families(one: SurveyRecord) -> list[str]:
    if one.family != CHAIN:
        return [one.family]
    return list(dict.fromkeys(str(step["family"]) for step in one.params["steps"]))


def _severity(one: SurveyRecord) -> float:
    return Margins(one.original_margin, one.deployed_margin).smaller or 0.0
