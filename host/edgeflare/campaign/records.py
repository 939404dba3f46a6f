"""A chain's result as the store's record."""

from edgeflare.answers import top_label
from edgeflare.distances import l2, linf, snr_db
from edgeflare.oracles import Margins, margins
from edgeflare.scheduler import ChainResult
from edgeflare.store import OutcomeRecord


def outcome_record(
    result: ChainResult, device: str, *, device_name: str, replica: str
) -> OutcomeRecord:
    """Return the record of a chain that has ended; `device` is the digest of its fingerprint."""
    original = result.outputs.original if result.outputs else None
    deployed = result.outputs.deployed if result.outputs else None
    sure = Margins(None, None)
    if original is not None and deployed is not None:
        sure = margins(original, deployed)
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
        original_margin=sure.original,
        deployed_margin=None if result.seed.labels_only else sure.deployed,
        l2=None if sample is None else l2(seed, sample),
        linf=None if sample is None else linf(seed, sample),
        snr_db=None if sample is None else snr_db(seed, sample),
        front=result.front,
        mutations=result.mutations,
        confirmed=result.confirmed,
        detail=result.detail,
        device_name=device_name,
        replica=replica,
    )
