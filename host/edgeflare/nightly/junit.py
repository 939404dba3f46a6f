"""A night as JUnit's XML: what continuous integration shows as failed tests."""

from collections import Counter
from pathlib import Path

from edgeflare._internal.files import write_durably
from edgeflare.nightly.history import JUNIT_NAME
from edgeflare.nightly.night import Night, NightRun
from edgeflare.reports.junit import Case, CaseResult, Element, dumped, element
from edgeflare.store.database import translate_errors

_PARTS = ("replay", "search", "comparison")
_COUNTED: dict[str, CaseResult] = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def write_junit(night: Night) -> Path:
    """Write a night's ``junit.xml``: a test suite for each run, with a test for each part.

    What got worse or crossed a limit is a failure, unless it was accepted; a run that could not be
    made an error; a device that is away, and what was not come to, is skipped. Raises StoreError.
    """
    cases = [(run, [_case(run, part) for part in _PARTS]) for run in night.runs]
    every = [case for _, of_run in cases for case in of_run]
    root = element("testsuites", {"name": f"nightly {night.stamp}", **_counts(every)})
    for run, of_run in cases:
        root.append(_suite(night, run, of_run))
    path = night.folder / JUNIT_NAME
    with translate_errors(night.folder):
        text = f'<?xml version="1.0" encoding="utf-8"?>\n{dumped(root)}\n'
        write_durably(path, text.encode())
    return path


def _suite(night: Night, run: NightRun, cases: list[Case]) -> Element:
    suite = element(
        "testsuite",
        {
            "name": run.name,
            "time": f"{run.seconds:.3f}",
            "timestamp": night.started_at.isoformat(timespec="seconds"),
            **_counts(cases),
        },
    )
    for case in cases:
        suite.append(case.xml(f"nightly.{run.model}.{run.device}"))
    return suite


def _counts(cases: list[Case]) -> dict[str, str]:
    verdicts = Counter(case.verdict for case in cases)
    return {
        "tests": str(len(cases)),
        **{name: str(verdicts[verdict]) for name, verdict in _COUNTED.items()},
    }


def _case(run: NightRun, part: str) -> Case:
    """Return what became of a part of a run."""
    checks = [check for check in run.checks if check.part == part]
    crossed = [check.words for check in checks if check.crossed]
    trouble = run.words[-1] if run.words else ""
    changed = [f"changed: {one}" for one in run.changed]
    if crossed and not run.accepted:
        return Case(part, "failure", "regression", crossed[0], [*crossed[1:], *changed])
    done = {"replay": run.replay is not None, "search": run.search is not None}
    failed = "comparison" if done["search"] else "search"
    if run.state == "failed" and part == failed and not run.accepted:
        return Case(part, "error", "failed", trouble)
    if done.get(part, bool(checks)):
        return Case(part, body=[check.words for check in checks])
    if run.state == "away":
        return Case(part, "skipped", message=f"away: {trouble}")
    if part == "search":
        return Case(part, "error", "not finished", trouble)
    return Case(
        part,
        "skipped",
        message="there was nothing to send again"
        if part == "replay"
        else "there was no green night to compare with, or no search",
    )
