"""A campaign's findings one by one, each with its seed, its cause, and how to see it again."""

import heapq
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from edgeflare.analysis.causes import NOT_ATTRIBUTED, Causes, TriggerCause
from edgeflare.analysis.rows import has_input
from edgeflare.campaign.counting import replicas_of
from edgeflare.store import OutcomeRecord, SeedRecord, Store
from edgeflare.types import TRIGGERS


@dataclass(frozen=True)
class Finding:
    """An input to show, with the seed that it was found from.

    `seed` has as outputs the answers of the device that found it. `cause` is what a trigger comes of, see
    `Causes`; "not attributed" for what is no trigger. `command` is a line for a shell that sends the
    input again.
    """

    seed: SeedRecord
    outcome: OutcomeRecord
    cause: TriggerCause
    command: str


def findings(store: Store) -> Iterator[Finding]:
    """Every finding that has an input to show, in the order of the seeds, then of the devices that
    searched for themselves; read a page at a time. Raises StoreError."""
    return (one for one in results(store) if has_input(one.outcome))


def results(store: Store) -> Iterator[Finding]:
    """Every outcome, found or not, in the order of `findings`; read a page at a time. Raises StoreError."""
    replicas = replicas_of(store)
    causes, commands = Causes(store, replicas), Commands(store)
    ranked = (
        ((seed.position, rank, seed, outcome) for seed, outcome in _of_replica(store, replica))
        for rank, replica in enumerate(replicas)
    )
    for _, _, seed, outcome in heapq.merge(*ranked, key=itemgetter(0, 1)):
        cause = NOT_ATTRIBUTED
        if outcome.status in TRIGGERS:
            cause = causes.of(seed.id, outcome.trigger)
        yield Finding(seed, outcome, cause, commands.replay(seed.id, outcome.replica))


class Commands:
    """The lines for a shell that send a campaign's inputs again, from any folder of this machine."""

    def __init__(self, store: Store) -> None:
        self._folder = str(store.folder.resolve())
        names, devices = replicas_of(store), store.campaign.get("devices") or ()
        same = len(names) == len(devices)
        self._devices = dict(zip(names, devices, strict=True)) if same else {}

    def replay(self, seed_id: str, replica: str) -> str:
        """Return the line that sends what was found from a seed input again: to the device that searched
        for itself, as the campaign's configuration names it, or to a pool."""
        words = ["edgeflare", "replay", self._folder, "--trigger", seed_id]
        if replica:
            words += ["--device", self._devices.get(replica, replica)]
        return shlex.join(words)


def _of_replica(store: Store, replica: str) -> Iterator[tuple[SeedRecord, OutcomeRecord]]:
    seeds = store.seeds(replica)
    for outcome in store.outcomes_of(replica):
        seed = next(seed for seed in seeds if seed.id == outcome.seed_id)
        yield seed, outcome
