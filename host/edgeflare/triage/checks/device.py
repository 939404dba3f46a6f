"""The device's recorded answers against the same file on this machine. No device query."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgeflare.errors import ModelError
from edgeflare.models.tensors import KERNELS
from edgeflare.triage.agreement import GAIN, HEALTHY, Outputs, least_agreement
from edgeflare.triage.cause import (
    CORRECTED,
    LIKELY,
    LOCATED,
    MOST_LIKE,
    UNUSABLE,
    Cause,
    CauseKind,
)
from edgeflare.triage.checks.feeding import SEEDS, fed_otherwise, screened, ways_for
from edgeflare.triage.checks.usable import broken
from edgeflare.triage.model import HostModel
from edgeflare.triage.pair import Pair, agreement_with
from edgeflare.triage.ways import Way
from edgeflare.types import Sample

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
    if pair.is_recorded:
        return
    count = min(pair.most_seeds, len(device.samples))
    samples, rows = device.samples[:count], device.rows[:count]
    there = tuple(output[:count] for output in device.outputs)
    original, host = (model.answers(samples, Way(model.spec), rows) for model in pair.models)
    if original is None or host is None:
        return
    same = least_agreement(host, there)
    stated, reached = least_agreement(original, host), least_agreement(original, there)
    pair.ruled_out["device"] = {"same_file": same, "host": stated, "device": reached}
    if reached < stated - WORSE:
        if same < SAME_FILE:
            pair.on_device = original, there
        elif pair.deployed.number_format == "float32" and same < HEALTHY["float32"]:
            # other kernels or half precision may do that; a feed that explains it all is told
            pair.near_on_device = original, there


def device_feeds(pair: Pair) -> Iterator[Cause]:
    """Yield how the file on this machine is fed where it answers as the device did. No device query."""
    device = pair.seeds.device
    assert device is not None  # noqa: S101
    count = min(SEEDS, len(device.samples))
    expected = tuple(output[:count] for output in device.outputs)
    samples, rows = device.samples[:count], device.rows[:count]

    def score(way: Way) -> Callable[[int], float]:
        return agreement_with(pair.deployed, expected, way, samples, rows)

    stated = score(Way(pair.deployed.spec))(count)
    is_near = pair.on_device is None
    needed = max(HEALTHY["float32"] if is_near else MATCH, stated + GAIN)
    kernels = _other_kernels(pair, expected, samples, rows)
    if kernels is not None and kernels[0] >= needed:
        if is_near:
            return
        agreement, options = kernels
        yield Cause(
            *("kernels", "other-kernels", "corrected", CORRECTED, "device"),
            evidence={"agreement": agreement, "stated": stated, "options": options},
            gain=agreement - stated,
        )
        return
    tried = screened(
        *ways_for(pair, pair.deployed), score, lambda agreement: agreement >= needed, count
    )
    evidence = {"stated": stated, "tried": len(tried)}
    best = tried[0] if tried else None
    if best is not None and best.agreement >= needed:
        pair.on_device = pair.on_device or pair.near_on_device
        yield fed_otherwise(pair, best, CORRECTED, "device", evidence, tried[1:])
    elif is_near:
        return
    elif (
        best is not None
        and len(tried) > 1
        and best.agreement >= max(LIKE, stated + GAIN)
        # no other way is near, or the gain is more than other kernels could make up for
        and best.agreement >= min(tried[1].agreement + GAIN, stated + 2 * GAIN)
    ):
        yield fed_otherwise(pair, best, MOST_LIKE, "device", evidence, tried[1:])
    else:
        yield _of_device(pair, evidence | {"best": -np.inf if best is None else best.agreement})


def _of_device(pair: Pair, evidence: Mapping[str, Any]) -> Cause:
    """Return that nothing here answers as the device does: its accelerator, or what can't be told."""
    device, answers = pair.seeds.device, pair.on_device
    accelerator = "" if device is None else device.accelerator
    agreements = pair.ruled_out["device"]
    is_far = (
        agreements["same_file"] < MATCH and agreements["device"] < agreements["host"] - 2 * GAIN
    )
    is_off = answers is None or is_far or pair.are_off(*answers)
    kind: CauseKind = "accelerator" if accelerator else "device"
    return Cause(
        *(kind, "answers-otherwise", "indicated", LOCATED if is_off else LIKELY, "device"),
        evidence={**evidence, "accelerator": accelerator},
        gain=5,
    )


def _other_kernels(
    pair: Pair, expected: Outputs, samples: Sequence[Sample], rows: Sequence[int]
) -> tuple[float, Mapping[str, Any]] | None:
    """Return the best agreement of the file here with the device's answers by other kernels, and their options."""
    file, tried = pair.deployed.file, []
    for options in KERNELS.get(file.runtime, ()):
        try:
            model = HostModel(replace(file, options={**file.options, **options}))
        except ModelError:
            continue
        way = Way(model.spec)
        tried.append((agreement_with(model, expected, way, samples, rows)(len(samples)), options))
        pair.deployed.calls += model.calls
    return max(tried, key=lambda kernels: kernels[0], default=None)
