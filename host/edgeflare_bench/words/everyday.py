"""What was told of everyday faults, in sentences."""

from typing import TYPE_CHECKING

from edgeflare._internal.text import counted, number_text

if TYPE_CHECKING:
    from edgeflare_bench.everyday.figures import Costs
    from edgeflare_bench.everyday.suite import EverydayBench, FirstAnswer

FAULTS = (
    "Right: the first cause has a kind that was expected, the right side of a preprocessing, and names the "
    "place where the fault has one; kind right: its kind alone. Proved: the first cause is proved by a "
    "correction or a location. Next step: carried out by a script, it mends the pair or proves what was "
    "said. The interval is a bootstrap, over originals or over kinds of fault, the wider one."
)
HEALTHY = "A false alarm is any cause on a healthy pair. The bound is one-sided, at 95 %."
NOT_INSTALLED = "{}: left out, since {} isn't installed"
NOT_RUN = "an exported program with several inputs isn't run"
NOT_PLANTED = "it can't be planted: {}"
WRONG_BEFORE = "the converter got the file wrong before the fault was planted"
NOT_WORSE = "an error of {:.3g} deviations, {:.3g} without the fault"
WRONG, ALARMS, NOT_SEEN = "Wrong first answers", "False alarms", "Without a witness, left out"


def about(bench: "EverydayBench") -> str:
    """Return what was triaged, and how far it is."""
    half = "reserved" if bench.suite.reserved else "open"
    planned = len(bench.suite.draws())
    drawn = [answer for answer in bench.results if answer.fault]
    seen = sum(not answer.without for answer in drawn)
    healthy = counted(len(bench.results) - len(drawn), "healthy pair")
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


def outcome(answer: "FirstAnswer") -> str:
    """Return what came out of a pair, in a few words."""
    if answer.without:
        return f"no witness: {answer.without}"
    if answer.failed:
        return f"failed: {answer.failed}"
    said = "nothing" if answer.first is None else answer.first["sentence"]
    wrong = "place or side wrong" if answer.is_kind_right else "wrong"
    return f"{'right' if answer.is_right else wrong}: {said}"


def expected(answer: "FirstAnswer") -> str:
    """Return what the first answer should have been, and what it was."""
    kinds = " or ".join(answer.expected) or "no cause"
    where = ", ".join(answer.names[:2])
    side = f" of {'/'.join(answer.sides)}" if answer.sides else ""
    reached = "?" if answer.agreement is None else f"{answer.agreement:.0f} dB"
    at = f" at {where}" if where else ""
    return f"{reached}; expected {kinds}{side}{at}; {outcome(answer)}"
