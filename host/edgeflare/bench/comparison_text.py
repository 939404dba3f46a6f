"""Strategies beside the baseline, and studies, as Markdown."""

from edgeflare.analysis.words import number_text, p_value_text, percent_text, plain, table
from edgeflare.bench import explanations
from edgeflare.bench.comparisons import Comparison, Contrast
from edgeflare.bench.report import BenchReport


def comparisons(report: BenchReport) -> list[str]:
    """Return the part that sets each strategy beside the baseline; nothing without a baseline."""
    if not report.comparisons:
        return []
    tested = ["p", "p (Holm)", "rank-biserial", "A12", "verdict"]
    success = [
        [
            f"{plain(one.pair)}, {plain(one.strategy)}",
            str(one.seeds),
            percent_text(one.success.mean),
            percent_text(one.success.baseline_mean),
            p_value_text(one.success.p),
            p_value_text(one.success.p_holm),
            one.success.verdict,
        ]
        for one in report.comparisons
    ]

    def rows(measure: str) -> list[list[str]]:
        return [_compared(one, getattr(one, measure)) for one in report.comparisons]

    header = ["pair, strategy", "ratio of means", *tested]
    of_success = ["pair, strategy", "seeds", "success", "baseline's", "p", "p (Holm)", "verdict"]
    return [
        f"## Comparison with {plain(str(report.baseline))}",
        explanations.COMPARISON,
        "### Success",
        table(of_success, success, ["verdict"]),
        "### Queries",
        table(header, rows("queries"), ["verdict"]),
        "### Seconds",
        table(header, rows("seconds"), ["verdict"]),
    ]


def _compared(one: Comparison, contrast: Contrast) -> list[str]:
    return [
        f"{plain(one.pair)}, {plain(one.strategy)}",
        number_text(contrast.ratio),
        p_value_text(contrast.p),
        p_value_text(contrast.p_holm),
        f"{contrast.rank_biserial:+.2f} {contrast.rank_biserial_size}",
        f"{contrast.a12:.2f} {contrast.a12_size}",
        contrast.verdict,
    ]


def correlations(report: BenchReport) -> list[str]:
    """Return the part on the studies; nothing without any."""
    if not report.correlations:
        return []
    summary = [
        [
            f"{plain(one.study)}, {plain(one.strategy)}",
            str(len(one.points)),
            number_text(one.queries, 3),
            number_text(one.seconds, 3),
            percent_text(one.lowest_success),
        ]
        for one in report.correlations
    ]
    points = [
        [
            f"{plain(one.study)}, {plain(one.strategy)}",
            f"{point.x:g}",
            percent_text(point.success_rate),
            number_text(point.queries),
            number_text(point.seconds, 3),
        ]
        for one in report.correlations
        for point in one.points
    ]
    return [
        "## Correlations",
        explanations.CORRELATIONS,
        *([explanations.LEFT_OUT] if any(one.leaves_out for one in report.correlations) else []),
        table(
            ["study, strategy", "pairs", "with queries", "with seconds", "lowest success"], summary
        ),
        table(["study, strategy", "x", "success", "queries: mean", "seconds: mean"], points),
    ]
