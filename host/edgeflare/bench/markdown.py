"""The report of a bench as a Markdown document."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence

from edgeflare.analysis.words import code, margin_text, number_text, percent_text, plain, table
from edgeflare.bench import explanations
from edgeflare.bench.cell_figures import WITHIN_SECONDS, CellFigures, is_shorter
from edgeflare.bench.comparison_text import comparisons, correlations
from edgeflare.bench.cost_text import costs, false_alarms
from edgeflare.bench.environment_text import environment
from edgeflare.bench.example_text import examples
from edgeflare.bench.report import BenchReport
from edgeflare.bench.words import published, with_interval

_CODE = re.compile(r"\\`(.*?)\\`")
_ESCAPED = re.compile(r"\\(.)")
_ITSELF = r"\1"


def markdown(
    report: BenchReport, pictures: Mapping[str, str], fronts: Mapping[str, str] | None = None
) -> str:
    """Return the document; `pictures` has for each pair its histogram's path, from the document's folder.

    `fronts` has those of the pictures of margins. Control pairs stand apart; but for what they cost, the other
    parts tell only what was found there.
    """
    controls = {one.pair for one in report.false_alarms}
    described = [cell for cell in report.cells if cell.found or cell.pair not in controls]
    parts = [
        f"# {plain(report.title)}",
        report.about.strip(),
        _state(report),
        *(f"> {_with_code(notice)}" for notice in report.notices),
        *false_alarms(report),
        *_results([cell for cell in report.cells if cell.pair not in controls]),
        *costs(report.cells),
        *(_described(described, report.audio) if described else []),
        *examples(report.searches),
        *comparisons(report),
        *correlations(report),
        *_repeats(report.cells),
        *_pictures("Histograms", explanations.HISTOGRAMS, "Queries of each strategy on", pictures),
        *_pictures("Margins", explanations.FRONTS, "Margins of each strategy on", fronts or {}),
        *_left(report),
        *environment(report),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _described(cells: Sequence[CellFigures], audio: Collection[str]) -> list[str]:
    return [*_quality(cells, audio), *_time(cells), *_uniqueness(cells)]


def _with_code(text: str) -> str:
    """Return text that stays itself, but for what stands between backticks: that is code."""
    return _CODE.sub(lambda found: f"`{_ESCAPED.sub(_ITSELF, found[1])}`", plain(text))


def _state(report: BenchReport) -> str:
    done, left = len(report.finished), len(report.unfinished) + len(report.missing)
    total = done + left + len(report.failed)
    searches = f"{len(report.searches):,} searches"
    if not left and not report.failed:
        return f"{searches} in {total} cells: the bench is finished."
    told = [f"of {total} cells {done} finished"]
    if left:
        told.append(f"{left} not finished")
    if report.failed:
        told.append(f"{len(report.failed)} can't be run")
    return f"**{searches} so far; {', '.join(told)}** (see the end)."


def _results(all_cells: Sequence[CellFigures]) -> list[str]:
    if not all_cells:
        return []
    parts = [
        "## Results",
        explanations.RESULTS,
    ]
    for pair in dict.fromkeys(cell.pair for cell in all_cells):
        cells = [cell for cell in all_cells if cell.pair == pair]
        told = any(cell.published for cell in cells)
        header = [
            "strategy",
            "success",
            "queries: mean [95 %]",
            "median",
            "90th percentile",
            "spent",
            "seconds: mean",
            *(["published"] if told else []),
        ]
        rows = [
            [
                plain(cell.strategy),
                _success(cell),
                with_interval(cell.queries, cell.queries_interval),
                number_text(cell.queries_median, 1),
                number_text(cell.queries_p90, 1),
                number_text(cell.queries_spent),
                number_text(cell.seconds, 3),
                *([published(cell.published)] if told else []),
            ]
            for cell in cells
        ]
        parts += [f"### {plain(pair)}", table(header, rows, ["published"])]
        parts += map(plain, explanations.query_limits(cells))
    return parts


def _success(cell: CellFigures) -> str:
    if not cell.searched:
        return percent_text(None)
    return f"{percent_text(cell.success_rate)} ({cell.found:,} of {cell.searched:,})"


def _quality(cells: Sequence[CellFigures], audio: Collection[str]) -> list[str]:
    heard = any(cell.pair in audio for cell in cells)
    seen = any(cell.pair not in audio for cell in cells)
    header = ["pair, strategy", "L2", "Linf", *(["SSIM"] * seen), "margin of the original"]
    header += ["of the deployed", "the smaller one", "seed's label kept", *(["SNR (dB)"] * heard)]
    rows = [
        [
            _name(cell),
            number_text(cell.l2),
            number_text(cell.linf, 0),
            *([number_text(cell.ssim, 3)] * seen),
            margin_text(cell.original_margin),
            margin_text(cell.deployed_margin),
            margin_text(cell.smaller_margin),
            percent_text(cell.label_kept),
            *([number_text(cell.snr_db, 1)] * heard),
        ]
        for cell in cells
    ]
    return [
        "## Quality of the triggering inputs",
        *(
            [explanations.quality(images=seen, audio=heard), table(header, rows)]
            if any(cell.found for cell in cells) or not any(cell.searches for cell in cells)
            else [explanations.NOTHING_FOUND]
        ),
    ]


def _time(cells: Sequence[CellFigures]) -> list[str]:
    limits = [
        limit
        for limit in WITHIN_SECONDS
        if any(is_shorter(limit, cell.timeout_s) for cell in cells)
    ]
    header = ["pair, strategy", "seconds: mean", "median"]
    header += [f"found within {limit} s" for limit in limits]
    header += ["ran out of time", "of queries", "other endings"]
    rows = [
        [
            _name(cell),
            number_text(cell.seconds, 3),
            number_text(cell.seconds_median, 3),
            *(percent_text(cell.within[str(limit)]) for limit in limits),
            str(cell.timeouts),
            str(cell.exhausted),
            _other_endings(cell),
        ]
        for cell in cells
    ]
    return [
        "## Time",
        explanations.TIME,
        table(header, rows),
    ]


def _other_endings(cell: CellFigures) -> str:
    told = {"found", "timeout", "exhausted"}
    others = {name: count for name, count in cell.by_status.items() if count and name not in told}
    return ", ".join(f"{count} {name}" for name, count in others.items()) or "0"


def _uniqueness(cells: Sequence[CellFigures]) -> list[str]:
    header = ["pair, strategy", "triggering inputs", "unique", "duplicates", "seeds with a tie"]
    rows = [
        [
            _name(cell),
            f"{cell.found:,}",
            percent_text(cell.unique, 2),
            str(cell.duplicates),
            str(cell.ties),
        ]
        for cell in cells
    ]
    return [
        "## Uniqueness",
        explanations.UNIQUENESS,
        table(header, rows),
    ]


def _repeats(cells: Sequence[CellFigures]) -> list[str]:
    if all(len(cell.repeats) < 2 for cell in cells):
        return []
    rows = [
        [
            _name(cell),
            str(one.repeat),
            f"{one.found:,} of {one.searched:,}",
            number_text(one.queries),
            number_text(one.seconds, 3),
        ]
        for cell in cells
        for one in cell.repeats
    ]
    header = ["pair, strategy", "repeat", "found", "queries: mean", "seconds: mean"]
    return ["## Repeat by repeat", table(header, rows)]


def _pictures(title: str, about: str, what: str, pictures: Mapping[str, str]) -> list[str]:
    if not pictures:
        return []
    links = (f"![{what} {plain(pair)}]({path})" for pair, path in pictures.items())
    return [f"## {title}", about, *links]


def _left(report: BenchReport) -> list[str]:
    parts = []
    if report.failed:
        rows = [f"- {plain(name)}: {_with_code(why)}" for name, why in report.failed.items()]
        parts += ["## Cells that can't be run", "\n".join(rows)]
    left = [
        *(
            f"- {plain(name)}: interrupted, its searches so far are not counted above"
            for name in report.unfinished
        ),
        *(f"- {plain(name)}: not begun" for name in report.missing),
    ]
    if left:
        parts += ["## Cells that are not finished", "\n".join(left)]
    if parts:
        command = shlex.join(["edgeflare", "bench", "resume", report.folder])
        parts.append(f"To go on: {code(command)}")
    return parts


def _name(cell: CellFigures) -> str:
    return f"{plain(cell.pair)}, {plain(cell.strategy)}"
