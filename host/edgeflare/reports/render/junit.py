"""A campaign as JUnit XML, for Jenkins, GitLab and GitHub."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from tempfile import SpooledTemporaryFile
from typing import Literal, TypeAlias

from edgeflare._internal.text import clean_text, counted, distinct_number, margin_text
from edgeflare.analysis.findings import Commands, Finding, results
from edgeflare.analysis.limits import LimitCheck, applicable_rules, known_pairs
from edgeflare.campaign.replay.results import ReplayedInput
from edgeflare.campaign.settings.baseline import Pair
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.document import KeyFigure, Name, section_blocks
from edgeflare.errors import UsageError
from edgeflare.explanation import FindingGroup
from edgeflare.reports.campaign import STEPS_SHOWN
from edgeflare.reports.render.options import RenderOptions
from edgeflare.reports.replay import replayed_words
from edgeflare.reports.report import Report, outcome_words
from edgeflare.store import OutcomeRecord, Store
from edgeflare.strategies.operators import describe_last_mutations
from edgeflare.types import TRIGGERS, Status
from edgeflare.words.causes import doubt_text, nearest_words

Element = ET.Element


def element(tag: str, attributes: Mapping[str, str], text: str | None = None) -> Element:
    """Return an element of cleaned text."""
    made = ET.Element(
        tag, {name: clean_text(value, lines=True) for name, value in attributes.items()}
    )
    made.text = None if text is None else clean_text(text, lines=True)
    return made


def dumped(made: Element) -> str:
    """Return an element as text."""
    return ET.tostring(made, encoding="unicode")


def open_tag(tag: str, attributes: Mapping[str, str]) -> str:
    """Return the start of an element whose content follows."""
    return dumped(element(tag, attributes, "\n")).partition("\n")[0]


CaseResult: TypeAlias = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True)
class Case:
    """A test case: its name, how long it took, and how it ended.

    `kind` is the type of a failure or an error, `message` one line on what happened, `body` more
    lines; of a case that passes they are what it printed.
    """

    name: str
    verdict: CaseResult = "passed"
    kind: str = ""
    message: str = ""
    body: Sequence[str] = ()
    seconds: float = 0.0

    def xml(self, classname: str) -> Element:
        """Return the element."""
        case = element(
            "testcase",
            {"classname": classname, "name": self.name, "time": f"{self.seconds:.3f}"},
        )
        lines = "\n".join([self.message, *self.body] if self.message else self.body)
        if self.verdict == "skipped":
            case.append(element("skipped", {"message": self.message}))
            lines = "\n".join(self.body)
        elif self.verdict != "passed":
            case.append(element(self.verdict, {"message": self.message, "type": self.kind}, lines))
            lines = ""
        if lines:
            case.append(element("system-out", {}, lines))
        return case


_ERRORS = {
    Status.NONFINITE: "NaN or infinity in an output",
    Status.FAILED: "a model can't answer",
}
_NOTHING = {
    Status.EXHAUSTED: "no trigger within the query budget",
    Status.TIMEOUT: "no trigger within the time budget",
    Status.GAVE_UP: "no trigger, the strategy gave up",
}


def _seed_case(report: Report, finding: Finding, breaches: Sequence[str]) -> Case:
    """Return the test case of a seed input; `breaches` are the limits that it crosses alone.

    A search that gave the device no input is skipped: it tested nothing on the deployed model.
    """
    one = finding.outcome
    how = _how(report, finding)
    if one.status in TRIGGERS:
        message = _found_words(report, one)
        if breaches:
            message += f": {', '.join(breaches)}"
        failed = bool(breaches) or not report.has_limits
        return Case(
            one.seed_id,
            "failure" if failed else "passed",
            kind="limit" if breaches else "deviation",
            message=message,
            body=how,
            seconds=one.seconds,
        )
    detail = f": {one.detail}" if one.detail else ""
    if one.status in _ERRORS:
        message = _ERRORS[one.status] + detail
        return Case(one.seed_id, "error", one.status.value, message, how, one.seconds)
    if one.status is Status.UNSTABLE:
        message = f"a deviation that did not repeat{detail}"
        return Case(one.seed_id, "skipped", message=message, body=how, seconds=one.seconds)
    if report.summary.unusable:
        message = f"tells nothing: {report.summary.unusable[0].words}"
        return Case(one.seed_id, "skipped", message=message, seconds=one.seconds)
    if not report.summary.has_searches:
        message = "both models decide alike on the seed; nothing was searched"
        return Case(one.seed_id, message=message, seconds=one.seconds)
    message = (
        f"{_NOTHING[one.status]}{detail}; the device was given "
        f"{counted(one.search_queries, 'input')}, the original alone {one.host_only_queries:,}"
    )
    verdict: CaseResult = "passed" if one.search_queries or not one.searched else "skipped"
    return Case(one.seed_id, verdict, message=message, seconds=one.seconds)


def _replay_case(report: Report, one: ReplayedInput, command: str) -> Case:
    """Return the test case of an input that was replayed; `command` sends it again."""
    message = replayed_words(one, report.name)
    how = _lines(
        {"to see it again": command, "seed": one.seed_id, "input": one.sample, "detail": one.detail}
    )
    if one.state == "new" or (one.state == "still" and not report.has_limits):
        return Case(one.id, "failure", kind="deviation", message=message, body=how)
    if one.state == "still":
        return Case(one.id, "skipped", message=f"known deviation: {message}", body=how)
    if one.state == "unstable":
        return Case(one.id, "skipped", message=message, body=how)
    if one.state in ("failed", "nonfinite"):
        return Case(one.id, "error", kind=one.state, message=message, body=how)
    return Case(one.id, message=message)


def _found_words(report: Report, one: OutcomeRecord) -> str:
    """Return a trigger like ``4 -> 9 at L2 1.31 after 2 queries (margins 0.010, 0.050)``."""
    where = "on the seed itself"
    if one.status is not Status.SEED_DEVIATES:
        at = "" if one.l2 is None else f"at L2 {one.l2:.3g} "
        if one.snr_db is not None:
            at += f"(SNR {one.snr_db:.1f} dB) "
        where = f"{at}after {counted(one.search_queries, 'query', 'queries')}"
    margins = ", ".join(
        "none" if margin is None else margin_text(margin)
        for margin in (one.original_margin, one.deployed_margin)
    )
    return f"{outcome_words(report, one)} {where} (margins {margins})"


def _how(report: Report, finding: Finding) -> list[str]:
    one = finding.outcome
    facts: dict[str, str | None] = {
        "to see it again": finding.command,
        "cause": finding.cause,
        "in doubt": doubt_text(finding.doubt),
        "main layer": finding.layer,
        "group": None if finding.group is None else _group_words(finding.group, report.name),
        "device": one.device_or_replica,
        "seed's label": None if finding.seed.label is None else report.name(finding.seed.label),
        "what was done to the seed": describe_last_mutations(one.mutations, STEPS_SHOWN) or None,
        "input": one.trigger,
    }
    return _lines(facts)


def _group_words(group: FindingGroup, name: Name) -> str:
    """Return how many findings are alike, and the one nearest to its seed."""
    alike = counted(group.count, "finding") + " of this cause, layer and classes"
    return f"{alike}; nearest: {nearest_words(group, name)}"


def _lines(facts: Mapping[str, str | None]) -> list[str]:
    return [f"{name}: {value}" for name, value in facts.items() if value]


_SENTENCES = {
    "min_l2": "nearer than min_l2 = {limit:g}",
    "max_severity": "a smaller margin of {text}, above max_severity = {limit:g}",
    "max_disagreement": "a disagreement of {text}, above max_disagreement = {limit:g}",
}


class _LimitCrossings:
    """Checks single outcomes against the limits of `_SENTENCES` and `new_pairs`."""

    def __init__(self, store: Store, limits: Sequence[LimitCheck]) -> None:
        checked = {limit.name: limit.limit for limit in limits if limit.checked}
        self._limits = {name: float(checked[name]) for name in _SENTENCES if name in checked}
        self._known: set[Pair] | None = None
        if "new_pairs" in checked:
            own = LimitsConfig.model_validate(store.campaign.get("limits") or {})
            with suppress(UsageError):  # the baseline is deleted: no pair is known to be new
                self._known = known_pairs(store, own)

    def of(self, one: OutcomeRecord) -> list[str]:
        """Return a phrase for each limit that this outcome crosses."""
        crossed = [
            _SENTENCES[rule.name].format(text=distinct_number(value, limit), limit=limit)
            for rule, value, limit in applicable_rules(one, self._limits)
            if rule.crossed_by(value, limit)
        ]
        pair = (one.original_label, one.deployed_label)
        known = self._known
        if one.status in TRIGGERS and None not in pair and known is not None and pair not in known:
            crossed.append("a pair of classes that does not deviate in the baseline")
        return crossed


_INDENT = "  "
_HELD_BYTES = 1 << 23


def junit(report: Report, _: RenderOptions) -> Iterator[str]:
    """Yield the document: a suite "limits" with a test case each, one "campaign" with what is left
    open, and a suite a device with one a seed input. Where a model's answers can't be used a suite
    "answers" stands first, with a failure for each reason. The first suite has the key figures as
    properties, and what the sections say as its output.

    Where there are limits these are the verdict: a triggering input then fails its test case only
    if it crosses one of them alone. Where there are none each triggering input is a failure. Of a
    replay a new deviation is a failure, and one that was known is skipped, where there are limits.
    """
    from edgeflare.reports.document import to_text

    with ExitStack() as files:
        about = (_unusable(files, report), _limits(files, report), _open(files, report))
        suites = [suite for suite in about if suite.counts]
        by_device: dict[str, _Suite] = {}
        for device, case in _cases(report):
            if device not in by_device:
                by_device[device] = _Suite(files, report, device, hostname=device)
            by_device[device].add(case)
        suites += by_device.values()
        suites = suites or [about[-1]]
        first = suites[0]
        first.properties = [figure for section in report.sections for figure in section.key_figures]
        first.output = to_text(section_blocks(report.sections))
        yield from _document(report, suites)


class _Suite:
    """Test cases as text, beyond some megabytes in a temporary file, and their counts."""

    def __init__(
        self, files: ExitStack, report: Report, name: str, *, hostname: str = "localhost"
    ) -> None:
        folder = report.store.folder.resolve().name
        self.name = name
        self.seconds = 0.0
        self.counts: Counter[str] = Counter()
        self._hostname = hostname
        # Jenkins takes the text before the last dot for a package.
        self._classname = f"{_undotted(folder)}.{_undotted(name)}"
        self._began = datetime.fromisoformat(report.summary.created_at).astimezone(timezone.utc)
        self._cases = SpooledTemporaryFile(_HELD_BYTES, "w+", encoding="utf-8", newline="")  # noqa: SIM115
        files.callback(self._cases.close)
        self.properties: list[KeyFigure] = []
        self.output = ""

    def add(self, case: Case) -> None:
        self.counts[case.verdict] += 1
        self.seconds += case.seconds
        self._cases.write(f"{_INDENT * 2}{dumped(case.xml(self._classname))}\n")

    def lines(self) -> Iterator[str]:
        attributes = {
            "name": self.name,
            "tests": str(self.counts.total()),
            "failures": str(self.counts["failure"]),
            "errors": str(self.counts["error"]),
            "skipped": str(self.counts["skipped"]),
            "time": f"{self.seconds:.3f}",
            "timestamp": self._began.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": self._hostname,
        }
        yield f"{_INDENT}{open_tag('testsuite', attributes)}\n"
        if self.properties:
            properties = element("properties", {})
            for figure in self.properties:
                properties.append(element("property", {"name": figure.name, "value": figure.text}))
            yield f"{_INDENT * 2}{dumped(properties)}\n"
        self._cases.seek(0)
        yield from self._cases
        if self.output:
            yield f"{_INDENT * 2}{dumped(element('system-out', {}, self.output))}\n"
        yield f"{_INDENT}</testsuite>\n"


def _unusable(files: ExitStack, report: Report) -> _Suite:
    suite = _Suite(files, report, "answers")
    for one in report.summary.unusable:
        name = (
            f"answers of the {one.model} model"
            if one.model == "deployed"
            else "answers of the original"
        )
        if one.replica:
            name += f" on {one.replica}"
        suite.add(Case(name, "failure", kind=one.kind, message=one.words))
    return suite


def _limits(files: ExitStack, report: Report) -> _Suite:
    suite = _Suite(files, report, "limits")
    for limit in report.checks:
        if not limit.checked:
            suite.add(Case(limit.name, "skipped", message=limit.words))
        elif limit.crossed:
            suite.add(Case(limit.name, "failure", kind="limit", message=limit.words))
        elif limit.undecided:
            suite.add(Case(limit.name, "skipped", message=f"undecided: {limit.words}"))
        else:
            suite.add(Case(limit.name, message=limit.words))
    return suite


def _open(files: ExitStack, report: Report) -> _Suite:
    """Return what the campaign leaves open, as skipped test cases."""
    suite = _Suite(files, report, "campaign")
    if progress := report.progress:
        suite.add(Case("every seed input is finished", "skipped", message=progress))
    surveyed = report.summary.survey is not None
    if report.nothing_found and not surveyed and (guidance := report.guidance):
        first, *more = guidance
        suite.add(Case("inputs away from the boundary", "skipped", message=first, body=more))
    return suite


def _cases(report: Report) -> Iterator[tuple[str, Case]]:
    """Yield the test cases and the devices to whose suites they belong."""
    if report.replay is not None:
        commands = Commands(report.store)
        for one in report.replay.inputs:
            command = commands.replay(one.id, one.replica)
            yield one.device or "device", _replay_case(report, one, command)
        return
    breaches = _LimitCrossings(report.store, report.checks)
    for finding in results(report.store):
        outcome = finding.outcome
        device = outcome.device_or_replica or "device"
        yield device, _seed_case(report, finding, breaches.of(outcome))


def _document(report: Report, suites: list[_Suite]) -> Iterator[str]:
    counts = sum((suite.counts for suite in suites), Counter())
    attributes = {
        "name": f"edgeflare {report.store.folder.resolve().name}",
        "tests": str(counts.total()),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"{open_tag('testsuites', attributes)}\n"
    for suite in suites:
        yield from suite.lines()
    yield "</testsuites>\n"


def _undotted(name: str) -> str:
    return clean_text(name).replace(".", "_")
