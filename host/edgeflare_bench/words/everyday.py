"""What was told of everyday faults, in sentences."""

from typing import TYPE_CHECKING

from edgeflare._internal.text import counted, number_text

if TYPE_CHECKING:
    from edgeflare_bench.everyday.figures import Costs
    from edgeflare_bench.everyday.suite import EverydayBench, Told

FAULTS = (
    "Right: the first cause has a kind that was expected, the right side of a preprocessing, and names the "
    "place where the fault has one; kind right: its kind alone. Proved: the first cause is proved by a "
    "correction or a location. Next step: carried out by a script, it mends the pair or proves what was "
    "said. The interval is a bootstrap, over originals or over kinds of fault, the wider one."
)
HEALTHY = "A false alarm is any cause on a healthy pair. The bound is one-sided, at 95 %."
WRONG, ALARMS, NOT_SEEN = "Wrong first answers", "False alarms", "Without a witness, left out"


def about(bench: "EverydayBench") -> str:
    """Return what was triaged, and how far it is."""
    half = "reserved" if bench.suite.reserved else "open"
    planned = len(bench.suite.draws())
    drawn = [one for one in bench.told if one.fault]
    seen = sum(not one.without for one in drawn)
    healthy = counted(len(bench.told) - len(drawn), "healthy pair")
    left = "" if len(drawn) == planned else f"; go on with `edgeflare bench resume {bench.folder}`"
    return (
        f"The {half} half of the draws: {len(drawn)} of {planned}, of which {seen} can be seen in the "
        f"answers; {healthy}{left}."
    )


def costs(spent: "Costs") -> str:
    """Return what triages cost."""
    seconds, calls = (
        " / ".join(number_text(value, digits) for value in values)
        for values, digits in ((spent.seconds, 1), (spent.calls, 0))
    )
    return (
        f"Seconds of a triage, with what starts its process: {seconds} (median, 90 %, largest); "
        f"inferences of both models on this machine: {calls}."
    )


def outcome(one: "Told") -> str:
    """Return what came out of a pair, in a few words."""
    if one.without:
        return f"no witness: {one.without}"
    if one.failed:
        return f"failed: {one.failed}"
    told = "nothing" if one.first is None else one.first["sentence"]
    right = "right" if one.is_right else ("place or side wrong" if one.is_kind_right else "wrong")
    return f"{right}: {told}"


def expected(one: "Told") -> str:
    """Return what the first answer should have been, and what it was."""
    wanted = " or ".join(one.expected) or "no cause"
    where = ", ".join(one.names[:2])
    side = f" of {'/'.join(one.sides)}" if one.sides else ""
    reached = "?" if one.agreement is None else f"{one.agreement:.0f} dB"
    at = f" at {where}" if where else ""
    return f"{reached}; expected {wanted}{side}{at}; {outcome(one)}"
