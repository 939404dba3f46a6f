"""A campaign's result as a text that other programs and people read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from edgeflare._internal.files import write_durably
from edgeflare.analysis.class_names import class_name, known_class_names
from edgeflare.analysis.findings import Finding, has_input, jsonable, outcome_part
from edgeflare.analysis.limits import LimitCheck, check_limits
from edgeflare.analysis.opening import opened
from edgeflare.analysis.replay import ReplaySummary, replay_summary
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.campaign.status import campaign_status
from edgeflare.errors import UsageError
from edgeflare.reports.export import check_report_path, written_to
from edgeflare.reports.verdict import Verdict, guidance, progress, verdict
from edgeflare.store import Store
from edgeflare.types import TRIGGERS

ReportFormat: TypeAlias = Literal["junit", "json", "markdown", "csv"]

_MODULES = {
    "junit": "edgeflare.reports.junit",
    "json": "edgeflare.reports.json_report",
    "markdown": "edgeflare.reports.markdown",
    "csv": "edgeflare.reports.csv_report",
}


def report_text(
    campaign: Store | Path,
    format: ReportFormat,  # noqa: A002
    *,
    class_names: Sequence[str] | None = None,
    limits: "tuple[LimitCheck, ...] | None" = None,
) -> str:
    """Return what a campaign, or a replay, came to as one text.

    "junit": XML that CI systems show as test cases: a limit each, a seed input each, or an input of a replay
    each. "json": one object, the `Summary` with `verdict`, `limits`, `replay` and `findings`. "markdown": what a
    comment on a change or a job's summary needs. "csv": a line a finding, of a replay
    an input, with the columns `COLUMNS` of
    `edgeflare.reports.csv_report`.

    `class_names` are in the order of the classes' numbers; by default those of the campaign's own label
    mapping, where that file is still there. `limits` are what `check_limits` says by default. What UTF-8 has
    no place for, as in names of files in another encoding, becomes a question mark.

    Raises UsageError for another format or too few class names, StoreError where the folder can't be used.
    """
    if format not in _MODULES:
        raise UsageError(
            f"There is no report format {format!r}; take one of {', '.join(get_args(ReportFormat))}."
        )

    module = import_module(_MODULES[format])
    written: Callable[[ReportData], str] = module.text
    with opened(campaign) as store:
        told = written(gather(store, class_names, limits))
    return told.encode(errors="replace").decode()


@dataclass(frozen=True)
class TextReport:
    """A report that was written: the file, its size in bytes, and how many findings it tells of."""

    path: str
    bytes: int
    findings: int


def write_text_report(
    campaign: Store | Path,
    format: ReportFormat,  # noqa: A002
    path: Path,
    *,
    class_names: Sequence[str] | None = None,
) -> TextReport:
    """Write `report_text` to a file, whole or not at all; an earlier file is replaced, missing folders made.

    Raises what `report_text` does, UsageError for a path that is a folder or the campaign's own database,
    StoreError where the file can't be written, DiskFullError where no space is left.
    """
    with opened(campaign) as store:
        check_report_path(path, store.folder)
        count = sum(map(has_input, store.outcomes()))
        data = report_text(store, format, class_names=class_names).encode()
    with written_to(
        path.parent,
        untouched="the campaign itself",
        again="write the report again",
        instead="choose another file",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, data)
    return TextReport(str(path), len(data), count)


@dataclass(frozen=True)
class ReportData:
    """A campaign's open store, its figures, its limits and the names of its classes.

    `replay` is what a replay came to, None for another campaign; `names` is None where the classes have
    numbers only.
    """

    store: Store
    summary: Summary
    limits: tuple[LimitCheck, ...]
    replay: ReplaySummary | None
    names: tuple[str, ...] | None

    @property
    def verdict(self) -> str:
        """Whether the limits are kept, and how much was found, in a line."""
        return self._said.text

    @property
    def guidance(self) -> tuple[str, ...]:
        """What the verdict leaves open, and what to do next; often nothing."""
        return guidance(self._said, self.summary)

    @property
    def nothing_found(self) -> bool:
        """Whether there is no triggering input."""
        return not any(self.summary.by_status[status.value] for status in TRIGGERS)

    @property
    def _said(self) -> Verdict:
        return verdict(self.store, self.summary, self.limits, self.replay)

    @property
    def progress(self) -> str:
        """How far a campaign is that isn't finished, and how to go on; "" for a finished one."""
        return progress(self.summary, campaign_status(self.store.folder))

    @property
    def has_limits(self) -> bool:
        """Whether there is a limit that says something of such a campaign."""
        return any(one.checked for one in self.limits)

    @property
    def crossed(self) -> bool:
        """Whether a limit is crossed."""
        return any(one.crossed for one in self.limits)

    def name(self, number: int | None) -> str:
        """Return a class's name, its number where it has none."""
        return class_name(self.names, number)


def gather(
    store: Store,
    class_names: Sequence[str] | None = None,
    limits: tuple[LimitCheck, ...] | None = None,
) -> ReportData:
    """Return what a campaign's reports are made of. Raises UsageError, StoreError."""
    return ReportData(
        store=store,
        summary=summarize(store),
        limits=check_limits(store) if limits is None else limits,
        replay=replay_summary(store) if store.fact("replay") else None,
        names=known_class_names(store, class_names),
    )


def finding_row(material: ReportData, finding: Finding) -> dict[str, Any]:
    """Return what an outcome says of a finding, its seed, its cause, and the line that sends it again.

    `original_class` and `deployed_class` are the labels' names, None where they have none;
    `disagreement` is how far both answers are apart, from 0 to 1.
    """
    row = outcome_part(material.store.models, finding.outcome)
    labels = {name: row[f"{name}_label"] for name in ("original", "deployed")}
    known = material.names is not None
    return {
        **row,
        "disagreement": jsonable(finding.outcome.disagreement),
        "label": finding.seed.label,
        "seed_sample": finding.seed.sample,
        "trigger_sample": row["trigger_sample"] or finding.seed.sample,
        **{
            f"{name}_class": material.name(label) if known and label is not None else None
            for name, label in labels.items()
        },
        "cause": finding.cause,
        "command": finding.command,
    }
