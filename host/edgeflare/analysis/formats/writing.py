"""A report as a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeflare._internal.files import write_durably
from edgeflare.analysis.formats import ReportFormat, report_text
from edgeflare.analysis.opening import opened
from edgeflare.analysis.rows import has_input
from edgeflare.analysis.written import check_report_path, written_to
from edgeflare.store import Store


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
