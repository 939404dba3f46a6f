"""Sentences of a ranking."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgeflare._internal.text import counted, margin_text, p_text, percent_text
from edgeflare.analysis.ranking.paired_tests import TIE, Duel
from edgeflare.analysis.ranking.scores import Accuracy
from edgeflare.answers import SCORES, AnswerKind

_SHARED_PLACES_SHOWN = 3
_TOO_FEW_SHOWN = 3
_MEANS = {
    "severity": "the smaller of both models' margins",
    "queries": "those up to the first trigger, with a search that found none above all others",
}


def _means(measure: str, kind: AnswerKind[Any]) -> str:
    return kind.disagreement if measure == "disagreement" else _MEANS[measure]


def verdict(
    order: Sequence[str],
    duels: Sequence[Duel],
    measure: str,
    seeds: int,
    *,
    kind: AnswerKind[Any] = SCORES,
) -> str:
    """Return who is hardest to make deviate, who ties with it, and by how much others are easier.

    `kind`: that of the candidates' answers.
    """
    means = _means(measure, kind)
    first, *others = order
    of_first = {duel.second: duel for duel in duels if duel.first == first}
    tied = [name for name in others if of_first[name].verdict == TIE]
    cannot_tell = f"{counted(seeds, 'seed')} {'does' if seeds == 1 else 'do'}n't tell"
    if len(tied) == len(others):
        apart = f"A tie: {cannot_tell} {_listed(order)} apart by {measure} ({means})."
        return " ".join([apart, *(too_few_seeds(duels, seeds) if len(duels) == 1 else ())])
    if len(duels) == 1:
        return f"Of the two, {compared(duels[0], measure, first, kind=kind)}"
    ties = f"; it ties with {_listed(tied)} ({cannot_tell} them apart)" if tied else ""
    sentences = [f"Hardest to make deviate is {first}{ties}."]
    explained = f"{measure} ({means})"
    for name in (one for one in others if one not in tied):
        sentences.append(f"Easier is {name}: {_gap(of_first[name], explained, harder=False)}.")
        explained = measure
    return " ".join(sentences)


def compared(duel: Duel, measure: str, name: str, *, kind: AnswerKind[Any] = SCORES) -> str:
    """Return how the candidate `name` compares with the other one, in a duel that is no tie."""
    other = duel.second if name == duel.first else duel.first
    harder = duel.verdict == name
    means = _means(measure, kind)
    gap = _gap(duel, f"{measure} ({means})", harder=harder)
    return f"{name} is {'harder' if harder else 'easier'} to make deviate than {other}: {gap}."


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


def too_few_seeds(duels: Sequence[Duel], seeds: int) -> Iterator[str]:
    """Yield a sentence for every tie that is one because too few seeds differ."""
    needed = duels[0].needed
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


def accuracy_verdict(
    accuracies: Mapping[str, Accuracy | None],
    original: Accuracy | None,
    duels: Sequence[Duel],
    distinguished: int,
    measure: str,
) -> str | None:
    """Return how well accuracy distinguishes the candidates; None where no seed is labelled."""
    known = [one for one in accuracies.values() if one is not None]
    if original is None or not known:
        return None
    span = _span([one.rate for one in known])
    words = (
        f"Accuracy on {original.labelled} labelled seeds ({span}; the original "
        f"{percent_text(original.rate)})"
    )
    return _distinguishes(words, duels, distinguished, measure)


def success_verdict(
    found: Mapping[str, Sequence[float]], duels: Sequence[Duel], distinguished: int
) -> str:
    """Return how well success distinguishes candidates that are ranked by queries; `found` is the
    share of each seed's searches."""
    span = _span([sum(of) / len(of) for of in found.values()])
    words = f"Success, whether anything was found ({span} of the searches; exact test),"
    return _distinguishes(words, duels, distinguished, "queries")


def _span(rates: Sequence[float]) -> str:
    least, most = percent_text(min(rates)), percent_text(max(rates))
    return least if least == most else f"{least} to {most}"


def _distinguishes(words: str, duels: Sequence[Duel], distinguished: int, measure: str) -> str:
    """Return whether what `words` describe distinguishes candidates, and whether `measure` does."""
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


def shared_places(
    order: Sequence[str], places: Mapping[str, int], duels: Sequence[Duel]
) -> Iterator[str]:
    """Yield a sentence for candidates that share a place through others without a tie."""
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


def differences(measure: str, *, kind: AnswerKind[Any] = SCORES) -> tuple[str, ...]:
    """Return where a ranking is not the paper's comparison."""
    paper = (
        "Section 5.4.2 of the DFLARE paper compares the mean queries of the searches that found a "
        "trigger"
    )
    if measure == "queries":
        queries = (
            f"{paper}; ranked here are the queries of all searches: a seed on which the models "
            "differ before it is changed counts as 0 queries, and a search that found nothing as "
            "more than any that found something, however early it ended. In the mean it counts as "
            "max_queries, which says little of how many it would have needed."
        )
        return (queries,)
    at = "the most severe trigger within the device budget"
    if not kind.takes_device_budget:
        at = "the trigger"
    ranked = (
        f"{paper}; ranked here is {measure}, {_means(measure, kind)}, at "
        f"{at} (0 where there is none). Where the models differ on a seed before it is changed, "
        "the seed itself is that trigger."
    )
    return (ranked,)


def _listed(names: Sequence[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
