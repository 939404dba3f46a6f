"""The figures of a bench of everyday faults: how often the first answer is right, by what, and false alarms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from edgeflare.statistics import bootstrap_interval, median, upper_bound
from edgeflare_bench.everyday.suite import EverydayBench, FirstAnswer

PROVED = ("corrected", "located")
ALL = "all"


class FaultRow(NamedTuple):
    """First answers on some of the faults.

    `by`: what they have in common, and `value`: its value. `kind_right`: of the first cause, or of a remark
    where one is expected; `right`: its side and place, too. `proved`: by a correction or a location, and
    `proved_right` of these. `mended`: faults whose next step mends the pair or proves what was said, of
    `tried`. `low` and `high`: bootstrap of the share right, over originals and over kinds, the wider one.
    """

    by: str
    value: str
    faults: int
    kind_right: int
    right: int
    proved: int
    proved_right: int
    mended: int
    tried: int
    low: float | None = None
    high: float | None = None


class HealthyRow(NamedTuple):
    """False alarms on healthy pairs of a tool chain; `high`: the upper bound of their rate."""

    tool_chain: str
    is_device: bool
    pairs: int
    alarms: int
    high: float


class Costs(NamedTuple):
    """Seconds and inferences of a triage: median, 90th percentile, largest."""

    seconds: tuple[float, float, float]
    calls: tuple[float, float, float]


_Value = Callable[[FirstAnswer], str]
_GROUPS: Mapping[str, _Value] = {
    "": lambda _: ALL,
    "answers": lambda fault: "of a device" if fault.is_device else "of files alone",
    "expected": lambda fault: fault.expected[0],
    "side": lambda fault: fault.sides[0] if len(fault.sides) == 1 else "",
    "tool chain": lambda fault: fault.tool_chain,
    "original": lambda fault: fault.original,
    "origin": lambda fault: "outsiders' reports" if fault.report else "",
    "fault": lambda fault: fault.fault,
}


def faults_of(bench: EverydayBench) -> list[FirstAnswer]:
    """Return the faults that count: those with a witness."""
    return [answer for answer in bench.results if answer.fault and not answer.without]


def _grouped(faults: Sequence[FirstAnswer], by: str) -> Mapping[str, list[FirstAnswer]]:
    values = sorted({_GROUPS[by](fault) for fault in faults} - {""})
    return {value: [fault for fault in faults if _GROUPS[by](fault) == value] for value in values}


def fault_rows(bench: EverydayBench) -> Iterator[FaultRow]:
    """Yield the figures of all faults, then those of each expected kind, original, tool chain and origin."""
    faults = faults_of(bench)
    for by in _GROUPS:
        for value, group in _grouped(faults, by).items():
            yield _row(by, value, group)


def _row(by: str, value: str, faults: Sequence[FirstAnswer]) -> FaultRow:
    proved = [
        fault for fault in faults if fault.first is not None and fault.first["proof"] in PROVED
    ]
    tried = [fault for fault in faults if fault.mended]
    bounds = _bounds(faults) if not by or by == "answers" else (None, None)
    return FaultRow(
        *(by, value, len(faults), sum(fault.is_kind_right for fault in faults)),
        *(sum(fault.is_right for fault in faults), len(proved)),
        sum(fault.is_right for fault in proved),
        *(sum(fault.mended != "not" for fault in tried), len(tried), *bounds),
    )


def _bounds(faults: Sequence[FirstAnswer]) -> tuple[float, float]:
    """Return the wider bootstrap interval of the share right: over originals, and over kinds of fault."""
    groups = [
        [[float(fault.is_right) for fault in group] for group in _grouped(faults, by).values()]
        for by in ("original", "fault")
    ]
    lows, highs = zip(*map(bootstrap_interval, groups), strict=True)
    return min(lows), max(highs)


def healthy_rows(bench: EverydayBench) -> Iterator[HealthyRow]:
    """Yield the false alarms on all healthy pairs, then by tool chain; on devices' answers apart."""
    for is_device in (False, True):
        healthy = [
            answer for answer in bench.results if not answer.fault and answer.is_device == is_device
        ]
        chains = sorted({answer.tool_chain for answer in healthy})
        for chain in [ALL, *chains] if healthy else []:
            own = [answer for answer in healthy if chain in (ALL, answer.tool_chain)]
            alarms = sum(not answer.is_right for answer in own)
            yield HealthyRow(chain, is_device, len(own), alarms, upper_bound(alarms, len(own)))


def costs(bench: EverydayBench) -> Costs | None:
    """Return what triages cost; None where there was none."""
    triaged = [answer for answer in bench.results if answer.calls]
    if not triaged:
        return None

    def spread(values: Sequence[float]) -> tuple[float, float, float]:
        ordered = sorted(values)
        return median(ordered) or 0.0, ordered[int(0.9 * (len(ordered) - 1))], ordered[-1]

    return Costs(
        spread([answer.seconds for answer in triaged]), spread([answer.calls for answer in triaged])
    )
