"""Candidate deployed models of one original, ranked by how hard they are to make deviate (section
5.4.2).

Differences. The paper ranks by the mean queries that its search needs. Here that is one of three
measures, and not the default: queries vary so much from seed to seed that only large differences
show. `severity`, the smaller of both models' margins, falls again for a model so damaged that it is
sure of nothing. Measured in docs/research/candidates.md.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from edgeflare._internal.records import JsonRecord
from edgeflare.analysis.ranking.paired_tests import Duel, duels_between
from edgeflare.analysis.ranking.scores import (
    Accuracy,
    CandidateCampaign,
    Estimate,
    ModelFigures,
    SeedResults,
    accuracy_of,
    figures_of,
    nonfinite_as_worst,
    read_campaign,
)
from edgeflare.analysis.soundness import Soundness
from edgeflare.answers import AnswerKind
from edgeflare.answers.detections.figures import DifferenceCounts
from edgeflare.answers.parts import worded
from edgeflare.campaign.comparison import Measure, check_level, check_rankable
from edgeflare.campaign.resolution import STRATEGY
from edgeflare.errors import UsageError
from edgeflare.statistics import mean_ranks
from edgeflare.store import Store, open_store

_SHOWN = 12
"""Digits of a SHA-256 in messages."""


RemarkCode: TypeAlias = Literal[
    "seeds-differ",
    "devices-differ",
    "unfinished",
    "unanswered",
    "timeouts",
    "same-file",
    "original",
    "like-original",
]


class Remark(NamedTuple):
    """What is to be kept in mind about a ranking.

    Of the candidate in `names`: "unfinished": `number` of `total` seeds are done; "unanswered": on
    so many it gave no answer that repeats; "timeouts": so many searches were ended by the clock;
    "original": it is the original's file; "like-original": it answers every seed as the original.
    "same-file": those in `names` are one file.
    """

    code: RemarkCode
    names: tuple[str, ...] = ()
    number: int = 0
    total: int = 0


def _remarks(campaigns: Mapping[str, CandidateCampaign]) -> Iterator[Remark]:
    reads = list(campaigns.values())
    if any(read.search["seed"] != reads[0].search["seed"] for read in reads):
        yield Remark("seeds-differ")
    if any(read.devices != reads[0].devices for read in reads):
        yield Remark("devices-differ")
    for name, read in campaigns.items():
        if not read.finished:
            yield Remark("unfinished", (name,), len(read.done), len(read.seeds))
        if read.unanswered:
            yield Remark("unanswered", (name,), read.unanswered)
        if read.timeouts:
            yield Remark("timeouts", (name,), read.timeouts)
    by_digest: dict[str, list[str]] = {}
    for name, read in campaigns.items():
        by_digest.setdefault(read.deployed["sha256"], []).append(name)
    yield from (Remark("same-file", tuple(same)) for same in by_digest.values() if len(same) > 1)
    for name, read in campaigns.items():
        if read.deployed["sha256"] == read.original["sha256"]:
            yield Remark("original", (name,))
        elif read.alike:
            yield Remark("like-original", (name,))


def _check_comparable(campaigns: Mapping[str, CandidateCampaign]) -> None:
    """Raise UsageError, naming the difference, unless all have the same original, read in the same
    way, the same seed inputs and the same search; the campaign's seed may differ."""
    (first, one), *others = campaigns.items()
    for name, other in others:
        for error_of in (_original_error, _search_error, _seeds_error):
            if error := error_of(first, one, name, other):
                raise error


def _original_error(
    first: str, one: CandidateCampaign, name: str, other: CandidateCampaign
) -> UsageError | None:
    a, b = one.original, other.original
    if a["sha256"] != b["sha256"]:
        return UsageError(
            f"{first} and {name} can't be compared: their originals differ ({first}: {a['name']} "
            f"{a['sha256'][:_SHOWN]}, {name}: {b['name']} {b['sha256'][:_SHOWN]}); compare "
            "candidates of one original model"
        )
    for part, what in (("input", "preprocessing"), ("output", "output")):
        if a.get(part) != b.get(part):
            return UsageError(
                f"{first} and {name} can't be compared: the original's {what} was not stated alike; "
                "run one of them again"
            )
    return None


def _search_error(
    first: str, one: CandidateCampaign, name: str, other: CandidateCampaign
) -> UsageError | None:
    settings, theirs = _flat(one.search), _flat(other.search)
    keys = list(dict.fromkeys((*settings, *theirs)))
    if settings["strategy"] != theirs["strategy"]:  # then the options say nothing more
        keys = ["strategy"]
    found = [
        f"{key} is {_stated(settings.get(key))} for {first} and {_stated(theirs.get(key))} for {name}"
        for key in keys
        if settings.get(key) != theirs.get(key)
    ]
    if not found:
        return None
    return UsageError(
        f"{first} and {name} can't be compared: their search settings differ: {'; '.join(found)}; "
        "run one of them again with the other's settings, or give the model files themselves"
    )


def _stated(value: object) -> str:
    return "not set" if value is None else str(value)


def _flat(search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that must be the same, the strategy's options among them."""
    plain = {key: value for key, value in search.items() if key not in ("seed", "options")}
    return plain | {f"option {key}": value for key, value in search["options"].items()}


def _seeds_error(
    first: str, one: CandidateCampaign, name: str, other: CandidateCampaign
) -> UsageError | None:
    missing, more = one.seeds - other.seeds, other.seeds - one.seeds
    if (missing and other.all_seeds) or (more and one.all_seeds):
        return UsageError(
            f"{first} and {name} can't be compared: their seed inputs differ ({len(one.seeds)} for "
            f"{first}, {len(other.seeds)} for {name}, {len(one.seeds & other.seeds)} of them in "
            "both); run one of them again with the other's seeds"
        )
    return None


@dataclass(frozen=True)
class RankedModel:
    """A candidate: its place (from 1, shared by those that tie with the one above) and its figures.

    `value` is the mean of the ranking's measure over the common seeds, with its approximate
    interval. `mean_rank` is what the order by queries follows (None of another measure): the mean,
    from 1, over all candidates' searches ranked together, those that found nothing above all
    others. `file` is the deployed model's path, `size` its bytes; `finished` whether its campaign
    is. `soundness` compares it with healthy references, None where its campaign has none;
    `differences` are those of a detector on all its seeds as they are, None of other models.
    """

    name: str
    place: int
    value: Estimate
    mean_rank: float | None
    folder: str
    file: str
    sha256: str
    size: int
    finished: bool
    figures: ModelFigures
    soundness: Soundness | None = None
    differences: DifferenceCounts | None = None


@dataclass(frozen=True)
class Ranking(JsonRecord):
    """Candidates, hardest to make deviate first.

    `duels` has every pair once, the better placed first; `success`, of a ranking by queries, has
    the same of whether anything was found, by the exact test, a family of its own. `seeds` is the
    number of seed samples that all candidates have finished; `level` the confidence of all duels
    together, and that of each interval, which is approximate. `original` is the
    original's accuracy on the labelled ones, None where none is labelled; `accuracy` has every pair
    by accuracy then, a family of its own. `success_rates` are shares of the searches that found
    anything, by candidate. `kind` is that of the models' answers.
    """

    measure: Measure
    level: float
    seeds: int
    candidates: tuple[RankedModel, ...]
    duels: tuple[Duel, ...]
    success: tuple[Duel, ...]
    original: Accuracy | None
    accuracy: tuple[Duel, ...]
    success_rates: dict[str, float]
    remarks: tuple[Remark, ...]
    kind: AnswerKind[Any]

    verdict = worded("ranking:ranking_verdict")
    """Who is hardest to make deviate, in sentences."""
    success_verdict = worded("ranking:success_verdict")
    """How well success tells them apart; None unless by queries."""
    accuracy_verdict = worded("ranking:accuracy_verdict")
    """How well accuracy does; None where no seed is labelled."""
    differences = worded("ranking:ranking_differences")
    """Where it is not the paper's comparison."""
    notes = worded("ranking:ranking_notes")
    """What is to be kept in mind, a sentence each."""
    unclear = worded("ranking:unclear_places")
    """Those of the notes that are on places and ties."""
    json_instead: ClassVar = {
        "accuracy": "accuracy_verdict",
        "success_rates": "success_verdict",
        "remarks": "notes",
        "kind": "differences",
    }

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names, and those of the sentences."""
        return super().to_json() | {"verdict": self.verdict}


def rank_campaigns(
    campaigns: Sequence[Path | Store],
    *,
    names: Sequence[str] | None = None,
    measure: Measure | None = None,
    level: float = 0.95,
) -> Ranking:
    """Rank the deployed models of these campaigns by how hard they were to make deviate.

    They need the same original, seed inputs and search; the campaign's seed may differ. Compared,
    seed by seed, is what every one of them has finished. `names` call the candidates (by default
    their files' stems). `measure`: "disagreement", the total variation distance between both
    models' answers to the trigger, of other answers than scores their
    `edgeflare.metrics.disagreement` (NaN or infinity counts as 1, of values as twice the largest
    distance found with any candidate, and 1 at least); "severity", the smaller of both models'
    margins there, 0 to 1, of which, as of disagreement, less is harder; "queries" to the first trigger, of which more is: their ranks are compared, those of searches
    that found nothing above all others, and success apart from them. None: disagreement where the
    search was the boundary's, else queries. `level`, within (0, 1), is the confidence in all
    verdicts together: each pair's is higher by Bonferroni.

    Reads the stores and changes nothing. Raises UsageError, naming the difference, where the
    campaigns can't be compared, and where there is nothing to compare; StoreError where a folder
    can't be used.
    """
    check_level(level)
    if len(campaigns) < 2:
        raise UsageError("a comparison needs two candidates at least")
    reads = _read(campaigns, names)
    _check_comparable(reads)
    chosen = _measure(measure, reads)
    kind = next(iter(reads.values())).kind
    common = _common(reads)
    seeds = {name: [read.done[sample] for sample in common] for name, read in reads.items()}
    values = {name: [_value(one, chosen) for one in of] for name, of in seeds.items()}
    means = {name: Estimate.of(of, level) for name, of in values.items()}
    more = chosen == "queries"
    tested = _ranks(seeds) if more else values
    centres = {name: float(np.mean(of)) for name, of in tested.items()}
    order = sorted(reads, key=lambda name: -centres[name] if more else centres[name])
    duels = duels_between(
        {name: values[name] for name in order}, level=level, more_is_better=more, tested=tested
    )
    successes = {name: [_success(one) for one in seeds[name]] for name in order}
    success = duels_between(successes, level=level, more_is_better=False) if more else ()
    places = _places(order, duels)
    labelled = {
        name: [float(one.deployed_right) for one in seeds[name] if one.deployed_right is not None]
        for name in order
    }
    original = accuracy_of([one.original_right for one in seeds[order[0]]])
    candidates = tuple(
        RankedModel(
            name=name,
            place=places[name],
            value=means[name],
            mean_rank=centres[name] if more else None,
            folder=str(reads[name].folder),
            file=str(reads[name].deployed["path"]),
            sha256=str(reads[name].deployed["sha256"]),
            size=int(reads[name].deployed["bytes"]),
            finished=reads[name].finished,
            figures=figures_of(seeds[name], level),
            differences=reads[name].differences,
            soundness=reads[name].soundness,
        )
        for name in order
    )
    return Ranking(
        measure=chosen,
        level=level,
        seeds=len(common),
        candidates=candidates,
        duels=duels,
        success=success,
        original=original,
        accuracy=duels_between(labelled, level=level, more_is_better=True) if original else (),
        success_rates={name: sum(of) / len(of) for name, of in successes.items()},
        remarks=tuple(_remarks(reads)),
        kind=kind,
    )


def _read(
    campaigns: Sequence[Path | Store], names: Sequence[str] | None
) -> dict[str, CandidateCampaign]:
    with ExitStack() as stack:
        reads = nonfinite_as_worst(
            [read_campaign(stack.enter_context(open_store(campaign))) for campaign in campaigns]
        )
    called = list(names) if names is not None else _names(reads)
    if len(called) != len(reads) or len(set(called)) != len(called):
        raise UsageError("every candidate needs a name of its own")
    return dict(zip(called, reads, strict=True))


def _names(reads: Sequence[CandidateCampaign]) -> list[str]:
    """Return the candidates' names: their files', else their folders', else with a number."""
    for wanted in (
        [Path(read.deployed["name"]).stem for read in reads],
        [read.folder.name for read in reads],
    ):
        if len(set(wanted)) == len(wanted):
            return wanted
    return [f"{number}-{read.folder.name}" for number, read in enumerate(reads, 1)]


def _measure(measure: Measure | None, reads: Mapping[str, CandidateCampaign]) -> Measure:
    strategy = next(iter(reads.values())).search["strategy"]
    if measure is None:
        measure = "disagreement" if strategy == STRATEGY else "queries"
    check_rankable(
        measure, strategy, [name for name, read in reads.items() if not read.kind.is_scored]
    )
    return measure


def _common(reads: Mapping[str, CandidateCampaign]) -> list[str]:
    """Return the samples that every candidate has finished, sorted."""
    common = frozenset.intersection(*(frozenset(read.done) for read in reads.values()))
    if not common:
        raise UsageError(
            "there is no seed that all candidates have finished, so that nothing can be compared; "
            "go on with their campaigns first (`edgeflare resume`)"
        )
    return sorted(common)


def _value(seed: SeedResults, measure: Measure) -> float:
    """Return the mean over the replicas."""
    values = [getattr(outcome, measure) for outcome in seed.outcomes]
    return float(sum(values) / len(values))


def _ranks(seeds: Mapping[str, Sequence[SeedResults]]) -> dict[str, list[float]]:
    """Return each seed's mean rank among all searches, by queries to the first trigger."""
    queries = [
        [
            [math.inf if outcome.unsuccessful else outcome.queries for outcome in seed.outcomes]
            for seed in of
        ]
        for of in seeds.values()
    ]
    return dict(zip(seeds, mean_ranks(queries), strict=True))


def _success(seed: SeedResults) -> float:
    """Return the share of the replicas in which anything was found."""
    return sum(not outcome.unsuccessful for outcome in seed.outcomes) / len(seed.outcomes)


def _places(order: Sequence[str], duels: Sequence[Duel]) -> dict[str, int]:
    ties = {(duel.first, duel.second) for duel in duels if duel.verdict == "tie"}
    places = {order[0]: 1}
    for number, (above, name) in enumerate(pairwise(order), 2):
        places[name] = places[above] if (above, name) in ties else number
    return places
