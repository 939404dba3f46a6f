"""Whether a model got worse since the last green night."""

from collections.abc import Sequence
from pathlib import Path

from edgeflare.analysis.kinds import transcribes
from edgeflare.analysis.limits import check_limits
from edgeflare.analysis.ranking import rank_campaigns
from edgeflare.analysis.ranking_duels import TIE
from edgeflare.analysis.ranking_words import compared
from edgeflare.analysis.replayed import ReplaySummary
from edgeflare.nightly.night import Check
from edgeflare.store import Store

_SHOWN = 3
_BROKEN = {"nonfinite": "give NaN or infinity", "failed": "get no answer from the device"}
_TONIGHT = "tonight's model"


def search_checks(campaign: Path) -> list[Check]:
    """Check a night's search against the campaign's own limits."""
    return [
        Check(part="search", name=one.name, words=one.words, crossed=one.crossed)
        for one in check_limits(campaign)
        if one.checked
    ]


def replay_checks(replays: Sequence[ReplaySummary], at_most: int, since: str) -> list[Check]:
    """Check for inputs that deviate and did not in the last green night, that of the day `since`.

    Those on which the models agreed and that give no finite answer now, or none, are a regression, too.
    """
    inputs = [one for replay in replays for one in replay.inputs]
    new = [one.id for one in inputs if one.state == "new"]
    checks = [
        Check(
            part="replay",
            name="max_new_triggers",
            words=f"{len(new)} of {len(inputs)} inputs sent again deviate and did not in the last green night "
            f"({since}), at most {at_most} may{_names(new)}",
            crossed=len(new) > at_most,
        )
    ]
    for state, what in _BROKEN.items():
        broken = [one.id for one in inputs if one.state == state and not one.deviated]
        if broken:
            words = f"{len(broken)} of {len(inputs)} inputs sent again {what} now{_names(broken)}"
            checks.append(Check(part="replay", name=state, words=words, crossed=True))
    return checks


def comparison_check(last_green: Path, tonight: Path, since: str) -> Check:
    """Compare the searches of the last green night, that of the day `since`, and of this one seed by seed.

    Raises what `rank_campaigns` does.
    """
    green = f"the last green night's ({since})"
    ranking = rank_campaigns([last_green, tonight], names=[green, _TONIGHT])
    (duel,) = ranking.duels
    words = ranking.verdict
    if duel.verdict != TIE:
        with Store.open(tonight) as store:
            of_words = transcribes(store)
        words = compared(duel, ranking.measure, _TONIGHT, of_words=of_words)
    return Check(
        part="comparison",
        name=ranking.measure,
        words=f"{words[0].upper()}{words[1:]}",
        crossed=duel.verdict == green,
    )


def _names(ids: Sequence[str]) -> str:
    if not ids:
        return ""
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f": {', '.join(ids[:_SHOWN])}{more}"
