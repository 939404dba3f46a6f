"""The figures of a campaign's answers, by their kind: what they differ in on seeds and triggers."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from edgeflare.answers.detections.figures import DetectionFigures, counted_differences
from edgeflare.answers.detections.matching import DifferenceKind
from edgeflare.answers.metrics import is_finite
from edgeflare.answers.values import ValueFigures
from edgeflare.campaign.status import replica_names
from edgeflare.statistics import clustered_interval
from edgeflare.store import Store
from edgeflare.types import TRIGGERS, Detections, Output

DETECTION_KINDS = ("detections", "tags")
"""What the outputs of models are (`edgeflare.models.OutputKind`) whose answers are `Detections`."""

_Pair: TypeAlias = tuple[Output, Output]


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


class AnswerFigures(NamedTuple):
    """The figures of a campaign's answers; `kind` is the name of their kind."""

    kind: str
    figures: Any


def answer_figures(store: Store) -> AnswerFigures | None:
    """Return what the kind of a campaign's answers has as figures; None without. Raises StoreError."""
    kind = store.kind
    figures = kind.figures(_seeds(store), _triggers(store), store.campaign)
    return None if figures is None else AnswerFigures(kind.name, figures)


def detection_figures(store: Store) -> DetectionFigures | None:
    """Return the figures of a campaign of detectors; None of others. Raises StoreError."""
    found = answer_figures(store)
    return found.figures if found and isinstance(found.figures, DetectionFigures) else None


def value_figures(store: Store) -> ValueFigures | None:
    """Return the figures of a campaign of values; None of others. Raises StoreError."""
    found = answer_figures(store)
    return found.figures if found and isinstance(found.figures, ValueFigures) else None


def _seeds(store: Store) -> Iterator[_Pair]:
    return (both for *_, both in _answered_seeds(store))


def _answered_seeds(store: Store) -> Iterator[tuple[str, str, _Pair]]:
    """Yield each seed's name, replica and answers, where both models have answered."""
    for replica in replica_names(store):
        for seed in store.seeds(replica):
            if seed.outputs is None:
                continue
            original, deployed, _ = seed.outputs
            if original is not None and deployed is not None:
                yield seed.id, replica, (original, deployed)


def _triggers(store: Store) -> Iterator[_Pair]:
    for one in store.outcomes():
        if one.status in TRIGGERS and one.original is not None and one.deployed is not None:
            yield one.original, one.deployed
