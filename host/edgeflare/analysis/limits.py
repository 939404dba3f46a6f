"""Whether a campaign keeps to its limits: each held against what was found, in one sentence."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare.analysis.opening import opened
from edgeflare.analysis.rows import jsonable
from edgeflare.store import Store
from edgeflare.store.failures import decoding

if TYPE_CHECKING:
    from edgeflare.analysis.limit_verdicts import Seen
    from edgeflare.campaign.limits import LimitsConfig


@dataclass(frozen=True)
class LimitCheck:
    """One limit, held against what a campaign found.

    `name` and `limit` are as in `LimitsConfig`; `value` is what the limit is about: a share, a number of
    queries (infinite where the median seed has no triggering input), a distance, a margin or a count;
    None where there is none. `crossed`: the limit doesn't hold, or a finished campaign has nothing to tell
    it by. `words` is one sentence with the counts and the first few that cross it. `checked` is False
    for a limit that says nothing of such a campaign.
    """

    name: str
    limit: float | bool
    value: float | None
    crossed: bool
    words: str
    checked: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names; an infinite value is the text "inf"."""
        plain: dict[str, Any] = jsonable(asdict(self))
        return plain


def check_limits(
    campaign: Store | Path, limits: "LimitsConfig | None" = None
) -> tuple[LimitCheck, ...]:
    """Hold what a campaign found so far against limits: its own, where none are given.

    There is one check for each limit that is set, in the order of `LimitsConfig`; none for a campaign
    without limits. Of a replay the new triggering inputs are counted, of any other campaign the rest; a
    limit that says nothing of it is told as not checked. Raises StoreError where the campaign's folder
    can't be used, UsageError where the baseline of given limits can't.
    """
    from edgeflare.analysis.limit_verdicts import Seen
    from edgeflare.campaign.limits import LimitsConfig

    with opened(campaign) as store:
        with decoding(store.folder, "the setting limits"):
            own = LimitsConfig.model_validate(store.campaign.get("limits") or {})
        limits = own if limits is None else limits
        wanted = limits.model_dump(exclude_defaults=True, exclude={"baseline"})
        if not wanted:
            return ()
        seen = Seen(store, limits, own=limits == own)
        return tuple(_check(seen, name, limit) for name, limit in wanted.items())


def _check(seen: "Seen", name: str, limit: float | bool) -> LimitCheck:
    from edgeflare.analysis.limit_verdicts import FOR_REPLAYS, VERDICTS

    if seen.is_replay != (name in FOR_REPLAYS):
        why = "a replay searches nothing" if seen.is_replay else "this is no replay"
        return LimitCheck(name, limit, None, False, f"{name}: not checked, {why}", checked=False)
    verdict = VERDICTS[name](seen)
    names = f": {verdict.names}" if verdict.crossed and verdict.names else ""
    so_far = "" if seen.finished else "so far "
    words = f"{name}: {so_far}{verdict.words}{names}{verdict.aside}"
    return LimitCheck(name, limit, verdict.value, verdict.crossed, words)
