"""A campaign as test cases, in the XML that CI systems read: JUnit's, as Jenkins, GitLab and GitHub have it."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone

from edgeflare.analysis.findings import Commands, results
from edgeflare.analysis.formats.breaches import Breaches
from edgeflare.analysis.formats.junit_cases import Case
from edgeflare.analysis.formats.junit_inputs import replay_case, seed_case
from edgeflare.analysis.formats.material import Material
from edgeflare.analysis.formats.xml_text import dumped, open_tag
from edgeflare.text import clean_text

_INDENT = "  "


def text(material: Material) -> str:
    """Return the document: a suite "limits" with a test case each, one "campaign" with what is left open, and a suite a
    device with one a seed input.

    Where there are limits these are the verdict: a triggering input then fails its test case only if it
    crosses one of them alone. Where there are none each triggering input is a failure. Of a replay a new
    deviation is a failure, and one that was known is skipped, where there are limits.
    """
    suites = [suite for suite in (_limits(material), _open(material)) if suite.counts]
    by_device: dict[str, _Suite] = {}
    for device, case in _cases(material):
        if device not in by_device:
            by_device[device] = _Suite(material, device, hostname=device)
        by_device[device].add(case)
    return _document(material, [*suites, *by_device.values()])


class _Suite:
    """Test cases as text, and their counts."""

    def __init__(self, material: Material, name: str, *, hostname: str = "localhost") -> None:
        folder = material.store.folder.resolve().name
        self.name = name
        self.seconds = 0.0
        self.counts: Counter[str] = Counter()
        self._hostname = hostname
        # Jenkins takes what stands before the last dot for a package.
        self._classname = f"{_undotted(folder)}.{_undotted(name)}"
        self._began = datetime.fromisoformat(material.summary.created_at).astimezone(timezone.utc)
        self._cases: list[str] = []

    def add(self, case: Case) -> None:
        self.counts[case.verdict] += 1
        self.seconds += case.seconds
        self._cases.append(f"{_INDENT * 2}{dumped(case.xml(self._classname))}\n")

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
        yield from self._cases
        yield f"{_INDENT}</testsuite>\n"


def _limits(material: Material) -> _Suite:
    suite = _Suite(material, "limits")
    for one in material.limits:
        if not one.checked:
            suite.add(Case(one.name, "skipped", message=one.words))
        elif one.crossed:
            suite.add(Case(one.name, "failure", kind="limit", message=one.words))
        else:
            suite.add(Case(one.name, message=one.words))
    return suite


def _open(material: Material) -> _Suite:
    """Return what the campaign leaves open, as skipped test cases."""
    suite = _Suite(material, "campaign")
    if told := material.progress:
        suite.add(Case("every seed input is finished", "skipped", message=told))
    if material.nothing_found and (covered := material.guidance):
        first, *more = covered
        suite.add(Case("inputs away from the boundary", "skipped", message=first, body=more))
    return suite


def _cases(material: Material) -> Iterator[tuple[str, Case]]:
    """Yield the test cases and the devices to whose suites they belong."""
    if material.replay is not None:
        commands = Commands(material.store)
        for one in material.replay.inputs:
            command = commands.replay(one.id, one.replica)
            yield one.device or "device", replay_case(material, one, command)
        return
    breaches = Breaches(material.store, material.limits)
    for finding in results(material.store):
        outcome = finding.outcome
        device = outcome.replica or outcome.device_name or "device"
        yield device, seed_case(material, finding, breaches.of(outcome))


def _document(material: Material, suites: list[_Suite]) -> str:
    counts = sum((suite.counts for suite in suites), Counter())
    attributes = {
        "name": f"edgeflare {material.store.folder.resolve().name}",
        "tests": str(counts.total()),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>\n',
        f"{open_tag('testsuites', attributes)}\n",
        *(line for suite in suites for line in suite.lines()),
        "</testsuites>\n",
    ]
    return "".join(lines)


def _undotted(name: str) -> str:
    return clean_text(name).replace(".", "_")
