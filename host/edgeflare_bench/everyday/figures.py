"""The figures of a bench of everyday faults: how often the first answer is right, by what, and false alarms."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from edgeflare.statistics import bootstrap_interval, median, upper_bound
from edgeflare_bench.everyday.suite import EverydayBench, Told

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


def faults_of(bench: EverydayBench) -> list[Told]:
    """Return the faults that count: those with a witness."""
    return [one for one in bench.told if one.fault and not one.without]


def fault_rows(bench: EverydayBench) -> Iterator[FaultRow]:
    """Yield the figures of all faults, then those of each expected kind, original, tool chain and origin."""
    faults = faults_of(bench)
    ways: dict[str, Callable[[Told], str]] = {
        "": lambda _: ALL,
        "answers": lambda one: "of a device" if one.is_device else "of files alone",
        "expected": lambda one: one.expected[0],
        "side": lambda one: one.sides[0] if len(one.sides) == 1 else "",
        "tool chain": lambda one: one.tool_chain,
        "original": lambda one: one.original,
        "origin": lambda one: "outsiders' reports" if one.report else "",
        "fault": lambda one: one.fault,
    }
    for by, value_of in ways.items():
        for value in sorted({value_of(one) for one in faults} - {""}):
            yield _row(by, value, [one for one in faults if value_of(one) == value])


def _row(by: str, value: str, faults: Sequence[Told]) -> FaultRow:
    right = [one for one in faults if one.is_right]
    proved = [one for one in faults if one.first is not None and one.first["proof"] in PROVED]
    tried = [one for one in faults if one.mended]
    bounds = _bounds(faults) if not by or by == "answers" else (None, None)
    return FaultRow(
        *(by, value, len(faults), sum(one.is_kind_right for one in faults), len(right)),
        *(len(proved), sum(one.is_right for one in proved)),
        *(sum(one.mended in ("mended", "proved") for one in tried), len(tried), *bounds),
    )


def _bounds(faults: Sequence[Told]) -> tuple[float, float]:
    """Return the wider bootstrap interval of the share right: over originals, and over kinds of fault."""
    ways: Sequence[Callable[[Told], str]] = (lambda one: one.original, lambda one: one.fault)
    groups = [
        [
            [float(one.is_right) for one in faults if way(one) == value]
            for value in sorted(set(map(way, faults)))
        ]
        for way in ways
    ]
    lows, highs = zip(*map(bootstrap_interval, groups), strict=True)
    return min(lows), max(highs)


def healthy_rows(bench: EverydayBench) -> Iterator[HealthyRow]:
    """Yield the false alarms on all healthy pairs, then by tool chain; on devices' answers apart."""
    for is_device in (False, True):
        healthy = [one for one in bench.told if not one.fault and one.is_device == is_device]
        chains = sorted({one.tool_chain for one in healthy})
        for chain in [ALL, *chains] if healthy else []:
            own = [one for one in healthy if chain in (ALL, one.tool_chain)]
            alarms = sum(not one.is_right for one in own)
            yield HealthyRow(chain, is_device, len(own), alarms, upper_bound(alarms, len(own)))


def costs(bench: EverydayBench) -> Costs | None:
    """Return what triages cost; None where there was none."""
    done = [one for one in bench.told if one.calls]
    if not done:
        return None

    def spread(values: Sequence[float]) -> tuple[float, float, float]:
        ordered = sorted(values)
        return median(ordered) or 0.0, ordered[int(0.9 * (len(ordered) - 1))], ordered[-1]

    return Costs(spread([one.seconds for one in done]), spread([one.calls for one in done]))
