"""``report``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from edgeflare._internal.text import counted, size_text
from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from edgeflare.reports import ReportFormat

_HTML = "html"
_EMBED_MB = 10


def report(
    campaign: Annotated[Path, typer.Argument(help="A campaign's or a replay's folder.")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="html: one page to look at. junit: test cases for CI. json: everything for a program. "
            "markdown: for a comment on a change. csv: a line a finding, or an input of a "
            "replay.",
        ),
    ] = _HTML,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file to write; by default CAMPAIGN/report.html, and stdout for the other formats.",
        ),
    ] = None,
    class_names: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The classes' names: text with a name a line, a JSON list, {name: number} or {number: name}; by default "
            "the campaign's own label mapping.",
        ),
    ] = None,
    embed_mb: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="MB",
            help=f"So many MB of pictures and sounds go into the page, the rest beside it (default {_EMBED_MB}).",
        ),
    ] = None,
) -> None:
    """Write what a campaign found for people and for CI: a page, test cases, JSON, Markdown or CSV."""
    from edgeflare import UsageError
    from edgeflare.analysis import load_class_names
    from edgeflare.reports import ReportFormat

    texts = get_args(ReportFormat)
    if form not in (_HTML, *texts):
        raise UsageError(f"there is no format {form!r}; take {_HTML}, {', '.join(texts)}")
    if embed_mb is not None and form != _HTML:
        raise UsageError(
            f"--embed-mb is for pages: {form} has no pictures and no sounds; leave it out"
        )
    names = None if class_names is None else load_class_names(class_names, campaign)
    if form == _HTML:
        _write_page(campaign, out, names, _EMBED_MB if embed_mb is None else embed_mb)
    else:
        _write_text(campaign, form, out, names)  # type: ignore[arg-type] # it is checked there


def _write_page(
    campaign: Path, out: Path | None, names: tuple[str, ...] | None, embed_mb: float
) -> None:
    from edgeflare import write_html_report

    page = write_html_report(
        campaign, out or campaign / "report.html", class_names=names, embed_mb=embed_mb
    )
    beside = f", {page.beside:,} files beside it" if page.beside else ""
    echo_err(
        f"wrote {page.path}: {size_text(page.bytes)}, {counted(page.findings, 'finding')}{beside}"
    )


def _write_text(
    campaign: Path, form: "ReportFormat", out: Path | None, names: tuple[str, ...] | None
) -> None:
    from edgeflare import report_text
    from edgeflare.reports import write_text_report

    if out is None:
        text = report_text(campaign, form, class_names=names)
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    written = write_text_report(campaign, form, out, class_names=names)
    echo_err(
        f"wrote {written.path}: {size_text(written.bytes)}, {counted(written.findings, 'finding')}"
    )
