"""The device's recorded answers against the same file on this machine. No device query."""

from collections.abc import Callable, Iterator

import numpy as np

from edgeflare.triage.agreement import GAIN, least_agreement
from edgeflare.triage.cause import CORRECTED, LOCATED, MOST_LIKE, UNUSABLE, Cause
from edgeflare.triage.checks.feeding import SEEDS, fed_otherwise, screened, ways_for
from edgeflare.triage.checks.usable import broken
from edgeflare.triage.pair import Pair, agreement_with
from edgeflare.triage.ways import Way

SAME_FILE, WORSE = 20.0, 3.0
"""One file on two machines agrees at least so well, in dB, or no worse with the original than so much:
18 int8 files on reference and optimised kernels had 14 to 141 dB."""
MATCH, LIKE = 12.0, 6.0
"""What a way must reach against the device's answers, in dB: right ways had 7 to 150, wrong ones less
than 7; from 6 on it is "most like" where the next way is 6 dB worse."""


def device_answers(pair: Pair) -> Iterator[Cause]:
    """Yield that the device's answers can't be used; note whether it answers as the file does here."""
    device = pair.seeds.device
    if device is None or pair.is_unusable:
        return
    bad = broken(device.outputs)
    if bad.any():
        pair.is_unusable = True
        evidence = {"seeds": int(bad.sum()), "of": len(bad)}
        yield Cause("non-finite", "on-device", "read", UNUSABLE, "device", (), evidence, gain=60)
        return
    if device.repeated:
        pair.is_unusable = True
        evidence = {"seeds": device.repeated, "of": len(device.samples)}
        yield Cause(
            "not-repeatable", "on-device", "read", UNUSABLE, "device", (), evidence, gain=60
        )
        return
    answers = [model.answers(device.samples, Way(model.spec), device.rows) for model in pair.models]
    original, host = answers
    if original is None or host is None:
        return
    same = least_agreement(host, device.outputs)
    here, there = least_agreement(original, host), least_agreement(original, device.outputs)
    pair.ruled_out["device"] = {"same_file": same, "host": here, "device": there}
    pair.is_on_device = same < SAME_FILE and there < here - WORSE


def device_feeds(pair: Pair) -> Iterator[Cause]:
    """Yield how the file on this machine is fed where it answers as the device did. No device query."""
    device = pair.seeds.device
    assert device is not None  # noqa: S101
    count = min(SEEDS, len(device.samples))
    wanted = tuple(output[:count] for output in device.outputs)
    samples, rows = device.samples[:count], device.rows[:count]

    def score(way: Way) -> Callable[[int], float]:
        return agreement_with(pair.deployed, wanted, way, samples, rows)

    stated = score(Way(pair.deployed.spec))(count)
    needed = max(MATCH, stated + GAIN)
    tried = screened(
        *ways_for(pair, pair.deployed), score, lambda agreement: agreement >= needed, count
    )
    evidence = {"stated": stated, "tried": len(tried)}
    best = tried[0] if tried else None
    if best is not None and best.agreement >= needed:
        yield fed_otherwise(pair, best, CORRECTED, "device", evidence, tried[1:2])
    elif (
        best is not None
        and len(tried) > 1
        and best.agreement >= max(LIKE, stated + GAIN)
        and best.agreement >= tried[1].agreement + GAIN
    ):
        yield fed_otherwise(pair, best, MOST_LIKE, "device", evidence, tried[1:2])
    else:
        evidence |= {"best": -np.inf if best is None else best.agreement}
        yield Cause(
            "device", "answers-otherwise", "indicated", LOCATED, "device", evidence=evidence, gain=5
        )
