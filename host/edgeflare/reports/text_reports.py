"""A campaign's result as a text that other programs and people read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from edgeflare._internal.files import replacing
from edgeflare.analysis.findings import count_findings
from edgeflare.analysis.limits import LimitCheck
from edgeflare.errors import UsageError
from edgeflare.reports.export import check_report_path, translate_report_errors
from edgeflare.reports.render.junit import junit
from edgeflare.reports.render.markdown import markdown
from edgeflare.reports.render.options import PictureFolder, Renderer, RenderOptions
from edgeflare.reports.render.records import csv, json
from edgeflare.reports.sections.campaign import make_report
from edgeflare.reports.survey.export import count_survey_findings
from edgeflare.store import Store, open_store

ReportFormat: TypeAlias = Literal["junit", "json", "markdown", "csv"]
"""A format of `report_text`."""


def report_text(
    campaign: Store | Path,
    format: ReportFormat,  # noqa: A002
    *,
    class_names: Sequence[str] | None = None,
    limits: tuple[LimitCheck, ...] | None = None,
) -> str:
    """Return the results of a campaign, or a replay, as one text.

    "junit": XML that CI systems show as test cases: a limit each, a seed input each, or an input of
    a replay each. "json": one object, the `Summary` with `verdict`, `limits`, `replay`,
    `findings`, `survey_findings`, the confident deviations of the survey, and `sections`, each with its
    key figures and numbers. "markdown": what a comment on a change or a job's summary needs, always
    below 1 MB in UTF-8; what is left out for that is counted. "csv": a line a finding, of a replay
    an input, with the columns `CSV_COLUMNS`.

    `class_names` are in the order of the classes' numbers; by default those of the campaign's own
    label mapping, where that file is still there. `limits` are those of `check_limits` by default.
    What UTF-8 has no place for, as in names of files in another encoding, becomes a question mark.

    Raises UsageError for another format or too few class names, StoreError where the folder can't
    be used.
    """
    with open_store(campaign) as store:
        return b"".join(_pieces(store, format, class_names, limits)).decode()


RENDERERS: Mapping[str, Renderer] = {
    "junit": junit,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
"""The formats by name; a page is written by `write_html_report`.

What draws is imported once a format needs it: that takes a while.
"""


def _pieces(
    store: Store,
    format: ReportFormat,  # noqa: A002
    class_names: Sequence[str] | None,
    limits: tuple[LimitCheck, ...] | None = None,
    pictures: PictureFolder | None = None,
) -> Iterator[bytes]:
    """Return the report in UTF-8, piece by piece."""
    if format not in RENDERERS:
        formats = ", ".join(RENDERERS)
        raise UsageError(f"there is no report format {format!r}; take one of {formats}")
    report = make_report(store, class_names, limits)
    pieces = RENDERERS[format](report, RenderOptions(pictures))
    return (piece.encode(errors="replace") for piece in pieces)


@dataclass(frozen=True)
class TextReport:
    """A report that was written: the file, its size in bytes, and its number of findings.

    `pictures` are files beside it. `survey_findings` are the confident deviations of the survey,
    which are not among the findings.
    """

    path: str
    bytes: int
    findings: int
    pictures: int = 0
    survey_findings: int = 0


def write_text_report(
    campaign: Store | Path,
    format: ReportFormat,  # noqa: A002
    path: Path,
    *,
    class_names: Sequence[str] | None = None,
    pictures: bool = True,
) -> TextReport:
    """Write `report_text` to a file, whole or not at all; an earlier file is replaced, missing
    folders made.

    With `pictures` Markdown shows the first triggers, of a replay the inputs that deviate: PNG
    files in a folder beside the file, ``report-pictures`` of ``report.md``, which it refers to.

    Raises what `report_text` does, UsageError for a path that is a folder or the campaign's own
    database, StoreError where the file can't be written, DiskFullError where no space is left.
    """
    with open_store(campaign) as store:
        check_report_path(path, store.folder)
        count, surveyed = count_findings(store), count_survey_findings(store)
        shown = PictureFolder.of(path) if pictures and format == "markdown" else None
        pieces = _pieces(store, format, class_names, pictures=shown)
        with translate_report_errors(path), replacing(path, durable=True) as file:
            size = sum(map(file.write, pieces))
            if shown is not None:
                shown.write()
    files = 0 if shown is None else len(shown)
    return TextReport(str(path), size, count, files, surveyed)
