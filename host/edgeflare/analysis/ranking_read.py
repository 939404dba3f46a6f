"""A candidate's campaign in the numbers that a comparison needs, by seed sample."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from edgeflare.answers import says_alike, top_label
from edgeflare.campaign.config import SearchConfig
from edgeflare.campaign.counting import replicas_of
from edgeflare.distances import disagreement
from edgeflare.errors import UsageError
from edgeflare.oracles import margins
from edgeflare.store import OutcomeRecord, SeedRecord, Store
from edgeflare.store.failures import decoding
from edgeflare.types import TRIGGERS, Status, Transcript

WITHOUT_ANSWER = frozenset({Status.FAILED, Status.UNSTABLE})
"""Ends that say nothing of how hard a model is to make deviate: no answer, or none that repeats."""
_NOTHING_FOUND = frozenset(Status) - TRIGGERS - {Status.NONFINITE}
_WORST = 1.0
_ROUNDING = 1e-6
"""Two runtimes' answers of one model, of probability."""


class Searched(NamedTuple):
    """One outcome: `queries` up to the first triggering input, else the most that were allowed.
    `disagreement` and `severity` are those of the trigger, 0 where there is none. `searched` is False
    where the seed is a finding itself. `device_queries` were answered in `device_seconds`.
    """

    status: Status
    searched: bool
    queries: float
    disagreement: float
    severity: float
    l2: float | None
    device_seconds: float
    device_queries: int

    @property
    def unsuccessful(self) -> bool:
        """Whether nothing was found, so that the queries that a finding would have needed are not known."""
        return self.status in _NOTHING_FOUND


class OfSeed(NamedTuple):
    """What a campaign says of one sample: an outcome a replica; whose top-1 class is the label, None without one."""

    outcomes: tuple[Searched, ...]
    original_right: bool | None = None
    deployed_right: bool | None = None


@dataclass(frozen=True)
class CampaignRead:
    """A campaign, as far as it is.

    `seeds` are the digests of all seed samples, `done` what is known of those that every replica has
    finished with an answer, `unanswered` how many ended without one; `alike` says that on those that
    are done both models give the same probabilities, or words, and nothing was found. `search` has every setting of the
    search; `devices` are fingerprints.
    """

    id: str
    folder: Path
    original: Mapping[str, Any]
    deployed: Mapping[str, Any]
    search: Mapping[str, Any]
    devices: frozenset[str]
    seeds: frozenset[str]
    all_seeds: bool
    done: Mapping[str, OfSeed]
    unanswered: int
    timeouts: int
    alike: bool

    @property
    def finished(self) -> bool:
        """Whether nothing is left of it."""
        return self.all_seeds and len(self.done) + self.unanswered >= len(self.seeds)

    @property
    def label_only(self) -> bool:
        """Whether the deployed model returns a class and no probabilities."""
        return bool(self.deployed.get("output", {}).get("kind") == "label")

    @property
    def transcribes(self) -> bool:
        """Whether the models are speech recognisers."""
        return bool(self.deployed.get("output", {}).get("kind") == "transcript")


def read_campaign(store: Store) -> CampaignRead:
    """Read what a comparison needs. Raises UsageError where nothing was asked yet, and StoreError."""
    models = store.models
    if not models:
        raise UsageError(
            f"{store.folder} has no answers yet, so that nothing can be compared; go on with it first "
            "(`edgeflare resume`)"
        )
    with decoding(store.folder, "the setting search"):
        search = SearchConfig.model_validate(store.campaign.get("search", {}))
    replicas = set(replicas_of(store))
    seeds = {(replica, seed.id): seed for replica in replicas for seed in store.seeds(replica)}
    expected: dict[str, int] = defaultdict(int)
    for seed in seeds.values():
        expected[seed.sample] += 1
    ended: dict[str, list[Searched]] = defaultdict(list)
    right: dict[str, tuple[bool | None, bool | None]] = {}
    for outcome in store.outcomes():
        of = seeds.get((outcome.replica, outcome.seed_id))
        if of is not None:
            ended[of.sample].append(_searched(outcome, of, search.max_queries))
            right.setdefault(of.sample, _right(of))
    done, unanswered = {}, 0
    for sample, outcomes in ended.items():
        if any(one.status in WITHOUT_ANSWER for one in outcomes):
            unanswered += 1
        elif len(outcomes) == expected[sample]:
            done[sample] = OfSeed(tuple(outcomes), *right[sample])
    return CampaignRead(
        id=store.id,
        folder=store.folder,
        original=models["original"],
        deployed=models["deployed"],
        search=search.model_dump(mode="json"),
        devices=frozenset(device.digest for device in store.devices()),
        seeds=frozenset(expected),
        all_seeds=bool(store.fact("seeds_complete")),
        done=done,
        unanswered=unanswered,
        timeouts=sum(
            one.status is Status.TIMEOUT for outcomes in ended.values() for one in outcomes
        ),
        alike=bool(done)
        and all(one.status in _NOTHING_FOUND for of in done.values() for one in of.outcomes)
        and all(_same_answers(seed) for seed in seeds.values() if seed.sample in done),
    )


def _searched(outcome: OutcomeRecord, seed: SeedRecord, max_queries: int) -> Searched:
    original, deployed = outcome.original, outcome.deployed
    deviates = outcome.status is Status.SEED_DEVIATES
    if deviates and seed.outputs is not None:
        original, deployed = seed.outputs.original, seed.outputs.deployed
    if outcome.status is Status.NONFINITE:
        apart = severity = _WORST
    elif outcome.status in TRIGGERS and original is not None and deployed is not None:
        apart, severity = (
            disagreement(original, deployed),
            margins(original, deployed).smaller or 0.0,
        )
    else:
        apart = severity = 0.0
    if deviates or outcome.status is Status.NONFINITE:
        queries = outcome.search_queries
    elif outcome.status is Status.FOUND:
        queries = outcome.first_queries
    else:
        queries = max(outcome.search_queries, max_queries)
    return Searched(
        status=outcome.status,
        searched=outcome.searched,
        queries=float(queries),
        disagreement=apart,
        severity=severity,
        l2=outcome.l2 if outcome.status is Status.FOUND else None,
        device_seconds=outcome.device_seconds,
        device_queries=outcome.search_queries + outcome.confirmation_queries,
    )


def _same_answers(seed: SeedRecord) -> bool:
    if seed.outputs is None:
        return False
    original, deployed = seed.outputs.original, seed.outputs.deployed
    if original is None or deployed is None or not says_alike(original, deployed):
        return False
    return isinstance(original, Transcript) or disagreement(original, deployed) <= _ROUNDING


def _right(seed: SeedRecord) -> tuple[bool | None, bool | None]:
    if seed.label is None or seed.outputs is None:
        return None, None
    original, deployed = seed.outputs.original, seed.outputs.deployed
    if original is None or deployed is None:
        return None, None
    if isinstance(original, Transcript) or isinstance(deployed, Transcript):
        return None, None
    return top_label(original) == seed.label, top_label(deployed) == seed.label
