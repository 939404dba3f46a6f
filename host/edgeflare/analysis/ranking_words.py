"""What a ranking says, in sentences."""

from collections.abc import Iterator, Mapping, Sequence

from edgeflare.analysis.ranking_duels import TIE, Duel
from edgeflare.analysis.ranking_models import Accuracy
from edgeflare.analysis.words import margin_text, number_text, percent_text

_NOT_HANDED_ON_SHOWN = 3


def verdict(order: Sequence[str], duels: Sequence[Duel], measure: str, seeds: int) -> str:
    """Return who is hardest to make deviate, who ties with that one, and by how much others are easier."""
    first, *others = order
    of_first = {duel.second: duel for duel in duels if duel.first == first}
    tied = [name for name in others if of_first[name].verdict == TIE]
    apart = f"{seeds} seed{'' if seeds == 1 else 's'} {'does' if seeds == 1 else 'do'}n't tell them apart"
    if len(tied) == len(others):
        return f"{_listed([first, *tied])} tie: {apart} by {measure}."
    sentences = [f"{first} is hardest to make deviate."]
    if tied:
        sentences = [f"{first} is hardest to make deviate; it ties with {_listed(tied)} ({apart})."]
    sentences += [
        f"{name} is easier: {_gap(of_first[name], measure)}." for name in others if name not in tied
    ]
    return " ".join(sentences)


def _gap(duel: Duel, measure: str) -> str:
    """Return how far the second is from the first, with the interval of that."""
    low, high = sorted(abs(end) for end in duel.interval)
    if measure == "queries":
        return f"{number_text(abs(duel.difference), 1)} queries fewer [{number_text(low, 1)}, {number_text(high, 1)}]"
    gap = margin_text(abs(duel.difference))
    return f"{measure} {gap} higher [{margin_text(low)}, {margin_text(high)}]"


def accuracy_verdict(
    accuracies: Mapping[str, Accuracy | None],
    original: Accuracy | None,
    duels: Sequence[Duel],
    told_apart: int,
    measure: str,
) -> str | None:
    """Return what accuracy says of the same candidates; None where no seed is labelled."""
    known = [one for one in accuracies.values() if one is not None]
    if original is None or not known:
        return None
    rates = sorted(one.rate for one in known)
    span = f"{percent_text(rates[0])} to {percent_text(rates[-1])}"
    if rates[0] == rates[-1]:
        span = percent_text(rates[0])
    words = f"Accuracy on {original.labelled} labelled seeds ({span}; the original {percent_text(original.rate)})"
    apart = sum(duel.verdict != TIE for duel in duels)
    if not apart:
        contrast = (
            f", {measure} {_of_pairs(told_apart, len(duels))}"
            if told_apart
            else ", nor does " + measure
        )
        return f"{words} tells no two of them apart{contrast}."
    return f"{words} tells {_of_pairs(apart, len(duels))} apart, {measure} {_of_pairs(told_apart, len(duels))}."


def _of_pairs(count: int, total: int) -> str:
    return f"{count} of {total} pair{'' if total == 1 else 's'}"


def shared_places(
    order: Sequence[str], places: Mapping[str, int], duels: Sequence[Duel]
) -> Iterator[str]:
    """Give a sentence for candidates that share a place through others and don't tie themselves."""
    apart = [
        duel for duel in duels if duel.verdict != TIE and places[duel.first] == places[duel.second]
    ]
    for duel in apart[:_NOT_HANDED_ON_SHOWN]:
        other = duel.second if duel.verdict == duel.first else duel.first
        between = order[order.index(duel.first) + 1 : order.index(duel.second)]
        yield (
            f"{duel.first} and {duel.second} share place {places[duel.first]} because each ties with a neighbour "
            f"({_listed(between)}), but they do not tie themselves: {duel.verdict} is harder to make deviate "
            f"than {other}."
        )


def differences(measure: str) -> tuple[str, ...]:
    """Return where a ranking is not the paper's comparison."""
    paper = "Section 5.4.2 compares the mean queries of the searches that found a trigger"
    if measure == "queries":
        counted = (
            f"{paper}; here a seed on which the models differ as it is counts as 0 queries and a search that "
            "found nothing as max_queries, so that failing naturally is no merit and resisting is."
        )
        return (counted,)
    of_trigger = {
        "disagreement": "the share of probability that both models put on different classes",
        "severity": "the smaller of both models' margins",
    }[measure]
    ranked = (
        f"{paper}; ranked here is {measure}, {of_trigger} at the most severe trigger within the device budget "
        "(0 where there is none). A seed on which the models differ as it is counts with its own."
    )
    return (ranked,)


def _listed(names: Sequence[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
