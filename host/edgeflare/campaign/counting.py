"""Progress counts of a campaign, from its store, over its present replicas."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare.store import MEASURING, SEED_QUERIES, Store, Tally


def replicas_of(store: Store) -> Sequence[str]:
    """Return the replicas: "" alone where devices share the seeds, else the devices' names."""
    known: Sequence[str] = store.fact("replicas") or [""]
    return known


def counted(store: Store) -> Tally:
    """Return the outcomes of these replicas, together."""
    tallies = [store.tally(replica) for replica in replicas_of(store)]
    return Tally(*(sum(column) for column in zip(*tallies, strict=True)))


def expected(store: Store) -> int:
    """Return the number of outcomes of the finished campaign."""
    return store.seed_count() * len(replicas_of(store))


def all_searched(store: Store) -> bool:
    """Whether every seed has an outcome of every replica."""
    seeds = store.seed_count()
    return seeds > 0 and all(store.tally(one).done >= seeds for one in replicas_of(store))


def is_finished(store: Store) -> bool:
    """Whether every search and every replay is done, and the control where one is wanted."""
    controlled = not store.campaign.get("control") or store.fact("control_finished")
    return bool(store.fact("finished") and controlled)


def add_asked(store: Store, kind: str, asked: Mapping[str, int]) -> None:
    """Add how often devices, by name, were asked outside of searches: `kind` is SEED_QUERIES or MEASURING."""
    if any(asked.values()):
        before: Mapping[str, Any] = store.fact(kind) or {}
        store.set_fact(kind, dict(Counter(before) + Counter(asked)))


def asked_before(store: Store) -> Counter[str]:
    """Return how often each device, by name, was asked: to measure, about seeds, by searches that ended."""
    asked: Counter[str] = Counter()
    for kind in (MEASURING, SEED_QUERIES):
        asked.update(store.fact(kind) or {})
    for one in store.outcomes():
        asked[one.device_name] += one.search_queries + one.confirmation_queries
    return asked
