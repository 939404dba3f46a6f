"""A campaign's result as a text that other programs and people read."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from edgeflare.analysis.opening import opened
from edgeflare.errors import UsageError
from edgeflare.store import Store

if TYPE_CHECKING:
    from edgeflare.analysis.formats.material import Material
    from edgeflare.analysis.limits import LimitCheck

ReportFormat: TypeAlias = Literal["junit", "json", "markdown", "csv"]

_MODULES = {
    "junit": "edgeflare.analysis.formats.junit",
    "json": "edgeflare.analysis.formats.json_text",
    "markdown": "edgeflare.reports.markdown",
    "csv": "edgeflare.analysis.formats.csv_text",
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
    `edgeflare.analysis.formats.csv_text`.

    `class_names` are in the order of the classes' numbers; by default those of the campaign's own label
    mapping, where that file is still there. `limits` are what `check_limits` says by default. What UTF-8 has
    no place for, as in names of files in another encoding, becomes a question mark.

    Raises UsageError for another format or too few class names, StoreError where the folder can't be used.
    """
    if format not in _MODULES:
        raise UsageError(
            f"There is no report format {format!r}; take one of {', '.join(get_args(ReportFormat))}."
        )
    from edgeflare.analysis.formats.material import gather

    module = import_module(_MODULES[format])
    written: Callable[[Material], str] = module.text
    with opened(campaign) as store:
        told = written(gather(store, class_names, limits))
    return told.encode(errors="replace").decode()
