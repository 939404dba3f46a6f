"""Explanations of the report's tables, and what the bench ran on: settings, devices, versions."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from edgeflare._internal.text import NOTHING
from edgeflare.document import Block, Heading, Item, Listing, Prose, Text, table_of
from edgeflare.reports.document import code, plain
from edgeflare_bench.cell_figures import CellFigures
from edgeflare_bench.report import BenchReport, ResolvedSearch

RESULTS = Prose(
    "Success: the share of the searches that found a triggering input. Queries (mean, median and "
    "90th percentile) and seconds are those of the searches that found one (the paper's section "
    "4.3), not of the others; a query gives one input to both models. In brackets: the approximate "
    "95 % interval of the mean, by bootstrap, seed inputs drawn together with all their repeats; "
    "too narrow where few searches or a few very long ones make the mean. Spent: the mean queries "
    "of all searches, with or without a triggering input.",
    brief="Queries and seconds of the searches that found a triggering input:",
)

_OF_IMAGES = (
    "L2 (pixels from 0 to 1), Linf (levels from 0 to 255) and SSIM (1: the same) tell how far a "
    "triggering input is from its seed."
)

_SNR = (
    "SNR, the power of the seed over that of what was changed, in dB (20: a hundredth of it was "
    "changed; a sound that is only moved or changed in pitch has a low one although it can be "
    "understood)"
)

_OF_AUDIO = (
    "How far a triggering input is from its seed is told by L2 (samples from -1 to 1), Linf "
    f"(levels of 16 bits, 0 to 65,534) and {_SNR}."
)

_OF_AUDIO_TOO = (
    "Of audio L2 is of samples from -1 to 1, Linf in levels of 16 bits (0 to 65,534); it has "
    f"{_SNR}, and no SSIM."
)

_SURE = (
    "The margin is a model's top-1 less "
    "its top-2 probability: where both are large, both models are sure, of different labels. "
    "Seed's label kept: the share of triggering inputs on which the original still answers as on "
    "the seed, so that it is the deployed model that changed its answer."
)

_SURE_OF_WORDS = (
    "Where a model transcribes, a margin is that of the words that differ, and a seed's label is "
    "its words."
)

EXAMPLES = Prose(
    "For each strategy the triggering inputs nearest to their seeds: both models' texts, "
    "without capitals and punctuation, each in its own search. A dash stands for an input whose "
    "length was changed, of which there is no SNR.",
    brief="Both models' texts of the triggering inputs nearest to their seeds:",
)

COSTS = Prose(
    "Means, and medians where it says so. A query of the search is one input given to both models, "
    "so one device query; with the seed and those that confirm the finding it is all that the "
    "device was given. Host queries are inputs given to the original alone, round trips the "
    "search's requests to the device. Seconds: as measured, and computed for a device that is so "
    "many milliseconds further away: the search's seconds and its round trips times the delay.",
    brief="Means; seconds computed for a longer way to the device, too.",
)

COSTS_FOUND = "Of the searches that found a triggering input:"

COSTS_SPENT = "Of all searches, with or without a triggering input:"

FALSE_ALARMS = Prose(
    "On these pairs the deployed model is an equal copy of the original, perhaps for another "
    "runtime, so that every triggering input, and every seed input that is a finding itself, is a "
    "false alarm. Seed inputs: those from which a search asked the device; never asked: those from "
    "which none did, which no bound counts. Bound: the one-sided 95 % upper confidence bound of "
    "the share of seed inputs with a false alarm (Clopper and Pearson 1934).",
    brief="On control pairs every finding is a false alarm; the bound is that of 95 % confidence:",
)

NOTHING_FOUND = "No search found a triggering input, so that there is nothing to describe."

TIME = Prose(
    "Search time without queueing, over the searches that found a triggering input. Found within: "
    "the success rate with a shorter timeout (the paper's section 6.2), read from each search's "
    "time; the limit on queries counts here, too. Times compare only between searches on the same "
    "devices.",
    brief="Search time, over the searches that found a triggering input:",
)

UNIQUENESS = Prose(
    "Unique: no other triggering input of the same repeat equals it, value by value (the paper's "
    "section 6.3). Seeds with a tie: seed inputs on which a model gives two labels the same "
    "highest probability.",
)

COMPARISON = Prose(
    "Paired by seed input, with the mean of its repeats. Success is compared by itself. Queries "
    "and seconds are those until a triggering input was found, compared by their ranks: a search "
    "that found nothing ranks above all others. In the ratio, the strategy's mean / the "
    "baseline's, it counts what it spent, so that it only describes.\n\n"
    "- p: paired permutation "
    "test of the mean difference, two-sided, of success that is McNemar's exact test; valid "
    "whatever the distribution. p (Holm): adjusted for the number of comparisons in the table. "
    "Verdict: what the strategy has or needs, more or less, where p (Holm) is at most 0.05.\n"
    "- "
    "Rank-biserial: correlation of matched pairs, above 0 where the strategy needs more; small "
    "from 0.1, medium from 0.3, large from 0.5 (Cohen 1988, for correlations).\n"
    "- A12: the "
    "probability that the strategy needs more than the baseline; small from 0.56, medium from "
    "0.64, large from 0.71, and as far below 0.5 where it needs less (Vargha and Delaney 2000).",
    brief="By seed input; queries and seconds are ratios of means, in which a search that found "
    "nothing counts what it spent, and p is of their ranks, with such a search above all others "
    "(permutation test, of success the exact one; adjusted by Holm):",
)

CORRELATIONS = Prose(
    "Pearson's correlation, over the pairs of a study, of x with the mean queries and with the "
    "mean seconds until a triggering input was found (the paper's section 5.4.1).",
    brief="Pearson's correlation of x with the means of each pair; these leave out searches that "
    "found nothing, where the lowest success is below 100 %:",
)

LEFT_OUT = (
    "The means are over the searches that found a triggering input. Where the lowest success is "
    "below 100 %, those that would have needed more are left out of them, and the correlation does "
    "not tell it."
)

HISTOGRAMS = (
    "How many seed inputs needed how many queries until a triggering input was found; a seed "
    "input's value is the mean of those of its repeats that found one (like the paper's figure 4). "
    "Where some found none, the mean differs a little from that of the table, which is over all "
    "searches alike."
)


FRONTS = (
    "How sure of different answers the searches made both models. Left: the smaller of both "
    "models' margins (top-1 less top-2 probability) against the device queries of the search; at "
    "each number of them, the median over all searches of the best found by then, 0, which is not "
    "seen, where that is nothing. Right: a dot for each search's triggering input, with its "
    "distance L2 to the seed; the large ones are the medians."
)


def quality(*, images: bool, audio: bool) -> Prose:
    """Return what the figures of triggering inputs mean, for images, audio, or both."""
    far = _OF_IMAGES if images or not audio else _OF_AUDIO
    of_audio = f"{_OF_AUDIO_TOO} {_SURE_OF_WORDS}" if images else _SURE_OF_WORDS
    about = f"Medians over the triggering inputs. {far} {_SURE}"
    return Prose(
        f"{about}\n\n{of_audio}" if audio else about, brief="Medians over the triggering inputs:"
    )


def query_limits(cells: Iterable[CellFigures]) -> list[str]:
    """Return a sentence for each limit on queries that strategies with published figures had."""
    stopped: dict[int, list[str]] = {}
    for cell in cells:
        if cell.published and cell.max_queries:
            names = stopped.setdefault(cell.max_queries, [])
            names += [cell.strategy] if cell.strategy not in names else []
    return [
        f"{', '.join(names)}: stopped at {queries:,} queries a search; the paper's runs were "
        "limited by time alone."
        for queries, names in stopped.items()
    ]


def files(folder: str) -> str:
    """Return which files the report comes with, and how to make it anew."""
    command = shlex.join(["edgeflare", "bench", "show", folder])
    return (
        f"{code(command)} makes this report anew. `bench.json` has every setting, "
        "`report.json` every figure, `summary.csv` one line for each pair and strategy, "
        "`searches.csv` one for each search."
    )


def environment(report: BenchReport) -> list[Block]:
    """Return the last part of the document."""
    return [
        Heading("How it was run", 2),
        Prose(_settings(report)),
        *_models(report),
        *_devices(report),
        *_versions(report),
        Prose(files(report.folder)),
    ]


def _settings(report: BenchReport) -> str:
    settings = report.settings
    queries, seconds = (
        _limit(settings["max_queries"], "queries"),
        _limit(settings["timeout_s"], "seconds"),
    )
    floor = settings["margin_floor"]
    limits = [
        f"suite {code(report.suite)}",
        f"at most {settings['seeds']} seed inputs of each pair",
        f"campaign seeds from {settings['seed']}, {settings['repeats']} in all",
        f"at most {queries} and {seconds} a search",
        f"margin floor {floor:g}" if floor else "no margin floor",
    ]
    rows = [
        f"- {plain(strategy['name'])}: {_strategy(strategy)}" for strategy in settings["strategies"]
    ]
    queries_in_all = ", ".join(
        f"{count:,} {plain(kind)}" for kind, count in report.queries.items() if count
    )
    return "\n".join(
        [
            *([f"- {code(report.command)}"] if report.command else []),
            f"- {'; '.join(limits)}; where a strategy has its own, it says so here",
            *rows,
            *map(_resolved, report.resolved),
            f"- queries in all: {queries_in_all or 'none'}",
        ]
    )


def _limit(value: float, unit: str) -> str:
    return f"{value:g} {unit}" if value else f"any number of {unit}"


def _strategy(strategy: Mapping[str, Any]) -> str:
    parts = [f"strategy {code(strategy['strategy'])}"]
    for name, value in (strategy.get("options") or {}).items():
        parts.append(code(f"{name} = {value}"))
    for name in ("operators", "seeds", "repeats", "max_queries", "timeout_s", "margin_floor"):
        value = strategy.get(name)
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        if value not in (None, ""):
            parts.append(f"{plain(name)} {plain(str(value))}")
    return ", ".join(parts)


def _resolved(one: ResolvedSearch) -> str:
    at_once = f", {one.candidates} candidates at once" if one.candidates > 1 else ""
    three = ", three classes tied" if one.tied_classes == 3 else ""
    where = f"{plain(one.strategy)} on {plain(one.pair)}"
    return f"- {where}: crossing {one.crossing}, effort {one.effort}{three}{at_once}"


def _models(report: BenchReport) -> list[Block]:
    rows = [
        _model(pair, side, models.get(side) or {})
        for pair, several in report.models.items()
        for side in ("original", "deployed")
        for models in several
    ]
    header = ["pair", "model", "file", "runtime", "SHA-256 begins"]
    rows = list(dict.fromkeys(rows))
    return [Heading("Models"), table_of(header, rows, text=len(header))] if rows else []


def _model(pair: str, side: str, model: Mapping[str, Any]) -> tuple[str, ...]:
    runtime = model.get("runtime") or {}
    version = f"{runtime.get('name', '')} {runtime.get('version', '')}"
    return pair, side, str(model.get("name", NOTHING)), version, str(model.get("sha256", ""))[:16]


def _devices(report: BenchReport) -> list[Block]:
    blocks: list[Block] = [Heading("Devices")] if report.devices else []
    for device in report.devices:
        texts = ((name, _text(name, value)) for name, value in device.fingerprint.items())
        items = tuple(Item(f"{name}: {text}") for name, text in texts if text)
        blocks += [Text(", ".join(device.names), "strong"), Listing(items)]
    return blocks


def _text(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(key, part)}" for key, part in value.items())
    words = value if isinstance(value, list | tuple) else str(value).split()
    if name == "cpu_flags":
        return f"{len(words)} of them, in report.json"
    return " ".join(map(str, words))


def _versions(report: BenchReport) -> list[Block]:
    items = tuple(
        Item(", ".join(f"{name} {value}" for name, value in one.items()))
        for one in report.environments
    )
    return [Heading("Host"), Listing(items)] if items else []
