"""The test case of a seed input, and of an input of a replay."""

from collections.abc import Mapping, Sequence

from edgeflare.analysis.findings import Finding
from edgeflare.analysis.formats.junit_cases import Case
from edgeflare.analysis.formats.junit_cases import Verdict as CaseVerdict
from edgeflare.analysis.formats.material import Material
from edgeflare.analysis.formats.sentences import STEPS_SHOWN, found_words, replayed_words
from edgeflare.campaign.replay_states import ReplayedInput
from edgeflare.search.mutation_path import joined_words
from edgeflare.types import TRIGGERS, Status

_ERRORS = {
    Status.NONFINITE: "NaN or infinity in an output",
    Status.FAILED: "a model can't answer",
}
_NOTHING = {
    Status.EXHAUSTED: "no trigger within the query budget",
    Status.TIMEOUT: "no trigger within the time budget",
    Status.GAVE_UP: "no trigger, the strategy gave up",
}


def seed_case(material: Material, finding: Finding, breaches: Sequence[str]) -> Case:
    """Return the test case of a seed input; `breaches` are the limits that it crosses alone.

    A search that gave the device no input is skipped: it says nothing of the deployed model.
    """
    one = finding.outcome
    how = _how(material, finding)
    if one.status in TRIGGERS:
        message = found_words(material, one)
        if breaches:
            message += f": {', '.join(breaches)}"
        failed = bool(breaches) or not material.has_limits
        return Case(
            one.seed_id,
            "failure" if failed else "passed",
            kind="limit" if breaches else "deviation",
            message=message,
            body=how,
            seconds=one.seconds,
        )
    told = f": {one.detail}" if one.detail else ""
    if one.status in _ERRORS:
        message = _ERRORS[one.status] + told
        return Case(one.seed_id, "error", one.status.value, message, how, one.seconds)
    if one.status is Status.UNSTABLE:
        message = f"a deviation that did not repeat{told}"
        return Case(one.seed_id, "skipped", message=message, body=how, seconds=one.seconds)
    count = one.search_queries
    message = (
        f"{_NOTHING[one.status]}{told}; the device was given {count:,} {'input' if count == 1 else 'inputs'}, the original "
        f"alone {one.host_only_queries:,}"
    )
    verdict: CaseVerdict = "passed" if count or not one.searched else "skipped"
    return Case(one.seed_id, verdict, message=message, seconds=one.seconds)


def replay_case(material: Material, one: ReplayedInput, command: str) -> Case:
    """Return the test case of an input that was replayed; `command` sends it again."""
    message = replayed_words(material.name, one)
    how = _lines(
        {"to see it again": command, "seed": one.seed_id, "input": one.sample, "detail": one.detail}
    )
    if one.state == "new" or (one.state == "still" and not material.has_limits):
        return Case(one.id, "failure", kind="deviation", message=message, body=how)
    if one.state == "still":
        return Case(one.id, "skipped", message=f"known deviation: {message}", body=how)
    if one.state == "unstable":
        return Case(one.id, "skipped", message=message, body=how)
    if one.state in ("failed", "nonfinite"):
        return Case(one.id, "error", kind=one.state, message=message, body=how)
    return Case(one.id, message=message)


def _how(material: Material, finding: Finding) -> list[str]:
    one = finding.outcome
    facts: dict[str, str | None] = {
        "to see it again": finding.command,
        "cause": finding.cause,
        "device": one.replica or one.device_name,
        "seed's label": None if finding.seed.label is None else material.name(finding.seed.label),
        "what was done to the seed": joined_words(one.mutations, STEPS_SHOWN) or None,
        "input": one.trigger,
    }
    return _lines(facts)


def _lines(facts: Mapping[str, str | None]) -> list[str]:
    return [f"{name}: {value}" for name, value in facts.items() if value]
