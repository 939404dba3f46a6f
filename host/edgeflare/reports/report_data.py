"""What a report of a campaign as text, or as a run of MLflow, is made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare._internal.text import margin_text
from edgeflare.analysis.campaign_verdict import Verdict, campaign_verdict
from edgeflare.analysis.class_names import class_name, known_class_names
from edgeflare.analysis.limits import LimitCheck
from edgeflare.analysis.replay import ReplaySummary, replay_summary
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.answers.metrics import difference_text, text_of
from edgeflare.answers.oracles import is_measured
from edgeflare.campaign.status import campaign_status
from edgeflare.reports.campaign import answers_text
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import TRIGGERS
from edgeflare.words.verdict import guidance, progress, verdict_text


@dataclass(frozen=True)
class ReportData:
    """A campaign's open store, its figures, its limits and the names of its classes.

    `replay` has the results of a replay, None for another campaign; `names` is None where the
    classes have numbers only.
    """

    store: Store
    summary: Summary
    limits: tuple[LimitCheck, ...]
    replay: ReplaySummary | None
    names: tuple[str, ...] | None

    @property
    def verdict(self) -> str:
        """Whether the campaign is within its limits, and how much was found, in a line."""
        return verdict_text(self._verdict)

    @property
    def guidance(self) -> tuple[str, ...]:
        """What the verdict leaves open, and what to do next; often nothing."""
        return guidance(self._verdict)

    @property
    def nothing_found(self) -> bool:
        """Whether there is no triggering input."""
        return not any(self.summary.by_status[status.value] for status in TRIGGERS)

    @property
    def _verdict(self) -> Verdict:
        return campaign_verdict(self.store, self.summary, self.limits, self.replay)

    @property
    def progress(self) -> str:
        """How far a campaign is that isn't finished, and how to go on; "" for a finished one."""
        return progress(self.summary, campaign_status(self.store.folder))

    @property
    def has_limits(self) -> bool:
        """Whether any limit applies to such a campaign."""
        return any(one.checked for one in self.limits)

    @property
    def crossed(self) -> bool:
        """Whether a limit is crossed."""
        return any(one.crossed for one in self.limits)

    @property
    def undecided(self) -> bool:
        """Whether of a limit nobody can tell whether it holds."""
        return any(one.undecided for one in self.limits)

    def name(self, number: int | None) -> str:
        """Return a class's name, its number where it has none."""
        return class_name(self.names, number)


def report_data(
    store: Store,
    class_names: Sequence[str] | None = None,
    limits: tuple[LimitCheck, ...] | None = None,
) -> ReportData:
    """Return what a campaign's reports are made of. Raises UsageError, StoreError."""
    summary = summarize(store)
    return ReportData(
        store=store,
        summary=summary,
        limits=summary.limits if limits is None else limits,
        replay=replay_summary(store) if store.state.is_replay else None,
        names=known_class_names(store, class_names),
    )


def outcome_words(data: ReportData, outcome: OutcomeRecord) -> str:
    """Return both models' answers to a finding: classes as ``4 -> 9``, texts as ``"no" -> "go"``.

    Of detections the differences, of values the distance. Where an oracle compares scores, with the distance of the scores: ``4 by both, scores 0.12
    apart``.
    """
    labels = (outcome.original_label, outcome.deployed_label)
    if (words := difference_text(outcome.original, outcome.deployed, data.name)) is not None:
        return words
    texts = (text_of(outcome.original), text_of(outcome.deployed))
    answers = answers_text(labels, texts, data.name)
    if not is_measured(data.summary.search) or outcome.disagreement is None:
        return answers
    both = f"{data.name(labels[0])} by both" if labels[0] == labels[1] else answers
    return f"{both}, scores {margin_text(outcome.disagreement)} apart"
