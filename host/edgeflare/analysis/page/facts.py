"""The key figures of a campaign, or of a replay, as a page shows them at its top."""

from collections.abc import Callable

from edgeflare.analysis.heard import WordChange, heard
from edgeflare.analysis.kinds import tolerance_of, units_of
from edgeflare.analysis.page.collected import Collected
from edgeflare.analysis.replayed import ReplaySummary
from edgeflare.analysis.summary import Summary
from edgeflare.analysis.words import margin_text, number_text, percent_text

NO_WORD = "(nothing)"
"""What stands for a word that one of two texts has not."""


def facts(
    summary: Summary, collected: Collected, name: Callable[[int | None], str]
) -> list[tuple[str, str, str]]:
    """Return the key figures: name, figure, and what it is about."""
    told = [("Triggers", f"{collected.triggers:,}", _of_searches(summary))]
    if summary.queries_found:
        queries = summary.queries_found
        told.append(
            (
                "Median queries to a trigger",
                f"{queries.median:,.0f}",
                f"mean {queries.mean:,.1f}, 90 % at most {queries.p90:,.0f}",
            )
        )
    if collected.changes:
        (change, count), *_ = collected.changes.most_common(1)
        told.append(
            (
                "Most frequent words",
                arrow(change),
                f"original → deployed, on {count:,} of {collected.triggers:,} triggers",
            )
        )
    if tolerance_of(summary.search) is not None:
        return told + _apart(collected, name) + _distances(summary)
    if collected.pairs:
        pair, count = max(collected.pairs.items(), key=lambda one: (one[1], one[0]))
        told.append(
            (
                "Most frequent pair",
                f"{name(pair[0])} → {name(pair[1])}",
                f"{count:,} of {sum(collected.pairs.values()):,} triggers",
            )
        )
    worst = collected.worst
    if worst is not None and worst.severity >= 0:
        outcome = worst.finding.outcome
        both = heard(outcome.original, outcome.deployed)
        told.append(
            (
                "Severest words" if both and both.changes else "Severest pair",
                arrow(both.changes[0])
                if both and both.changes
                else f"{name(outcome.original_label)} → {name(outcome.deployed_label)}",
                f"smaller margin {margin_text(worst.severity)}",
            )
        )
    return told + _distances(summary)


def _apart(collected: Collected, name: Callable[[int | None], str]) -> list[tuple[str, str, str]]:
    """Return how far apart the scores are at most, and how often the label is another one, too."""
    told = []
    worst = collected.worst
    if worst is not None and worst.severity >= 0:
        labels = (worst.finding.outcome.original_label, worst.finding.outcome.deployed_label)
        said = f"{name(labels[0])} → {name(labels[1])}"
        if labels[0] == labels[1]:
            said = f"{name(labels[0])} by both"
        told.append(
            (
                "Largest disagreement",
                margin_text(worst.severity),
                f"total variation distance, {said}",
            )
        )
    if collected.pairs:
        other = sum(count for (ours, theirs), count in collected.pairs.items() if ours != theirs)
        about = f"of {sum(collected.pairs.values()):,} triggers"
        told.append(("Another label, too", f"{other:,}", about))
    return told


def _distances(summary: Summary) -> list[tuple[str, str, str]]:
    told = []
    if summary.l2 is not None and summary.linf is not None:
        units = units_of(summary.sample_rate)
        told.append(
            (
                "Median distance",
                f"L2 {number_text(summary.l2)}",
                f"Linf {number_text(summary.linf, 0)} of {units.most_levels:,} {units.levels}",
            )
        )
    if summary.snr_db is not None:
        told.append(
            ("Median SNR", f"{summary.snr_db:.1f} dB", "the seed's power over the difference's")
        )
    if summary.labelled:
        right = [
            percent_text(count / summary.labelled)
            for count in (summary.original_right, summary.deployed_right)
        ]
        told.append(
            (
                "Right on the seeds",
                " → ".join(right),
                f"original → deployed, {summary.labelled:,} labelled seeds",
            )
        )
    return told


def replay_facts(replay: ReplaySummary) -> list[tuple[str, str, str]]:
    """Return what became of a replay's inputs: name, figure, and what it is about."""
    counts = replay.counts
    return [
        (
            "Deviating now",
            f"{counts['new'] + counts['still']:,}",
            f"of {len(replay.inputs):,} replayed inputs",
        ),
        ("New", f"{counts['new']:,}", "deviate now, did not before"),
        ("Still", f"{counts['still']:,}", "deviate as before"),
        ("Fixed", f"{counts['fixed']:,}", "deviated, and do not now"),
        ("Agreeing", f"{counts['agrees']:,}", "in agreement as before, not shown"),
    ]


def _of_searches(summary: Summary) -> str:
    if summary.success_rate is None:
        told = "nothing was searched"
    else:
        rate = percent_text(summary.success_rate)
        told = f"found by {summary.found:,} of {summary.searched:,} searches ({rate})"
    itself = summary.by_status.get("seed-deviates", 0)
    return (
        f"{told}, and {itself:,} {'seed' if itself == 1 else 'seeds'} as {'it is' if itself == 1 else 'they are'}"
        if itself
        else told
    )


def arrow(change: WordChange) -> str:
    """Return a word and what was heard instead, like ``no → go``."""
    return f"{change.original or NO_WORD} → {change.deployed or NO_WORD}"
