"""The fault suite's results in sentences."""

from typing import TYPE_CHECKING

from edgeflare._internal.text import counted, number_text

if TYPE_CHECKING:
    from edgeflare_bench.faults.suite import Evaluated, FaultBench

SURVEYED = (
    "Verdicts of a survey of {} queries a seed. The bound is one-sided, at 95 %; references are int8 "
    "models of the float model that the row names."
)
CALLED_WORSE = "Healthy, called worse"
MISSED = "Not found by survey and pursuit"
NOT_WORSE = "Not called worse with {} queries a seed"
EQUIVALENT = "Without a witness, held equivalent"


def about(bench: "FaultBench") -> str:
    """Return what was evaluated, how far it is, and what counts as found."""
    suite = bench.suite
    half = "reserved draws" if suite.reserved else "draws that are not reserved"
    gradients = "" if suite.gradients else " Witnesses were searched without gradients."
    faults = sum(bool(one.size) for one in bench.evaluated)
    planned = len(list(suite.faults())) * len(suite.originals)
    healthy = counted(len(bench.evaluated) - faults, "healthy model")
    left = "" if faults == planned else f"; go on with `edgeflare bench resume {bench.folder}`"
    return (
        f"{counted(suite.draws, 'draw')} of each kind and size, of the {half}; "
        f"{suite.seeds} seed inputs. Found: a confident deviation (the original's margin is .3 or "
        "more) caused by the fault. A strategy's first query of each seed is the seed itself."
        f"{gradients} Evaluated: {healthy}, {faults} of {planned} faults{left}."
    )


def outcome(one: "Evaluated", queries: int) -> str:
    """Return what came out of a model, where a survey has so many queries a seed."""
    if one.without:
        return one.without
    verdict = one.surveys[queries].verdict
    if not one.size:
        return verdict
    search = one.searches["survey"]
    return f"{verdict}, {'found' if search.found else 'not found'} after {search.queries} queries"


def excess(one: "Evaluated", queries: int) -> str:
    """Return how far a model drifts and deviates, of a fault with its strength and witness."""
    seen = one.surveys[queries]
    strength = f"strength {one.strength:g}, witness {one.witness}, " if one.size else ""
    return (
        f"{strength}excess drift {number_text(seen.excess, 4)}, "
        f"{counted(seen.deviations, 'confident deviation')}"
    )
