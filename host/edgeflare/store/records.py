"""The records of a campaign."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, NamedTuple, overload

import numpy as np

from edgeflare.answers import numbers
from edgeflare.distances import disagreement
from edgeflare.oracles import Margins
from edgeflare.types import (
    NOTHING_SEARCHED,
    Decision,
    FrontPoint,
    Output,
    Outputs,
    Status,
    Transcript,
)


def _now() -> datetime:
    return datetime.now(timezone.utc)


class SeedAnswer(NamedTuple):
    """Both models' answers on a seed, and the oracle's decision."""

    seed_id: str
    original: Output
    deployed: Output
    decision: Decision


_WITH_ARRAYS = {"arbitrary_types_allowed": True}
"""What pydantic must know to check a record that has arrays."""


@dataclass(frozen=True)
class SeedRecord:
    """A seed input: its name, place in the order (from 0), label, and its sample's digest.

    `outputs` are both models' answers, None until there are any. `file_sha256` is the SHA-256, in
    hex, of the file that it was read from, None where that is unknown.
    """

    __pydantic_config__ = _WITH_ARRAYS

    id: str
    position: int
    label: int | None
    sample: str
    outputs: Outputs | None = None
    file_sha256: str | None = None


@dataclass(frozen=True)
class Device:
    """A device as it was when it answered; `digest` is that of its `fingerprint`."""

    digest: str
    name: str
    fingerprint: dict[str, Any]


@dataclass(frozen=True)
class OutcomeRecord:
    """How the search from one seed ended, with everything needed to see it again.

    `trigger` is the digest of the stored sample; `original` and `deployed` are both models' answers to
    it, with the labels (None of transcripts) and margins (top-1 minus top-2) they give. `l2` and `linf` are
    the distances to the seed, `snr_db` that of audio as a ratio in dB, as `edgeflare.distances` has them.
    `seconds` is search time without queueing, as `Budget` counts it, `round_trips` the search's requests to
    the device; `device_seconds` is the device's own time for all queries of the search and its
    confirmations: divided by their number it is the mean latency of inference. `front` has the deviations
    that no earlier one of the search exceeds in both margin and distance. `confirmed` counts how often the
    stored bytes gave the same answer again. `device` is the digest that
    `Store.add_device` returned and `device_name` what it is called; `environment` is filled in by the
    store: the digest of the host's environment in force when the outcome was added.

    `replica` is "" in a pool of devices that shares the seeds, and the device's name where each
    device searches for itself; a seed has one outcome a replica.
    """

    __pydantic_config__ = _WITH_ARRAYS

    seed_id: str
    status: Status
    chain_seed: int
    seed_queries: int = 0
    search_queries: int = 0
    confirmation_queries: int = 0
    host_only_queries: int = 0
    round_trips: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0
    device: str | None = None
    trigger: str | None = None
    original: Output | None = None
    deployed: Output | None = None
    original_label: int | None = None
    deployed_label: int | None = None
    original_margin: float | None = None
    deployed_margin: float | None = None
    l2: float | None = None
    linf: int | None = None
    front: Sequence[FrontPoint] = ()
    mutations: Sequence[dict[str, Any]] = ()
    detail: str = ""
    confirmed: int = 0
    finished_at: datetime = field(default_factory=_now)
    environment: str | None = None
    replica: str = ""
    device_name: str = ""
    snr_db: float | None = None

    @property
    def searched(self) -> bool:
        """Whether it was searched from the seed: not from one that is a finding itself.

        A search that ended before its first query, since its budget couldn't pay it, counts; the strategy
        none doesn't.
        """
        asked = self.search_queries > 0 or self.host_only_queries > 0
        return asked or (self.status in SEARCH_ENDS and self.detail != NOTHING_SEARCHED)

    @property
    def severity(self) -> float | None:
        """The smaller margin of both models, from 0 to 1; that of one alone where the other has none."""
        return Margins(self.original_margin, self.deployed_margin).smaller

    @property
    def disagreement(self) -> float | None:
        """How far apart both models' answers are, from 0 to 1, as `distances.disagreement` has it; None where unknown."""
        if self.original is None or self.deployed is None:
            return None
        return disagreement(self.original, self.deployed)

    @property
    def first_queries(self) -> int:
        """The search queries up to the first triggering input, though the search went on for a more severe one."""
        return self.front[0].queries if self.front else self.search_queries


SEED_QUERIES, MEASURING = "seed_queries", "measuring_queries"
"""Facts: how often each device, by name, was asked about seeds, and to measure or to compare devices."""

WALL_S = "wall_s"
"""A fact: the seconds of all runs of a campaign by the clock, without those of a run that was killed."""

SEARCH_ENDS = (Status.EXHAUSTED, Status.TIMEOUT, Status.GAVE_UP)
"""Statuses that only a search ends with."""


class Tally(NamedTuple):
    """Outcomes in figures.

    `done` counts all of them, `found` those with a triggering input, `searched` those whose search
    began; `queries` are search queries.
    """

    done: int
    found: int
    searched: int
    queries: int


@dataclass(frozen=True)
class ReplayRecord:
    """What one device answers to a triggering input that another replica, or the pool, found.

    `replica` is the one whose trigger it is, `on_device` the name of the device that was asked,
    `trigger` the digest of the stored sample; `deployed` is its answer (of no scores where it gave none), with the
    label it gives and what the oracle says of it beside the original's.
    """

    __pydantic_config__ = _WITH_ARRAYS

    seed_id: str
    replica: str
    on_device: str
    trigger: str
    deployed: Output
    deployed_label: int | None
    decision: Decision


def is_answer(output: Output) -> bool:
    """Whether this is an answer: no scores at all say that the device could not give one; hearing nothing is an answer."""
    return isinstance(output, Transcript) or output.size > 0


@overload
def output_from(data: bytes, pieces: Sequence[str] | None) -> Output: ...


@overload
def output_from(data: bytes | None, pieces: Sequence[str] | None) -> Output | None: ...


def output_from(data: bytes | None, pieces: Sequence[str] | None) -> Output | None:
    """Return the answer that `output_columns` was given, by its two columns."""
    if data is None:
        return None
    scores = np.frombuffer(data, dtype="<f8").astype(np.float64)
    return scores if pieces is None else Transcript(tuple(pieces), scores.reshape(-1, 2))


def output_columns(name: str, output: Output | None) -> dict[str, Any]:
    """Return an answer as two columns: scores as little-endian float64, NaN and infinity kept, and a transcript's pieces."""
    return {
        name: None if output is None else np.asarray(numbers(output), dtype="<f8").tobytes(),
        f"{name}_pieces": list(output.pieces) if isinstance(output, Transcript) else None,
    }
