"""The figures of a night's search and replays."""

from collections.abc import Iterable
from statistics import median

from edgeflare.analysis import summarize
from edgeflare.analysis.replayed import ReplaySummary
from edgeflare.nightly.night import ReplayCounts, SearchFigures
from edgeflare.store import Store
from edgeflare.types import TRIGGERS


def search_figures(store: Store) -> SearchFigures:
    """Return the figures of a campaign on one device."""
    summary = summarize(store)
    telemetry = summary.telemetry[0] if summary.telemetry else None
    severities = [
        value
        for outcome in store.outcomes()
        if outcome.status in TRIGGERS and (value := outcome.severity) is not None
    ]
    return SearchFigures(
        seeds=summary.seeds,
        seed_deviates=summary.by_status["seed-deviates"],
        searched=summary.searched,
        found=summary.found,
        queries=None if summary.queries_found is None else summary.queries_found.median,
        severity=median(severities) if severities else None,
        total_queries=sum(
            summary.total_queries[name] for name in ("seed", "search", "confirmation", "measuring")
        ),
        latency_s=None if telemetry is None else telemetry.latency_median_s,
        temperature_c=None if telemetry is None else telemetry.temperature_max_c,
        throttled=bool(summary.throttled),
        whole=bool(store.fact("finished")),
    )


def replay_figures(replays: Iterable[ReplaySummary]) -> ReplayCounts:
    """Return the figures of several replays together."""
    totals = dict.fromkeys(ReplayCounts.model_fields, 0)
    for replay in replays:
        for state, count in replay.counts.items():
            totals[state] += count
    return ReplayCounts(**totals)
