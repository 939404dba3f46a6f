"""One test case of a JUnit report: what is a failure, an error, skipped, or passes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from edgeflare.analysis.formats.xml_text import Element, element

Verdict: TypeAlias = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True)
class Case:
    """A test case: its name, how long it took, and how it ended.

    `kind` is the type of a failure or an error, `message` one line on what happened, `body` more lines; of
    a case that passes they are what it printed.
    """

    name: str
    verdict: Verdict = "passed"
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
