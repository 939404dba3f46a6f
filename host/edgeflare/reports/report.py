"""What a report of a campaign consists of, whatever its format."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from edgeflare._internal.text import margin_text
from edgeflare.analysis.campaign_verdict import Verdict
from edgeflare.analysis.class_names import class_name
from edgeflare.analysis.findings import Finding
from edgeflare.analysis.limits import LimitCheck
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.analysis.summary import Summary
from edgeflare.answers.metrics import difference_text, text_of
from edgeflare.answers.oracles import is_measured
from edgeflare.campaign.status import campaign_status
from edgeflare.document import Section
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import TRIGGERS
from edgeflare.words.findings import answers_text
from edgeflare.words.verdict import guidance, progress, verdict_text, verdict_words


@dataclass(frozen=True)
class Report:
    """A campaign's report, which each format renders; see `edgeflare.reports.sections.campaign.make_report`.

    `checks` are its limits, `findings` yields what was found, in the order of the seeds. `store` is
    open. `replay` has the results of a replay, None for another campaign; `names` are those of the
    classes, None where these have numbers only.
    """

    title: str
    verdict: Verdict
    checks: tuple[LimitCheck, ...]
    findings: Callable[[], Iterator[Finding]]
    store: Store
    summary: Summary
    replay: ReplaySummary | None
    names: tuple[str, ...] | None
    make_sections: Callable[["Report"], Iterable[Section]]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Those that suit a text, made once a format shows them."""
        return tuple(self.make_sections(self))

    @property
    def sentences(self) -> tuple[str, str]:
        """The verdict, and what was found where that is about limits, else ""."""
        sentence, found = verdict_words(self.verdict)
        return sentence, found

    @property
    def text(self) -> str:
        """Both in a line."""
        return verdict_text(self.verdict)

    @property
    def guidance(self) -> tuple[str, ...]:
        """What the verdict leaves open, and what to do next; often nothing."""
        return guidance(self.verdict)

    @property
    def nothing_found(self) -> bool:
        """Whether there is no triggering input."""
        return not any(self.summary.by_status[status.value] for status in TRIGGERS)

    @property
    def progress(self) -> str:
        """How far a campaign is that isn't finished, and how to go on; "" for a finished one."""
        return progress(self.summary, campaign_status(self.store.folder))

    @property
    def has_limits(self) -> bool:
        """Whether any limit applies to such a campaign."""
        return any(check.checked for check in self.checks)

    @property
    def crossed(self) -> bool:
        """Whether a limit is crossed."""
        return any(check.crossed for check in self.checks)

    @property
    def undecided(self) -> bool:
        """Whether of a limit nobody can tell whether it holds."""
        return any(check.undecided for check in self.checks)

    def name(self, number: int | None) -> str:
        """Return a class's name, its number where it has none."""
        return class_name(self.names, number)


def outcome_words(report: Report, outcome: OutcomeRecord) -> str:
    """Return both models' answers to a finding: classes as ``4 -> 9``, texts as ``"no" -> "go"``.

    Of detections the differences, of values the distance. Where an oracle compares scores, with the
    distance of the scores: ``4 by both, scores 0.12 apart``.
    """
    labels = (outcome.original_label, outcome.deployed_label)
    if (words := difference_text(outcome.original, outcome.deployed, report.name)) is not None:
        return words
    texts = (text_of(outcome.original), text_of(outcome.deployed))
    answers = answers_text(labels, texts, report.name)
    if not is_measured(report.summary.search) or outcome.disagreement is None:
        return answers
    both = f"{report.name(labels[0])} by both" if labels[0] == labels[1] else answers
    return f"{both}, scores {margin_text(outcome.disagreement)} apart"
