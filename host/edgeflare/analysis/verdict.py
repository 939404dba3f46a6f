"""A campaign's result in one sentence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgeflare.analysis.summary import Summary
from edgeflare.analysis.words import percent_text

if TYPE_CHECKING:
    from edgeflare.analysis.limits import LimitCheck
    from edgeflare.analysis.replayed import ReplaySummary
    from edgeflare.campaign.replay_states import ReplayState


_STATES: "dict[ReplayState, str]" = {
    "new": "deviate and did not before",
    "still": "still deviate",
    "fixed": "are fixed",
    "agrees": "agree as before",
    "unstable": "are unstable",
    "nonfinite": "give NaN or infinity",
    "failed": "can't be answered",
}


def verdict(
    summary: Summary,
    limits: "Sequence[LimitCheck]" = (),
    replay: "ReplaySummary | None" = None,
) -> str:
    """Return what came out: whether the limits are kept, where there are any, and how much was found."""
    found = _found(summary) if replay is None else _replayed(replay)
    checked = [one for one in limits if one.checked]
    crossed = sum(one.crossed for one in checked)
    if not checked:
        return found
    if len(checked) == 1:
        return f"The limit is {'crossed' if crossed else 'kept'}: {found}"
    if not crossed:
        return f"All {len(checked)} limits are kept: {found}"
    return f"{crossed} of {len(checked)} limits {'is' if crossed == 1 else 'are'} crossed: {found}"


def _found(summary: Summary) -> str:
    parts = []
    if summary.searched:
        searches = "searches" if summary.replicas else "seed inputs searched"
        rate = percent_text(summary.success_rate)
        parts.append(
            f"a triggering input was found from {summary.found:,} of {summary.searched:,} {searches} ({rate})"
        )
    deviating = summary.by_status.get("seed-deviates", 0)
    if deviating:
        parts.append(
            f"{deviating:,} seed input{' deviates' if deviating == 1 else 's deviate'} already"
        )
    if summary.unfinished:
        parts.append(f"{summary.unfinished:,} not finished yet")
    return f"{', '.join(parts) or 'nothing was searched'}."


def _replayed(replay: "ReplaySummary") -> str:
    counts = replay.counts
    told = [f"{counts[state]:,} {words}" for state, words in _STATES.items() if counts[state]]
    if replay.unfinished:
        told.append(f"{replay.unfinished:,} are still to be asked about")
    return f"of the inputs replayed {', '.join(told)}." if told else "nothing was replayed."
