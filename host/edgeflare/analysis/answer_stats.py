"""How the answers of two detectors, or of two models of values, differ over a campaign."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from edgeflare.analysis.outcome_stats import Spread, output_kind, spread
from edgeflare.campaign.status import replica_names
from edgeflare.detections import DIFFERENCE_KINDS, Difference, DifferenceKind, differences
from edgeflare.metrics import is_finite
from edgeflare.statistics import clustered_interval, median
from edgeflare.store import Store
from edgeflare.types import TRIGGERS, Detections, Output, ValueMeasure, Values
from edgeflare.values import distance, mean_iou

DETECTION_KINDS = ("detections", "tags")
"""What the outputs of models are (`edgeflare.models.OutputKind`) whose answers are `Detections`."""

_Both: TypeAlias = tuple[Output, Output]


@dataclass(frozen=True)
class ClassDifferences:
    """The differences of objects of one class, by `kinds`: lost, ghost, class, shift.

    `original` and `deployed` are the detections of this class. A difference counts for the class
    that the original saw, a ghost for that of the deployed model.
    """

    label: int
    original: int
    deployed: int
    kinds: dict[str, int]


@dataclass(frozen=True)
class DifferenceCounts:
    """The differences over `inputs` that both models answered.

    `differing` of the inputs have any; `inputs_by_kind` counts those with one of a kind. `original`
    and `deployed` are the numbers of detections, `kinds` counts the differences, `classes` has a
    row for each class with a difference, the most frequent first. `detected` has the detections of
    every class, the original's and the deployed model's.
    """

    inputs: int
    differing: int
    inputs_by_kind: dict[str, int]
    original: int
    deployed: int
    kinds: dict[str, int]
    classes: tuple[ClassDifferences, ...]
    detected: dict[int, tuple[int, int]]


@dataclass(frozen=True)
class DetectionFigures:
    """The differences on the seeds as they are, and on the triggering inputs.

    Those with a margin below the campaign's floor, or of 0, don't count. `settings` is the table
    "detection" of the campaign: what is detected, and when two boxes are of one object.
    """

    seeds: DifferenceCounts
    triggers: DifferenceCounts
    settings: dict[str, Any]


@dataclass(frozen=True)
class ValueFigures:
    """How far the answers of values are apart, by `measure` (`edgeflare.values.MEASURES`).

    `tolerance` is the largest distance that is no deviation, None where a user's oracle decides.
    `seeds` and `triggers` are the distances, `mean_iou` the median over the seeds, of label maps.
    `by_element`: each element has a tolerance of its own, which its difference is divided by.
    """

    measure: ValueMeasure
    tolerance: float | None
    seeds: Spread | None
    triggers: Spread | None
    mean_iou: float | None
    by_element: bool = False


def counted_differences(
    original: Detections, deployed: Detections, floor: float
) -> tuple[Difference, ...]:
    """Return the differences that an oracle with this margin floor counts."""
    found = differences(original, deployed)
    return tuple(one for one in found if one.margin > 0 and one.margin >= floor)


class KindRate(NamedTuple):
    """How many `objects` on the seeds differ in a kind, as the limits by kind count them.

    `low` and `high` bound the share with 95 % confidence, two-sided; that objects of one seed are
    alike is taken into account, see `edgeflare.statistics.clustered_interval`; those of one seed on
    several replicas are one group, too. `seeds` have such a difference, by name, those with most of
    them first.
    """

    differing: int
    objects: int
    low: float
    high: float
    seeds: tuple[str, ...]

    @property
    def rate(self) -> float:
        """The share of the objects."""
        return self.differing / self.objects


def kind_rate(store: Store, kind: DifferenceKind, label: int | None = None) -> KindRate | None:
    """Return the share of the objects on the seeds that differ in a kind, of all classes or of one.

    Of ghosts the objects are those that the deployed model detects, else those of the original.
    Where the deployed model answers with NaN or infinity, all objects of the original are lost and
    it detects none; seeds on which the original does so are left out. None where there is no such
    object. Raises StoreError.
    """
    floor = _margin_floor(store)
    found: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    worst: list[tuple[int, str]] = []
    for seed, replica, (original, deployed) in _answered_seeds(store):
        if not (isinstance(original, Detections) and isinstance(deployed, Detections)):
            continue
        if not is_finite(original):
            continue
        broken = not is_finite(deployed)
        of = deployed if kind == "ghost" else original
        labels = of.labels[: 0 if broken and kind == "ghost" else of.count]
        objects = len(labels) if label is None else int((labels == label).sum())
        if broken:
            differing = objects if kind == "lost" else 0
        else:
            differing = sum(
                one.kind == kind and label in (None, one.label)
                for one in counted_differences(original, deployed, floor)
            )
        found[seed] += differing
        totals[seed] += objects
        if differing:
            worst.append((differing, f"{seed} on {replica}" if replica else seed))
    if not totals.total():
        return None
    seeds = [seed for seed, objects in totals.items() if objects]
    low, high = clustered_interval([found[one] for one in seeds], [totals[one] for one in seeds])
    names = tuple(name for _, name in sorted(worst, key=lambda one: -one[0]))
    return KindRate(found.total(), totals.total(), low, high, names)


def _margin_floor(store: Store) -> float:
    return float((store.campaign.get("search") or {}).get("margin_floor") or 0.0)


def _finite_detections(original: Output, deployed: Output) -> tuple[Detections, Detections] | None:
    if not (isinstance(original, Detections) and isinstance(deployed, Detections)):
        return None
    return (original, deployed) if is_finite(original) and is_finite(deployed) else None


def detection_figures(store: Store) -> DetectionFigures | None:
    """Return the figures of a campaign of detectors; None of others. Raises StoreError."""
    if output_kind(store.models) not in DETECTION_KINDS:
        return None
    floor = _margin_floor(store)
    return DetectionFigures(
        difference_counts(_seeds(store), floor),
        difference_counts(_triggers(store), floor),
        dict(store.campaign.get("detection") or {}),
    )


def value_figures(store: Store) -> ValueFigures | None:
    """Return the figures of a campaign of values; None of others. Raises StoreError."""
    if output_kind(store.models) != "values":
        return None
    seeds, triggers = (list(_of_values(pairs)) for pairs in (_seeds(store), _triggers(store)))
    if not seeds:
        return None
    measure = seeds[0][0].rules.measure
    overlaps = [mean_iou(*both) for both in seeds] if measure == "labels" else []
    tolerance = (store.campaign.get("search") or {}).get("tolerance")
    return ValueFigures(
        measure,
        None if tolerance is None else float(tolerance),
        spread([distance(*both) for both in seeds]),
        spread([distance(*both) for both in triggers]),
        median(overlaps),
        bool(seeds[0][0].rules.tolerances),
    )


def difference_counts(pairs: Iterable[_Both], floor: float = 0.0) -> DifferenceCounts:
    """Count the differences of pairs of answers, without those that are no finite detections."""
    inputs = differing = 0
    by_input: Counter[str] = Counter()
    found: Counter[tuple[int, str]] = Counter()
    detected: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for both in pairs:
        answers = _finite_detections(*both)
        if answers is None:
            continue
        inputs += 1
        for counts, answer in zip(detected, answers, strict=True):
            counts.update(answer.labels[: answer.count].tolist())
        differ = counted_differences(*answers, floor)
        differing += bool(differ)
        by_input.update({one.kind for one in differ})
        found.update((one.label, one.kind) for one in differ)
    rows = [
        ClassDifferences(
            label,
            detected[0][label],
            detected[1][label],
            {kind: found[label, kind] for kind in DIFFERENCE_KINDS},
        )
        for label in {label for label, _ in found}
    ]
    return DifferenceCounts(
        inputs,
        differing,
        {kind: by_input[kind] for kind in DIFFERENCE_KINDS},
        detected[0].total(),
        detected[1].total(),
        {kind: sum(row.kinds[kind] for row in rows) for kind in DIFFERENCE_KINDS},
        tuple(sorted(rows, key=lambda row: (-sum(row.kinds.values()), row.label))),
        {
            label: (detected[0][label], detected[1][label])
            for label in sorted(detected[0] | detected[1])
        },
    )


def _seeds(store: Store) -> Iterator[_Both]:
    return (both for *_, both in _answered_seeds(store))


def _answered_seeds(store: Store) -> Iterator[tuple[str, str, _Both]]:
    """Yield each seed's name, replica and answers, where both models have answered."""
    for replica in replica_names(store):
        for seed in store.seeds(replica):
            if seed.outputs is None:
                continue
            original, deployed, _ = seed.outputs
            if original is not None and deployed is not None:
                yield seed.id, replica, (original, deployed)


def _triggers(store: Store) -> Iterator[_Both]:
    for one in store.outcomes():
        if one.status in TRIGGERS and one.original is not None and one.deployed is not None:
            yield one.original, one.deployed


def _of_values(pairs: Iterable[_Both]) -> Iterator[tuple[Values, Values]]:
    for original, deployed in pairs:
        if isinstance(original, Values) and isinstance(deployed, Values):
            yield original, deployed
