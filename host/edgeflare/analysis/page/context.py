"""What the template of the report is filled with."""

import shlex
from collections.abc import Callable
from typing import Any

from edgeflare.analysis.page.again import campaign_toml, model_files, versions
from edgeflare.analysis.page.collected import Collected
from edgeflare.analysis.page.devices import device_cards, device_charts
from edgeflare.analysis.page.gallery import STATUS_WORDS, pair_key
from edgeflare.analysis.page.headline import headline
from edgeflare.analysis.page.matrix import matrix
from edgeflare.analysis.page.replay_cards import STATE_WORDS
from edgeflare.analysis.page.svg import figure, histogram
from edgeflare.analysis.replayed import ReplaySummary
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.analysis.verdict import is_control, verdict
from edgeflare.analysis.words import margin_text, number_text, percent_text
from edgeflare.campaign.live import campaign_status
from edgeflare.store import Store

MOST_PAIRS = 500
"""So many pairs of labels there are to choose from, the most frequent ones."""

_MOST_LISTED = 20
_SHORT_NAME = 3

END_WORDS = {
    "failed": "The device could not answer",
    "nonfinite": "NaN or infinity in an output",
    "unstable": "A deviation that did not repeat",
    "exhausted": "Nothing found within the query budget",
    "timeout": "Nothing found within the time budget",
    "gave-up": "The strategy gave up",
}


def context(
    store: Store,
    collected: Collected,
    name: Callable[[int | None], str],
    replay: ReplaySummary | None = None,
) -> dict[str, Any]:
    """Return the values of ``report.html.j2``; `name` tells a class's name, `replay` is what a replay came
    to. Raises StoreError."""
    summary = summarize(store)
    status = campaign_status(store.folder)
    said = verdict(store, summary, summary.limits, replay)
    return {
        "summary": summary,
        "replay": replay,
        "status": status,
        "control_of": is_control(store.folder),
        "headline": headline(said, summary, collected, status, name),
        "facts": _replay_facts(replay) if replay else _facts(summary, collected, name),
        "matrix": matrix(collected.pairs),
        "long_names": any(len(name(deployed)) > _SHORT_NAME for _, deployed in collected.pairs),
        "facets": _facets(collected, name),
        "rare_pairs": max(0, len(collected.facets.pair) - MOST_PAIRS),
        "listed": _listed(collected),
        "histograms": _histograms(collected),
        "ends": [
            (END_WORDS[key], ends)
            for key in END_WORDS
            for status_, ends in collected.ends.items()
            if status_.value == key
        ],
        "device_cards": device_cards(summary.devices),
        "device_charts": device_charts(store),
        "models": model_files(summary.models),
        "versions": versions(store),
        "campaign_toml": campaign_toml(store.campaign),
        "resume": shlex.join(["edgeflare", "resume", str(store.folder.resolve())]),
        "send_again": shlex.join(["edgeflare", "replay", replay.source]) if replay else "",
        "name": name,
        "status_words": STATUS_WORDS,
        "percent": percent_text,
        "margin": margin_text,
        "number": number_text,
        "figure": figure,
    }


def _facts(
    summary: Summary, collected: Collected, name: Callable[[int | None], str]
) -> list[tuple[str, str, str]]:
    """Return the key figures: name, figure, and what it is about."""
    facts = [("Triggers", f"{collected.triggers:,}", _of_searches(summary))]
    if summary.queries_found:
        queries = summary.queries_found
        facts.append(
            (
                "Median queries to a trigger",
                f"{queries.median:,.0f}",
                f"mean {queries.mean:,.1f}, 90 % at most {queries.p90:,.0f}",
            )
        )
    if collected.pairs:
        pair, count = max(collected.pairs.items(), key=lambda one: (one[1], one[0]))
        facts.append(
            (
                "Most frequent pair",
                f"{name(pair[0])} → {name(pair[1])}",
                f"{count:,} of {sum(collected.pairs.values()):,} triggers",
            )
        )
    worst = collected.worst
    if worst is not None and worst.severity >= 0:
        outcome = worst.finding.outcome
        facts.append(
            (
                "Severest pair",
                f"{name(outcome.original_label)} → {name(outcome.deployed_label)}",
                f"smaller margin {margin_text(worst.severity)}",
            )
        )
    if summary.l2 is not None and summary.linf is not None:
        facts.append(
            (
                "Median distance",
                f"L2 {number_text(summary.l2)}",
                f"Linf {number_text(summary.linf, 0)} of 255 levels",
            )
        )
    if summary.labelled:
        right = [
            percent_text(count / summary.labelled)
            for count in (summary.original_right, summary.deployed_right)
        ]
        facts.append(
            (
                "Right on the seeds",
                " → ".join(right),
                f"original → deployed, {summary.labelled:,} labelled seeds",
            )
        )
    return facts


def _replay_facts(replay: ReplaySummary) -> list[tuple[str, str, str]]:
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
        return "nothing was searched"
    return f"searches that found one: {summary.found:,} of {summary.searched:,} ({percent_text(summary.success_rate)})"


def _facets(
    collected: Collected, name: Callable[[int | None], str]
) -> dict[str, list[tuple[str, str, int]]]:
    """Return the choices of each filter: value, words and count, the most frequent first."""
    words = {
        pair_key(card.row[4], card.row[5]): f"{name(card.row[4])} → {name(card.row[5])}"
        for card in collected.cards
    }
    words["none"] = "no labels"
    facets = {
        name_: [(value, value, count) for value, count in counts.most_common()]
        for name_, counts in vars(collected.facets).items()
    }
    facets["pair"] = [
        (value, words[value], count) for value, _, count in facets["pair"][:MOST_PAIRS]
    ]
    facets["status"] = [
        (value, STATUS_WORDS.get(value, value), count) for value, _, count in facets["status"]
    ]
    facets["state"] = [
        (state, words_, collected.facets.state[state])
        for state, words_ in STATE_WORDS.items()
        if collected.facets.state[state]
    ]
    facets["device"] = [(value, value or "unknown", count) for value, _, count in facets["device"]]
    return facets


def _listed(collected: Collected) -> list[Any]:
    """Return the severest findings, for readers without scripts."""
    ranked = sorted(collected.cards, key=lambda card: (card.rank, -card.severity))
    return [card.row for card in ranked[:_MOST_LISTED]]


def _histograms(collected: Collected) -> list[tuple[str, Any]]:
    return [
        (title, histogram(values, title, unit))
        for title, values, unit in (
            ("Search queries to the first trigger", collected.queries, "queries"),
            ("Time of a search that found one", collected.seconds, "seconds"),
            ("L2 distance of trigger and seed", collected.l2, "L2, pixels from 0 to 1"),
        )
    ]
