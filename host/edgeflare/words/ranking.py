"""A ranking of candidates in sentences."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgeflare._internal.text import counted, margin_text, p_text, percent_text
from edgeflare.analysis.ranking.paired_tests import TIE, Duel
from edgeflare.analysis.ranking.ranking import Ranking, RemarkCode
from edgeflare.answers import AnswerKind
from edgeflare.campaign.comparison import Measure

_SHARED_PLACES_SHOWN = 3
_TOO_FEW_SHOWN = 3
_MEANS = {
    "severity": "the smaller of both models' margins",
    "queries": "those up to the first trigger, with a search that found none above all others",
}


def ranking_verdict(ranking: Ranking) -> str:
    """Return who is hardest to make deviate, who ties with it, and by how much others are easier."""
    duels, seeds = ranking.duels, ranking.seeds
    first, *others = order = [one.name for one in ranking.candidates]
    of_first = {duel.second: duel for duel in duels if duel.first == first}
    tied = [name for name in others if of_first[name].verdict == TIE]
    explained = measure_text(ranking.measure, ranking.kind)
    if len(duels) == 1:
        return f"{'' if tied else 'Of the two, '}{pair_verdict(duels[0], explained, first)}"
    if len(tied) == len(others):
        return _tie(order, explained, seeds)
    ties = f"; it ties with {_listed(tied)} ({_cannot_tell(seeds)} them apart)" if tied else ""
    sentences = [f"Hardest to make deviate is {first}{ties}."]
    for name in (one for one in others if one not in tied):
        sentences.append(f"Easier is {name}: {_gap(of_first[name], explained, harder=False)}.")
        explained = ranking.measure
    return " ".join(sentences)


def pair_verdict(duel: Duel, measure: str, name: str) -> str:
    """Return how the candidate `name` compares with the other one, by a `measure_text`."""
    if duel.verdict == TIE:
        apart = _tie([duel.first, duel.second], measure, duel.seeds)
        return " ".join([apart, *_too_few_seeds([duel])])
    other = duel.second if name == duel.first else duel.first
    harder = duel.verdict == name
    gap = _gap(duel, measure, harder=harder)
    return f"{name} is {'harder' if harder else 'easier'} to make deviate than {other}: {gap}."


def measure_text(measure: Measure, kind: AnswerKind[Any]) -> str:
    """Return a measure with what it means of this kind of answers."""
    return f"{measure} ({_means(measure, kind)})"


def _tie(names: Sequence[str], measure: str, seeds: int) -> str:
    return f"A tie: {_cannot_tell(seeds)} {_listed(names)} apart by {measure}."


def _cannot_tell(seeds: int) -> str:
    return f"{counted(seeds, 'seed')} {'does' if seeds == 1 else 'do'}n't tell"


def success_verdict(ranking: Ranking) -> str | None:
    """Return how well success tells the candidates apart; None unless they are ranked by queries."""
    if ranking.measure != "queries":
        return None
    span = _span(list(ranking.success_rates.values()))
    words = f"Success, whether anything was found ({span} of the searches; exact test),"
    return _distinguishes(words, ranking.success, ranking)


def accuracy_verdict(ranking: Ranking) -> str | None:
    """Return how well accuracy tells the candidates apart; None where no seed is labelled."""
    accuracies = [one.figures.accuracy for one in ranking.candidates]
    rates = [accuracy.rate for accuracy in accuracies if accuracy is not None]
    if ranking.original is None or not rates:
        return None
    words = (
        f"Accuracy on {ranking.original.labelled} labelled seeds ({_span(rates)}; the original "
        f"{percent_text(ranking.original.rate)})"
    )
    return _distinguishes(words, ranking.accuracy, ranking)


def ranking_differences(ranking: Ranking) -> tuple[str, ...]:
    """Return where a ranking is not the paper's comparison."""
    paper = (
        "Section 5.4.2 of the DFLARE paper compares the mean queries of the searches that found a "
        "trigger"
    )
    if ranking.measure == "queries":
        queries = (
            f"{paper}; ranked here are the queries of all searches: a seed on which the models "
            "differ before it is changed counts as 0 queries, and a search that found nothing as "
            "more than any that found something, however early it ended. In the mean it counts as "
            "max_queries, which says little of how many it would have needed."
        )
        return (queries,)
    at = "the most severe trigger within the device budget"
    if not ranking.kind.takes_device_budget:
        at = "the trigger"
    ranked = (
        f"{paper}; ranked here is {ranking.measure}, {_means(ranking.measure, ranking.kind)}, at "
        f"{at} (0 where there is none). Where the models differ on a seed before it is changed, "
        "the seed itself is that trigger."
    )
    return (ranked,)


def ranking_notes(ranking: Ranking) -> tuple[str, ...]:
    """Return what is to be kept in mind about a ranking, a sentence each."""
    remarks = (
        _REMARKS[one.code].format(" and ".join(one.names), one=one) for one in ranking.remarks
    )
    return (*remarks, *unclear_places(ranking))


def unclear_places(ranking: Ranking) -> tuple[str, ...]:
    """Return the notes on ties and places that need a word."""
    too_few = _too_few_seeds(ranking.duels) if len(ranking.duels) > 1 else ()
    return (*too_few, *_shared_places(ranking))


def _means(measure: Measure, kind: AnswerKind[Any]) -> str:
    return kind.report_words.distance if measure == "disagreement" else _MEANS[measure]


def _gap(duel: Duel, measure: str, *, harder: bool) -> str:
    """Return the difference of a duel with its interval, or on how many seeds it shows."""
    if measure.startswith("queries"):
        lower = duel.differing - duel.higher
        mine, its = sorted((duel.higher, lower), reverse=harder)
        seeds = f"{mine} of {duel.seeds} seeds, {'fewer' if harder else 'more'} on {its}"
        return f"{'more' if harder else 'fewer'} {measure} on {seeds} ({p_text(duel.p)})"
    low, high = sorted(math.copysign(1, duel.difference) * end for end in duel.interval)
    ends = f"[{margin_text(low)}, {margin_text(high)}]"
    gap = f"{measure} {margin_text(abs(duel.difference))} {'lower' if harder else 'higher'}"
    return f"{gap} {ends} ({p_text(duel.p)})"


def _too_few_seeds(duels: Sequence[Duel]) -> Iterator[str]:
    """Yield a sentence for every tie that is one because too few seeds differ."""
    needed, seeds = duels[0].needed, duels[0].seeds
    if seeds < needed:
        yield (
            f"A verdict at this confidence needs {needed} seeds at least on which two candidates "
            f"differ, and {'there is' if seeds == 1 else 'there are'} {seeds}: compare with more."
        )
        return
    found = [duel for duel in duels if duel.too_few]
    for duel in found[:_TOO_FEW_SHOWN]:
        yield (
            f"Too few seeds differ between {duel.first} and {duel.second}: {duel.differing} of "
            f"{seeds}, and a verdict at this confidence needs {needed}; so it is a tie, though all "
            "that differ do so in one direction."
        )
    more = len(found) - _TOO_FEW_SHOWN
    if more > 0:
        yield f"The same holds for {counted(more, 'more pair')}."


def _span(rates: Sequence[float]) -> str:
    least, most = percent_text(min(rates)), percent_text(max(rates))
    return least if least == most else f"{least} to {most}"


def _distinguishes(words: str, duels: Sequence[Duel], ranking: Ranking) -> str:
    """Return whether what `words` describe tells candidates apart, and whether the measure does."""
    measure = ranking.measure
    distinguished = sum(duel.verdict != TIE for duel in ranking.duels)
    apart, pairs = sum(duel.verdict != TIE for duel in duels), len(duels)
    if pairs > 1:
        return (
            f"{words} can tell {apart or 'none'} of the {pairs} pairs apart; {measure} can tell "
            f"{distinguished or 'none'}."
        )
    if apart:
        contrast = f", and so can {measure}" if distinguished else f"; {measure} can't"
        return f"{words} can tell the two apart{contrast}."
    contrast = f"; {measure} can" if distinguished else f", nor can {measure}"
    return f"{words} can't tell the two apart{contrast}."


def _shared_places(ranking: Ranking) -> Iterator[str]:
    """Yield a sentence for candidates that share a place through others without a tie."""
    places = {one.name: one.place for one in ranking.candidates}
    order, duels = list(places), ranking.duels
    apart = [
        duel for duel in duels if duel.verdict != TIE and places[duel.first] == places[duel.second]
    ]
    for duel in apart[:_SHARED_PLACES_SHOWN]:
        other = duel.second if duel.verdict == duel.first else duel.first
        between = order[order.index(duel.first) + 1 : order.index(duel.second)]
        yield (
            f"Place {places[duel.first]} is shared by {duel.first} and {duel.second} because each "
            f"ties with a neighbour ({_listed(between)}), but they do not tie themselves: "
            f"{duel.verdict} is harder to make deviate than {other}."
        )


_REMARKS: Mapping[RemarkCode, str] = {
    "seeds-differ": "The campaigns were run with different seeds (search.seed), so that chance "
    "differs, too.",
    "devices-differ": "The campaigns did not run on the same devices: what differs may be the "
    "device's doing.",
    "unfinished": "{0} is not finished ({one.number} of {one.total} seeds): only seeds that all "
    "candidates have finished are compared.",
    "unanswered": "{0} gave no answer, or none that repeats, on {one.number} of its seeds: they are "
    "left out for all candidates.",
    "timeouts": "{one.number} searches of {0} were ended by the clock (timeout_s), so that its "
    "figures depend on how fast the device is; `--timeout 0` limits by queries alone.",
    "same-file": "{0} are the same file.",
    "original": "Candidate {0} is the original itself, the same file: no candidate can do better.",
    "like-original": "Candidate {0} answers every seed as the original does and has no trigger: it "
    "may be the original in another file.",
}
"""What is said of each remark, about the candidates {0}."""


def _listed(names: Sequence[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
