"""What the template of the report is filled with."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from edgeflare.analysis.colours import change_colours, gradient, level_colours
from edgeflare.analysis.figures import ranked_words
from edgeflare.analysis.heard import WordChange
from edgeflare.analysis.kinds import transcribes, units_of
from edgeflare.analysis.page.again import campaign_toml, model_files, versions
from edgeflare.analysis.page.collected import Collected
from edgeflare.analysis.page.devices import device_cards, device_charts
from edgeflare.analysis.page.facts import NO_WORD, arrow, facts, replay_facts
from edgeflare.analysis.page.gallery import COLUMNS, STATUS_WORDS, change_key, pair_key
from edgeflare.analysis.page.headline import headline
from edgeflare.analysis.page.matrix import matrix
from edgeflare.analysis.page.replay_cards import STATE_WORDS
from edgeflare.analysis.page.svg import figure, histogram
from edgeflare.analysis.replayed import ReplaySummary
from edgeflare.analysis.spectrograms import LARGEST_CHANGE_DB, LOWEST_DB
from edgeflare.analysis.summary import summarize
from edgeflare.analysis.verdict import is_control, verdict
from edgeflare.analysis.words import margin_text, number_text, percent_text
from edgeflare.campaign.live import campaign_status
from edgeflare.store import Store

MOST_PAIRS = 500
"""So many pairs of labels there are to choose from, the most frequent ones."""

_MOST_LISTED = 20
_SHORT_NAME = 3
_HEARD = COLUMNS.index("heard")


END_WORDS = {
    "failed": "A model could not answer",
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
        "facts": replay_facts(replay) if replay else facts(summary, collected, name),
        "matrix": matrix(collected.pairs),
        "transcribes": transcribes(store),
        "word_pairs": [
            (pair, change_key(WordChange(pair.original, pair.deployed)))
            for pair in ranked_words(collected.changes)[:_MOST_LISTED]
        ],
        "no_word": NO_WORD,
        "more_words": max(0, len(collected.changes) - _MOST_LISTED),
        "sound": _sound() if summary.sample_rate else None,
        "long_names": any(len(name(deployed)) > _SHORT_NAME for _, deployed in collected.pairs),
        "facets": _facets(collected, name),
        "rare_pairs": max(0, len(collected.facets.pair) - MOST_PAIRS),
        "listed": _listed(collected, name),
        "histograms": _histograms(collected, summary.sample_rate),
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


def _facets(
    collected: Collected, name: Callable[[int | None], str]
) -> dict[str, list[tuple[str, str, int]]]:
    """Return the choices of each filter: value, words and count, the most frequent first."""
    words = {
        pair_key(card.row[4], card.row[5]): _pair_words(name(card.row[4]), name(card.row[5]))
        for card in collected.cards
    }
    words |= {
        change_key(change): arrow(change)
        for card in collected.cards
        for change in map(WordChange._make, (card.row[_HEARD] or {"changes": ()})["changes"])
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


def _pair_words(original: str, deployed: str) -> str:
    return f"{original} by both" if original == deployed else f"{original} → {deployed}"


def _listed(
    collected: Collected, name: Callable[[int | None], str]
) -> list[tuple[dict[str, Any], str, str]]:
    """Return the severest findings, and what both models say of each, for readers without scripts."""

    def said(row: dict[str, Any], model: str) -> str:
        if row["heard"] is None:
            return name(row[model])
        return "".join(text for text, _ in row["heard"][model])

    ranked = sorted(collected.cards, key=lambda card: (card.rank, -card.severity))
    rows = [dict(zip(COLUMNS, card.row, strict=True)) for card in ranked[:_MOST_LISTED]]
    return [(row, said(row, "original"), said(row, "deployed")) for row in rows]


def _histograms(collected: Collected, sample_rate: int | None) -> list[tuple[str, Any]]:
    of_l2 = f"L2, {units_of(sample_rate).l2}"
    drawn: list[tuple[str, Sequence[float], str]] = [
        ("Search queries to the first trigger", collected.queries, "queries"),
        ("Time of a search that found one", collected.seconds, "seconds"),
        ("L2 distance of trigger and seed", collected.l2, of_l2),
    ]
    if collected.snr_db:
        drawn.append(("Signal-to-noise ratio of the triggers", collected.snr_db, "dB"))
    return [(title, histogram(values, title, unit)) for title, values, unit in drawn]


def _sound() -> dict[str, Any]:
    """Return what there is to know of the spectrograms: their scales of colours in dB."""
    return {
        "levels": gradient(level_colours()),
        "lowest": f"{-LOWEST_DB:.0f}",
        "changes": gradient(change_colours()),
        "largest": f"{LARGEST_CHANGE_DB:.0f}",
    }
