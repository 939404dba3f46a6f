"""What is said of a night: what got worse since the last green one, what changed, and its verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare._internal.text import counted, names_text
from edgeflare.analysis.outcome_stats import KindRate

FIRST = (
    "nothing was compared: there is no green night of it here yet; later nights are held against "
    "this one"
)
UNCHANGED = "nothing that is known: files, device, libraries and settings are as they were"
DISK_FULL = (
    "free some space, for example by a lower keep.mb or keep.nights, and run the night again",
    "what is finished of the night is kept",
)
"""Of a full disk: what to do, and what is kept."""
NOT_RUN = {
    "replay": "there was nothing to send again",
    "comparison": "there was no green night to compare with, or no search",
}
_TROUBLES = {"regression": "red", "away": "away", "failed": "could not be run"}
_BROKEN = {"nonfinite": "give NaN or infinity", "failed": "get no answer from the device"}
_SHOWN = 3
_DIGITS = 8
_LONGEST = 60


def trouble_text(state: str, *, accepted: bool) -> str:
    """Return why a run is not green, in a few words, "" where it is."""
    words = _TROUBLES.get(state, "")
    return f"{words}, accepted later" if words and accepted else words


def figures_text(search: Mapping[str, Any] | None, replay: Mapping[str, Any] | None) -> str:
    """Return a run's main figures, by their names in ``night.json``; "" where it has none."""
    parts = []
    if search is not None:
        parts.append("{found} of {searched} searches found a trigger")
        if not search["whole"]:
            parts.append("the query limit ended the search")
        if search["surveyed"]:
            parts.append("{confident_deviations} of {surveyed} inputs far from the seeds deviate")
        if search["seed_deviates"]:
            parts.append("{seed_deviates} of {seeds} seeds deviate")
    if replay is not None:
        parts.append("sent again: {new} new, {still} still, {fixed} fixed")
    return "; ".join(parts).format(**search or {}, **replay or {})


def verdict_text(troubles: Sequence[str], first: int, planned: int, *, running: bool) -> str:
    """Return a night in one sentence; `first` of its runs, one of `troubles` each, had nothing to compare."""
    possible = [
        trouble_text(state, accepted=accepted) for accepted in (False, True) for state in _TROUBLES
    ]
    parts = [f"{n} of {planned} {words}" for words in possible if (n := troubles.count(words))]
    left = planned - len(troubles)
    if left and not running:
        parts.append(f"{left} of {planned} not run: the night was interrupted")
    if parts:
        return "; ".join(parts)
    green = "all green" if not left else f"{len(troubles)} of {planned} done, all green"
    return f"{green}; {first} of {planned} compared with nothing yet" if first else green


def new_text(new: Sequence[str], inputs: int, since: str, at_most: int) -> str:
    """Return how many inputs deviate and did not in the last green night, that of the day `since`."""
    return (
        f"{len(new)} of {inputs} inputs sent again deviate and did not in the last green night "
        f"({since}), at most {at_most} may{_names(new)}"
    )


def broken_text(state: str, ids: Sequence[str], inputs: int) -> str:
    """Return how many inputs get no finite answer any more."""
    return f"{len(ids)} of {inputs} inputs sent again {_BROKEN[state]} now{_names(ids)}"


def kind_text(whose: str, verb: str, before: KindRate, now: KindRate, since: str) -> str:
    """Return how many objects differ in one way now, and did in the night of the day `since`."""
    return (
        f"{now.differing} of the {whose}'s {now.objects} objects on the seeds {verb} (at least "
        f"{100 * now.low:.3g} %), in the last green night ({since}) {before.differing} of "
        f"{before.objects} ({100 * before.rate:.3g} %, at most {100 * before.high:.3g} %)"
        f"{_names(now.seeds)}"
    )


def survey_text(
    before: Mapping[str, Any], now: Mapping[str, Any], since: str, *, comparable: bool
) -> str:
    """Return how many inputs deviate far from the seeds, now and then; figures by their names."""
    low, high = (100 * one for one in (now["confident_low"], before["confident_high"]))
    words = (
        f"{now['confident_deviations']} of {now['surveyed']} inputs far from the seeds deviate (at "
        f"least {low:.3g} %), in the last green night ({since}) {before['confident_deviations']} of "
        f"{before['surveyed']} (at most {high:.3g} %)"
    )
    return words if comparable else f"{words}; not comparable: the survey's settings have changed"


def _names(ids: Sequence[str]) -> str:
    return f": {names_text(ids, _SHOWN)}" if ids else ""


def file_changed(which: str, before: str, now: str) -> str:
    """Return that a model's file is another one, by both SHA-256."""
    old, new = (digest[:_DIGITS] or "unknown" for digest in (before, now))
    return f"the {which} model's file: SHA-256 was {old}, is {new}"


def value_changed(whose: str, name: str, before: object, now: object) -> str:
    """Return that a setting or a version is another one."""
    old, new = map(_short, (before, now))
    return f"{whose} {name}: was {old}, is {new}"


def _short(value: object) -> str:
    text = "unknown" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def fault_text(error: Exception) -> str:
    """Return that a run failed by an error that nobody foresaw."""
    kind = type(error).__name__
    return f"a fault of EdgeFlare's own, {kind}: {error}; log.txt has the traceback"


def no_report(error: Exception) -> str:
    """Return that a campaign's report isn't there."""
    return f"no report could be written: {error}"


def left_out_text(nights: int) -> str:
    """Return what a chart of the survey leaves out."""
    more = counted(nights, "night")
    return f" (not comparable, and left out: {more} with other settings of the survey)"


def begun_text(night: int, runs: int) -> str:
    """Return that a night begins."""
    return f"night {night} begins: {runs} runs"


def ended_text(night: int, state: str, verdict: str) -> str:
    """Return how a night ended."""
    return f"night {night} {state}: {verdict}"


def pruned_text(nights: int) -> str:
    """Return how many older nights' campaigns are gone."""
    return f"campaigns of {nights} older nights removed"


def not_pruned(error: Exception) -> str:
    """Return that older nights' campaigns are still there."""
    return f"older nights could not be removed: {error}"


def accepted_text(name: str, stamp: str) -> str:
    """Return that a run is what later nights are compared with."""
    return f"{name}: the night {stamp} is the new baseline"
