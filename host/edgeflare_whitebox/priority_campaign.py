"""How early orders of a stored campaign's seeds bring its findings, beside random order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import plugins
from edgeflare._internal.records import JsonRecord
from edgeflare.analysis import RunContext
from edgeflare.campaign.priority import (
    OF_SCORES,
    InspectedOriginal,
    check_measure,
    drift_priorities,
    order_of,
    priorities,
)
from edgeflare.errors import ModelError, UsageError
from edgeflare.store import Store
from edgeflare.types import Decision, Output, SeedInput, Status
from edgeflare_whitebox.priority import PRIORITY_MEASURES
from edgeflare_whitebox.stored import (
    InspectionSettings,
    Tell,
    inspect_campaign,
    kept,
    silent,
    stored_original,
)

RANDOM = "random"
"""The name of random order."""
SHARES = (0.1, 0.25, 0.5)
"""The shares of the budget by which findings are counted."""
FindingKind: TypeAlias = Literal["natural", "trigger", "survey"]
"""Seeds that deviate themselves, seeds whose search found a triggering input, and seeds with a
confident deviation in the survey."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PriorityFigures:
    """How early one order brings the findings of one kind.

    `measure` is a priority measure, or "random": then all are means over shuffles. `apfd` is 0 to
    1, `within` the share of the findings, 0 to 1, by the share of the budget: "0.1", "0.25", "0.5".
    `p` is the chance of an APFD as high as this in random order, by the shuffles: at least 1 /
    (shuffles + 1), 1 where all seeds have a finding, None of random order.
    """

    measure: str
    apfd: float
    within: Mapping[str, float]
    p: float | None = None


@dataclass(frozen=True)
class FindingsComparison:
    """The orders of the `seeds` that findings of one kind could come from.

    `found` is the number of seeds with such a finding. `budget` is the cost of all of them, in
    `unit`: in device queries of the searches where these differ from seed to seed, else in seeds.
    `orders` has random order last.
    """

    kind: FindingKind
    seeds: int
    found: int
    budget: int
    unit: Literal["device queries", "seeds"]
    orders: tuple[PriorityFigures, ...]


@dataclass(frozen=True)
class PriorityComparison(JsonRecord):
    """How early each order of a campaign's seeds brings its findings, by their kinds.

    `left_out` has the measures that can't be computed, with the reason. Random order is the mean
    over `shuffles` drawn with `random_seed`.
    """

    folder: str
    seeds: int
    shuffles: int
    random_seed: int
    findings: tuple[FindingsComparison, ...]
    left_out: Mapping[str, str]


class PrioritySettings(InspectionSettings):
    """What `prioritise_campaign` is told."""

    measures: tuple[str, ...] | None = None
    shuffles: int = 200
    random_seed: int = 0


_Findings: TypeAlias = tuple[FindingKind, NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]
"""Of seeds that could have a finding: their places, those of which have one, and each one's cost."""


class _Seeds:
    """A campaign's seeds, read again each time; samples are read one by one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __iter__(self) -> Iterator[SeedInput]:
        for seed in self._store.seeds():
            yield SeedInput(seed.id, self._store.get_sample(seed.sample), seed.label)


def prioritise_campaign(
    folder: Path, *, tell: Tell = silent, **settings: Any
) -> PriorityComparison:
    """Return how early each order of a campaign's seeds brings its findings.

    `settings` are: `original`, where the file has moved; `measures`, by
    default all, those of other distributions last; the number of `shuffles` of random order, drawn
    with `random_seed`. Each kind of finding that the campaign has is judged by itself: seeds that
    deviate themselves, among all that are answered; triggering inputs, among the seeds that were
    searched; confident deviations of the survey, among the seeds that it asked about. A seed of
    several replicas counts once, with their costs added. ``drift`` is known of the survey, so that
    it orders the searches alone.

    ``surprise`` and ``rarity`` run the original once more; where its file is gone, changed, or can't
    be looked into they are left out, and so is ``rarity`` without the extra `inspection`.

    Raises UsageError for models that return text, a campaign without answers, unknown measures
    and less than one shuffle; StoreError.
    """
    found: PriorityComparison = inspect_campaign("prioritise", folder, tell, **settings)
    return found


def compare_orders(
    store: Store, settings: PrioritySettings, context: RunContext
) -> PriorityComparison:
    """Return what `prioritise_campaign` does, of an open campaign."""
    measures, shuffles = settings.measures, settings.shuffles
    if measures is None:
        measures = (*PRIORITY_MEASURES, *plugins.names("priority"))
    for measure in measures:
        check_measure(measure)
    if shuffles < 1:
        raise UsageError(f"random order is a mean over 1 shuffle or more, not {shuffles}")
    answers = [None if one.outputs is None else one.outputs.original for one in store.seeds()]
    if not any(one is not None for one in answers):
        raise UsageError(f"the campaign in {store.folder} has no answers yet: resume it")
    store.kind.check_classes(
        UsageError(
            f"seeds are ordered by probabilities of classes, and the models of {store.folder} "
            "return text, boxes or values"
        )
    )
    known: dict[str, NDArray[np.float64]] = {}
    left_out: dict[str, str] = {}
    wanted = tuple(dict.fromkeys(measures))
    for done, measure in enumerate(wanted):
        context.tell("by measures", done, len(wanted))
        try:
            make = partial(_priorities, measure, store, answers, settings.original)
            known[measure] = kept(context.resume, measure, make)
        except (ModelError, UsageError) as error:
            left_out[measure] = str(error)
    context.tell("by measures", len(wanted), len(wanted))
    kinds = [findings for findings in _findings(store) if findings[2].size]
    rng = np.random.default_rng(settings.random_seed)
    return PriorityComparison(
        folder=str(store.folder),
        seeds=len(answers),
        shuffles=shuffles,
        random_seed=settings.random_seed,
        findings=tuple(_compared(findings, known, shuffles, rng) for findings in kinds),
        left_out=left_out,
    )


def _priorities(
    measure: str, store: Store, answers: Sequence[Output | None], original: Path | None
) -> NDArray[np.float64]:
    """Return the priorities of all seeds. Raises UsageError and ModelError where there are none."""
    if measure == "drift":
        return _drift(store)
    if measure in OF_SCORES:
        return np.array([OF_SCORES[measure](answer) for answer in answers], np.float64)
    model = stored_original(store, original)
    inside = InspectedOriginal(model.path, model.graph, model.spec, model.label)
    left = iter(answers)
    return priorities(measure, _Seeds(store), lambda some: [next(left) for _ in some], inside)


def _drift(store: Store) -> NDArray[np.float64]:
    columns = store.columns.survey("survey")
    if np.isnan(columns.total_variation).all():
        raise UsageError("the survey has no scores of both models")
    found: list[list[float]] = [[] for _ in range(store.seed_count())]
    for seed, one in zip(columns.seed, columns.total_variation, strict=True):
        if not np.isnan(one):
            found[seed].append(float(one))
    return drift_priorities(found)


def _findings(store: Store) -> Iterator[_Findings]:
    """Yield the seeds that each kind of finding could come from."""
    count = store.seed_count()

    def judged(
        kind: FindingKind,
        places: NDArray[np.integer[Any]],
        is_finding: NDArray[np.bool_],
        costs: NDArray[np.int64],
    ) -> _Findings:
        among = np.unique(places)
        hits = np.flatnonzero(np.isin(among, places[is_finding]))
        return kind, among, hits, costs[among]

    answered = [
        (seed.position, seed.outputs.decision)
        for replica in store.state.replicas
        for seed in store.seeds(replica)
        if seed.outputs is not None
    ]
    deviates = [decision in (Decision.DEVIATION, Decision.NONFINITE) for _, decision in answered]
    each = np.ones(count, np.int64)
    positions = np.array([position for position, _ in answered], np.intp)
    yield judged("natural", positions, np.array(deviates, bool), each)
    outcomes = store.columns.outcomes()
    of_search = outcomes.searched
    queries = np.zeros(count, np.int64)
    np.add.at(queries, outcomes.seed[of_search], outcomes.search_queries[of_search])
    is_found = outcomes.status.among(Status.FOUND.value)[of_search]
    yield judged("trigger", outcomes.seed[of_search], is_found, queries)
    survey = store.columns.survey("survey")
    yield judged("survey", survey.seed, survey.confident_deviation, each)


def _compared(
    findings: _Findings,
    known: Mapping[str, NDArray[np.float64]],
    shuffles: int,
    rng: np.random.Generator,
) -> FindingsComparison:
    kind, places, hits, costs = findings
    varies = len(np.unique(costs)) > 1
    each = costs if varies else np.ones_like(costs)

    def figures(order: NDArray[np.intp]) -> list[float]:
        within = (found_within(order, hits.tolist(), share, each) for share in SHARES)
        return [apfd(order, hits.tolist()), *within]

    def row(measure: str, figure: float, *shares: float) -> PriorityFigures:
        as_high = np.count_nonzero(drawn[:, 0] >= figure - _ROUNDING)
        p = None if measure == RANDOM else float((as_high + 1) / (shuffles + 1))
        return PriorityFigures(measure, figure, dict(zip(map(str, SHARES), shares, strict=True)), p)

    drawn = np.array([figures(rng.permutation(len(places))) for _ in range(shuffles)])
    orders = [
        row(measure, *figures(order_of(found[places])))
        for measure, found in known.items()
        if measure != "drift" or kind == "trigger"
    ]
    return FindingsComparison(
        kind=kind,
        seeds=len(places),
        found=len(hits),
        budget=int(each.sum()),
        unit="device queries" if varies else "seeds",
        orders=(*orders, row(RANDOM, *map(float, drawn.mean(axis=0)))),
    )


def apfd(order: Sequence[int] | NDArray[np.intp], found: Iterable[int]) -> float:
    """Return the average percentage of faults detected, 0 to 1: higher where findings come early.

    `order` has the places of all n seeds, each once; `found` the places of the m seeds that have a
    finding. It is 1 - sum(TF_i) / (n * m) + 1 / (2 * n), where TF_i is the 1-based place of the
    i-th finding in the order; random order gives 0.5 on average.

    Source: Rothermel et al., "Prioritizing Test Cases For Regression Testing", IEEE TSE 2001; each
    seed with a finding counts as one fault. Raises UsageError where nothing is found, and for an
    order that isn't one or lacks a finding.
    """
    first = np.flatnonzero(_are_found(order, found)) + 1
    return float(1 - first.sum() / (len(order) * len(first)) + 1 / (2 * len(order)))


def found_within(
    order: Sequence[int] | NDArray[np.intp],
    found: Iterable[int],
    share: float,
    costs: Sequence[float] | NDArray[np.number] | None = None,
) -> float:
    """Return the share of all findings, 0 to 1, that are found within a share of the whole budget.

    `order` and `found` as `apfd` takes them. `costs` has what each seed costs, [seeds], 1 each
    where it is None; those seeds count that are paid for wholly before the budget is spent. Raises
    UsageError as `apfd`, for a share that isn't from 0 to 1, and for costs of other seeds or below
    0.
    """
    if not 0 <= share <= 1:
        raise UsageError(f"a share of the budget is from 0 to 1, not {share}")
    hits = _are_found(order, found)
    each = np.ones(len(order)) if costs is None else np.asarray(costs, np.float64)
    if each.shape != hits.shape or not (each >= 0).all():
        raise UsageError("a budget needs a cost of 0 or more for each seed")
    spent = np.cumsum(each[np.asarray(order)])
    paid = spent <= share * spent[-1] * (1 + 1e-12)
    return float(np.count_nonzero(hits & paid) / np.count_nonzero(hits))


def _are_found(order: Sequence[int] | NDArray[np.intp], found: Iterable[int]) -> NDArray[np.bool_]:
    """Return for each place of the order whether that seed has a finding. Raises UsageError."""
    places, wanted = np.asarray(order), sorted(set(found))
    if not np.array_equal(np.sort(places), np.arange(len(places))):
        raise UsageError("an order names the places of all seeds from 0, each once")
    hits: NDArray[np.bool_] = np.isin(places, wanted)
    if not wanted or np.count_nonzero(hits) != len(wanted):
        raise UsageError("an order is judged by one finding or more, of seeds that it has")
    return hits
