"""What is said of a night: what got worse since the last green one, what changed, and its verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare._internal.text import names_text
from edgeflare.analysis.outcome_stats import KindRate
from edgeflare.answers.parts import LimitRule

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
FAULT = "a fault of EdgeFlare's own, {}: {}; log.txt has the traceback"
NO_REPORT = "no report could be written: {}"
LEFT_OUT = " (not comparable, and left out: {} with other settings of the survey)"
"""What a chart of the survey leaves out."""
BEGUN = "night {} begins: {} runs"
ENDED = "night {} {}: {}"
PRUNED = "campaigns of {} older nights removed"
NOT_PRUNED = "older nights could not be removed: {}"
ACCEPTED = "{}: the night {} is the new baseline"
LAST_GREEN = "the last green night ({})"
OTHER_SURVEY = "{}; not comparable: the survey's settings have changed"
NOT_RUN = {
    "replay": "there was nothing to send again",
    "comparison": "there was no green night to compare with, or no search",
}
SHOWN = {"first": "green (first)", "regression": "red", "failed": "not run"}
"""What a run's state is called where it isn't that word."""
_TROUBLES = {"regression": "red", "away": "away", "failed": "could not be run"}
_BROKEN = {"nonfinite": "give NaN or infinity", "failed": "get no answer from the device"}
_SHOWN = 3
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
        f"{len(new)} of {inputs} inputs sent again deviate and did not in {LAST_GREEN.format(since)}, "
        f"at most {at_most} may{_names(new)}"
    )


def broken_text(state: str, ids: Sequence[str], inputs: int) -> str:
    """Return how many inputs get no finite answer any more."""
    return f"{len(ids)} of {inputs} inputs sent again {_BROKEN[state]} now{_names(ids)}"


def rate_text(before: KindRate, now: KindRate, base: str, rule: LimitRule | None) -> str:
    """Return how many objects differ as the rule counts them, now and in `base`.

    Without a rule it is about the inputs of the survey that deviate.
    """
    what = f"{now.objects} inputs far from the seeds deviate"
    if rule is not None:
        what = f"the {rule.whose}'s {now.objects} objects on the seeds {rule.verb}"
    return (
        f"{now.differing} of {what} (at least {100 * now.low:.3g} %), in {base} {before.differing} of "
        f"{before.objects} ({100 * before.rate:.3g} %, at most {100 * before.high:.3g} %)"
        f"{_names(now.seeds)}"
    )


def _names(ids: Sequence[str]) -> str:
    return f": {names_text(ids, _SHOWN)}" if ids else ""


def change_text(what: str, before: object, now: object) -> str:
    """Return what a setting or a version was, and is."""
    texts = ("unknown" if one in (None, "") else str(one) for one in (before, now))
    old, new = (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..." for text in texts)
    return f"{what} was {old}, is {new}"
