"""Both models' answers on every seed, before any search."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

from edgeflare.campaign.progress import Progress, Step
from edgeflare.devices import DeviceSession
from edgeflare.models import OriginalModel, OutputReader
from edgeflare.oracles import Oracle
from edgeflare.seeds import RawSeed
from edgeflare.types import Outputs, Seed

Raws = tuple[Sequence[NDArray[Any]], Sequence[NDArray[Any]]]


def ask_both(
    seeds: Sequence[RawSeed],
    original: OriginalModel,
    session: DeviceSession,
    *,
    workers: int,
    progress: Progress,
) -> Raws:
    """Return the original's and the deployed model's raw outputs, one a seed, in order."""
    pending = [session.submit([seed.sample]) for seed in seeds]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="edgeflare-seed")
    try:
        own = [pool.submit(original.raw, seed.sample) for seed in seeds]
        deployed = []
        for future in pending:
            deployed.append(future.result().outputs[0])
            progress(Step(len(deployed)))
        return [future.result() for future in own], deployed
    finally:
        pool.shutdown(cancel_futures=True)


def answered(
    seeds: Sequence[RawSeed],
    raws: Raws,
    read: tuple[OutputReader, OutputReader],
    oracle: Oracle,
) -> list[Seed]:
    """Return the seeds with both models' scores and the oracle's decision on each."""
    made = []
    for seed, first, second in zip(seeds, *raws, strict=True):
        original, deployed = read[0].scores(first), read[1].scores(second)
        outputs = Outputs(original, deployed, oracle.decide(original, deployed))
        made.append(Seed(seed.id, seed.sample, outputs, seed.label))
    return made
