"""A bench's report in sentences: how far it is, what its tables mean, what doesn't fit together."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from edgeflare.devices.fingerprints import differences
from edgeflare.document import Prose
from edgeflare.reports.document import code, plain

if TYPE_CHECKING:
    from edgeflare_bench.cell_figures import CellFigures
    from edgeflare_bench.cells import Cell
    from edgeflare_bench.report import BenchReport, ResolvedSearch
    from edgeflare_bench.searches import CellRecords

_Group: TypeAlias = "Mapping[Cell, CellRecords]"
_FIELDS_SHOWN = 5

UNFINISHED = (
    "{} is not finished: of its searches those that end first are the quick ones, so that the {:,} "
    "so far are not counted"
)
NO_BASELINE = "without the baseline {} nothing can be compared with it"
REPORT_ERRORS = {
    "untouched": "the bench itself",
    "again": "run `edgeflare bench show` again",
    "instead": "check its permissions",
}
"""What `translate_write_errors` says of a report's files."""

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


def query_limits(cells: "Sequence[CellFigures]") -> list[str]:
    """Return a sentence for each limit on queries that strategies with published figures had."""
    stopped: dict[int, dict[str, None]] = {}
    for cell in cells:
        if cell.published and cell.max_queries:
            stopped.setdefault(cell.max_queries, {})[cell.strategy] = None
    return [
        f"{', '.join(names)}: stopped at {queries:,} queries a search; the paper's runs were "
        "limited by time alone."
        for queries, names in stopped.items()
    ]


def state(report: "BenchReport") -> str:
    """Return how far the bench is."""
    done, left = len(report.finished), len(report.unfinished) + len(report.missing)
    total = done + left + len(report.failed)
    searches = f"{len(report.searches):,} searches"
    if done == total:
        return f"{searches} in {total} cells: the bench is finished."
    parts = [f"of {total} cells {done} finished"]
    if left:
        parts.append(f"{left} not finished")
    if report.failed:
        parts.append(f"{len(report.failed)} can't be run")
    return f"{searches} so far; {', '.join(parts)} (see the end)."


def unfinished(report: "BenchReport") -> list[str]:
    """Return a line for each cell that is not finished."""
    begun = "interrupted, its searches so far are not counted above"
    return [
        *(f"{name}: {begun}" for name in report.unfinished),
        *(f"{name}: not begun" for name in report.missing),
    ]


def resume_command(folder: object) -> str:
    """Return the command that goes on with a bench."""
    return shlex.join(["edgeflare", "bench", "resume", str(folder)])


def files(folder: str) -> str:
    """Return which files the report comes with, and how to make it anew."""
    command = shlex.join(["edgeflare", "bench", "show", folder])
    return (
        f"{code(command)} makes this report anew. `bench.json` has every setting, "
        "`report.json` every figure, `summary.csv` one line for each pair and strategy, "
        "`searches.csv` one for each search."
    )


def other_models(pair: str, groups: Sequence[_Group]) -> str:
    """Return which cells of a pair, in groups, the largest first, had which other models."""
    return _apart(pair, "with the same models", groups, _models)


def other_devices(pair: str, groups: Sequence[_Group]) -> str:
    """Return which cells of a pair, in groups, the largest first, ran on which other devices."""
    return _apart(pair, "on the same devices", groups, _devices)


def _apart(
    pair: str,
    how: str,
    groups: Sequence[_Group],
    describe: "Callable[[CellRecords, CellRecords], str]",
) -> str:
    most, *others = groups
    usual = next(iter(most.values()))
    parts = [
        f"{', '.join(cell.name for cell in group)} {describe(next(iter(group.values())), usual)}"
        for group in others
    ]
    rest = f"{len(most)} others" if len(most) > 1 else next(iter(most)).name
    parts.append(f"{rest} {describe(usual, next(iter(others[0].values())))}")
    return (
        f"the cells of {pair} were not all run {how}, so that their figures don't belong together: "
        + "; ".join(parts)
    )


def _models(records: "CellRecords", other: "CellRecords") -> str:
    """Return the models that differ from the other cell's."""
    named = []
    for side in ("original", "deployed"):
        model, its = records.model(side), other.model(side)
        if model.get("sha256") != its.get("sha256"):
            name, start = model.get("name", "unknown"), str(model.get("sha256", ""))[:16]
            named.append(f"{side} {name}, SHA-256 {start}")
    return f"({'; '.join(named)})"


def _devices(records: "CellRecords", other: "CellRecords") -> str:
    """Return the devices, with their differences from the other cell's."""
    named = {device.name: device for device in other.devices}
    like = {device.digest for device in other.devices}
    parts = []
    for device in records.devices:
        fields = []
        if device.digest not in like:
            before = named.get(device.name, other.devices[0])
            changed = differences(before.fingerprint, device.fingerprint)
            fields = [f"{name} {value}" for name, _, value in changed[:_FIELDS_SHOWN]]
        parts.append(f"{device.name}{' with ' if fields else ''}{', '.join(fields)}")
    return f"(on {'; '.join(parts)})"


def settings(report: "BenchReport") -> str:
    """Return how the bench was run, as a list in Markdown: its command, limits, strategies, queries."""
    stated = report.settings
    floor = stated["margin_floor"]
    spent = (_limit(stated["max_queries"], "queries"), _limit(stated["timeout_s"], "seconds"))
    limits = [
        f"suite {code(report.suite)}",
        f"at most {stated['seeds']} seed inputs of each pair",
        f"campaign seeds from {stated['seed']}, {stated['repeats']} in all",
        f"at most {' and '.join(spent)} a search",
        f"margin floor {floor:g}" if floor else "no margin floor",
    ]
    queries = ", ".join(
        f"{count:,} {plain(kind)}" for kind, count in report.queries.items() if count
    )
    lines = [
        *([code(report.command)] if report.command else []),
        f"{'; '.join(limits)}; where a strategy has its own, it says so here",
        *(f"{plain(one['name'])}: {_strategy(one)}" for one in stated["strategies"]),
        *map(_resolved, report.resolved),
        f"queries in all: {queries or 'none'}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _limit(value: float, unit: str) -> str:
    return f"{value:g} {unit}" if value else f"any number of {unit}"


def _strategy(strategy: Mapping[str, Any]) -> str:
    parts = [f"strategy {code(strategy['strategy'])}"]
    parts += [code(f"{name} = {value}") for name, value in (strategy.get("options") or {}).items()]
    for name in ("operators", "seeds", "repeats", "max_queries", "timeout_s", "margin_floor"):
        value = strategy.get(name)
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        if value not in (None, ""):
            parts.append(f"{plain(name)} {plain(str(value))}")
    return ", ".join(parts)


def _resolved(one: "ResolvedSearch") -> str:
    at_once = f", {one.candidates} candidates at once" if one.candidates > 1 else ""
    three = ", three classes tied" if one.tied_classes == 3 else ""
    where = f"{plain(one.strategy)} on {plain(one.pair)}"
    return f"{where}: crossing {one.crossing}, effort {one.effort}{three}{at_once}"
