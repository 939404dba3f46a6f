"""Both models' answers on every seed, before any search."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from numpy.typing import NDArray

from edgeflare.campaign.progress import Progress, Step
from edgeflare.devices import DeviceSession
from edgeflare.models import OriginalModel, OutputReader
from edgeflare.oracles import Oracle
from edgeflare.seeds import RawSeed
from edgeflare.types import Outputs, Seed


class SeedAnswers(NamedTuple):
    """Raw outputs, one a seed, and the device's own seconds for each."""

    original: Sequence[NDArray[Any]]
    deployed: Sequence[NDArray[Any]]
    seconds: Sequence[float]


def ask_both(
    seeds: Sequence[RawSeed],
    original: OriginalModel,
    session: DeviceSession,
    *,
    workers: int,
    progress: Progress,
) -> SeedAnswers:
    """Return both models' answers on the seeds, in order; each seed is inferred alone."""
    pending = [session.submit([seed.sample]) for seed in seeds]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="edgeflare-seed")
    try:
        own = [pool.submit(original.raw, seed.sample) for seed in seeds]
        answers: list[tuple[NDArray[Any], NDArray[Any], float]] = []
        for mine, theirs in zip(own, pending, strict=True):
            first, reply = mine.result(), theirs.result()
            answers.append((first, reply.outputs[0], reply.seconds[0]))
            progress(Step(len(answers)))
    finally:
        pool.shutdown(cancel_futures=True)
    first_ones, second_ones, seconds = zip(*answers, strict=True)
    return SeedAnswers(first_ones, second_ones, seconds)


def answered(
    seeds: Sequence[RawSeed],
    answers: SeedAnswers,
    read: tuple[OutputReader, OutputReader],
    oracle: Oracle,
) -> list[Seed]:
    """Return the seeds with both models' scores and the oracle's decision on each."""
    made = []
    for seed, first, second in zip(seeds, answers.original, answers.deployed, strict=True):
        original, deployed = read[0].scores(first), read[1].scores(second)
        outputs = Outputs(original, deployed, oracle.decide(original, deployed))
        made.append(Seed(seed.id, seed.sample, outputs, seed.label))
    return made
