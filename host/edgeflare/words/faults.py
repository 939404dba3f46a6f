"""Rates of a survey, the faults found behind it, and what a search covered, in words."""

from edgeflare._internal.text import NOTHING, counted, percent_text
from edgeflare.analysis.faults import Fault
from edgeflare.analysis.outcome_stats import Coverage
from edgeflare.analysis.survey import Rate

_DIGITS = 2
SURVEY_NOTE = (
    "Before the search both models answered inputs made from the seeds by stated families of "
    "change, five severities each. A confident deviation is one on which the deployed model "
    "decided differently, every time that it was asked. The bounds hold with 95 % confidence."
)
FAULTS_NOTE = (
    "After the survey more inputs were made like those that deviated, and asked about. A fault is "
    "the simplest condition on brightness, contrast, detail, parts of the image or sound, or the "
    "original's answer that separates deviating inputs from others. It was then checked on fresh "
    "inputs on both sides: precision is the share of those inside that deviate, recall the share "
    "of those deviating that are inside."
)


def rate_words(rate: Rate) -> str:
    """Return a rate's bounds in words: ``95 % bounds 0.10 % to 2.1 %``; they are two-sided."""
    return f"95 % bounds {bounds_text(rate)}"


def share_text(rate: float) -> str:
    """Return a rate in per cent, a small one in more digits."""
    return percent_text(rate, _DIGITS if rate < 0.1 else 1)


def bounds_text(rate: Rate) -> str:
    """Return a rate's bounds, a dash without any input."""
    return NOTHING if not rate.inputs else f"{share_text(rate.low)} to {share_text(rate.high)}"


def fault_title(one: Fault) -> str:
    """Return the name of a fault: its number, and the device where each has its own."""
    return f"fault {one.number} on {one.replica}" if one.replica else f"fault {one.number}"


def fault_words(one: Fault) -> str:
    """Return a fault in a sentence, with what it rests on and what the check counted."""
    return (
        f"{one.words}: {one.fresh_inside_deviating:,} of "
        f"{counted(one.fresh_inside, 'fresh input')} deviate there, "
        f"{one.fresh_outside_deviating:,} of {one.fresh_outside:,} elsewhere; in all "
        f"{counted(one.inputs, 'deviating input')} of {counted(one.seeds, 'seed')}"
    )


def coverage_words(coverage: Coverage) -> str:
    """Return what searches covered, "" where none ended without a trigger."""
    if not coverage.searches:
        return ""
    count = "the one search" if coverage.searches == 1 else f"the {coverage.searches:,} searches"
    unasked = f" ({coverage.unasked:,} of them none)" if coverage.unasked else ""
    return (
        f"{count} without a trigger gave the device {counted(coverage.device_queries, 'input')}"
        f"{unasked}, and the original alone {coverage.host_queries:,}"
    )
