"""A chain's result as the store's record."""

import numpy as np

from edgeflare.distances import l2, linf
from edgeflare.oracles import margin
from edgeflare.scheduler import ChainResult
from edgeflare.store import OutcomeRecord
from edgeflare.types import Scores


def outcome_record(
    result: ChainResult, device: str, *, device_name: str, replica: str
) -> OutcomeRecord:
    """Return the record of a chain that has ended; `device` is the digest of its fingerprint."""
    original = result.outputs.original if result.outputs else None
    deployed = result.outputs.deployed if result.outputs else None
    seed, sample = result.seed.sample, result.sample
    return OutcomeRecord(
        seed_id=result.seed.id,
        status=result.status,
        chain_seed=result.chain_seed,
        seed_queries=result.counters.seed,
        search_queries=result.counters.search,
        confirmation_queries=result.counters.confirmation,
        host_only_queries=result.counters.host_only,
        round_trips=result.counters.round_trips,
        seconds=result.counters.seconds,
        device_seconds=result.counters.device_seconds,
        device=device,
        trigger=result.sample_digest,
        original=original,
        deployed=deployed,
        original_label=top_label(original),
        deployed_label=top_label(deployed),
        original_margin=None if original is None else margin(original),
        deployed_margin=None if deployed is None or result.seed.labels_only else margin(deployed),
        l2=None if sample is None else l2(seed, sample),
        linf=None if sample is None else linf(seed, sample),
        front=result.front,
        mutations=result.mutations,
        confirmed=result.confirmed,
        detail=result.detail,
        device_name=device_name,
        replica=replica,
    )


def top_label(scores: Scores | None) -> int | None:
    """Return the top-1 label; NaN leaves none."""
    if scores is None or np.isnan(scores).any():
        return None
    return int(scores.argmax())
