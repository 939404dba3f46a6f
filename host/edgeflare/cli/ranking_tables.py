"""A ranking of candidates, as tables on stdout or as one JSON object."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from edgeflare import Ranking
from edgeflare.analysis import (
    Accuracy,
    Duel,
    Estimate,
    RankedModel,
    margin_text,
    number_text,
    p_value_text,
    percent_text,
)
from edgeflare.cli.columns import Column, fitted
from edgeflare.cli.tables import print_json

_NOTHING = "-"
_DUELS_SHOWN = 45
_P_MEANS = (
    "what decides is p, of the paired permutation test (how likely so great a difference is by chance): a tie where it "
    "is above"
)


def print_ranking(
    ranking: Ranking, as_json: bool, *, failed: Mapping[str, str], folder: Path | None = None
) -> None:
    """Print who is hardest to make deviate; `failed` says why candidates could not be run."""
    if as_json:
        told = {"failed": dict(failed), "folder": None if folder is None else str(folder)}
        print_json(ranking.to_json() | told)
        return
    console = Console(highlight=False)
    console.print(f"[bold]{escape(ranking.verdict)}[/]", soft_wrap=True)
    if ranking.accuracy_verdict:
        console.print(escape(ranking.accuracy_verdict), soft_wrap=True)
    if ranking.success_verdict:
        console.print(escape(ranking.success_verdict), soft_wrap=True)
    console.print(
        f"\n{ranking.seeds} seeds that all have finished; approximate intervals of "
        f"{percent_text(ranking.level)}, accuracy's of 95 %; queries are those of the searches that found a trigger:",
        soft_wrap=True,
    )
    console.print(fitted(_candidates(ranking), ranking.candidates, console))
    for name, why in failed.items():
        console.print(escape(f"not ranked: {name}: {why}"), soft_wrap=True)
    if len(ranking.duels) <= _DUELS_SHOWN:
        level = percent_text(ranking.duels[0].level, 2)
        console.print(
            f"Seed by seed, the first less the second; each approximate interval of {level}; {_P_MEANS} "
            f"{number_text(1 - ranking.duels[0].level, 4)}, so that all verdicts together have "
            f"{percent_text(ranking.level)}:",
            soft_wrap=True,
        )
        console.print(fitted(_pairs(ranking), ranking.duels, console))
    for sentence in ranking.notes:
        console.print(f"[yellow]note:[/] {escape(sentence)}", soft_wrap=True)
    for sentence in ranking.differences:
        console.print(escape(f"Differences: {sentence}"), soft_wrap=True)


def _candidates(ranking: Ranking) -> tuple[Column, ...]:
    ties = {
        name: sum(
            duel.verdict == "tie" and name in (duel.first, duel.second) for duel in ranking.duels
        )
        for name in (one.name for one in ranking.candidates)
    }
    value = _counted if ranking.measure == "queries" else _share
    measured = "queries counted" if ranking.measure == "queries" else ranking.measure
    return (
        Column("place", 0, lambda one: str(one.place)),
        Column("candidate", 0, lambda one: one.name, text=True),
        *(
            (Column("mean rank", 0, lambda one: _number(one.mean_rank, 1)),)
            if ranking.measure == "queries"
            else ()
        ),
        Column(measured, 0, lambda one: value(one.value)),
        Column("ties with", 9, lambda one: str(ties[one.name])),
        Column("accuracy", 10, lambda one: _accuracy(one.figures.accuracy)),
        Column("deviating seeds", 8, lambda one: str(one.figures.seed_deviates)),
        Column("success", 5, _rate),
        Column("queries", 7, lambda one: _counted(one.figures.queries)),
        Column("median", 4, lambda one: _counted(one.figures.queries_median)),
        Column("L2", 3, lambda one: _number(one.figures.l2, 2)),
        Column("size", 6, lambda one: _bytes(one.size)),
        Column("ms", 6, lambda one: _milliseconds(one.figures.seconds_per_inference)),
    )


def _rate(one: RankedModel) -> str:
    rate = one.figures.success_rate
    return _NOTHING if rate is None else percent_text(rate)


def _share(estimate: Estimate) -> str:
    return (
        f"{margin_text(estimate.value)} [{margin_text(estimate.low)}, {margin_text(estimate.high)}]"
    )


def _counted(estimate: Estimate | None) -> str:
    if estimate is None:
        return _NOTHING
    value, low, high = (
        number_text(one, 1) for one in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} [{low}, {high}]"


def _accuracy(accuracy: Accuracy | None) -> str:
    if accuracy is None:
        return _NOTHING
    ends = f"{percent_text(accuracy.low)}, {percent_text(accuracy.high)}"
    return f"{percent_text(accuracy.rate)} [{ends}]"


def _number(value: float | None, digits: int) -> str:
    return _NOTHING if value is None else number_text(value, digits)


def _bytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def _milliseconds(seconds: float | None) -> str:
    return _NOTHING if seconds is None else f"{1000 * seconds:.3g}"


def _gap(duel: Duel) -> str:
    return f"{duel.difference:+.3f} [{duel.interval[0]:+.3f}, {duel.interval[1]:+.3f}]"


def _gap_in_queries(duel: Duel) -> str:
    return f"{duel.difference:+.1f} [{duel.interval[0]:+.1f}, {duel.interval[1]:+.1f}]"


def _verdict(duel: Duel) -> str:
    return f"{duel.verdict}, too few seeds" if duel.too_few else duel.verdict


def _pairs(ranking: Ranking) -> tuple[Column, ...]:
    gap = _gap_in_queries if ranking.measure == "queries" else _gap
    success = {(duel.first, duel.second): duel for duel in ranking.success}

    def of_success(duel: Duel) -> str:
        other = success[duel.first, duel.second]
        return f"{p_value_text(other.p)} {other.verdict}"

    return (
        Column("first", 0, lambda duel: duel.first, text=True),
        Column("second", 0, lambda duel: duel.second, text=True),
        Column(f"difference in {ranking.measure}", 0, gap),
        Column("p", 0, lambda duel: p_value_text(duel.p)),
        Column("harder to make deviate", 0, _verdict, text=True),
        *((Column("by success (p)", 5, of_success, text=True),) if success else ()),
    )
