"""Which limits a triggering input crosses all by itself."""

from collections.abc import Sequence

from edgeflare.analysis.limit_counts import number
from edgeflare.analysis.limits import LimitCheck
from edgeflare.campaign.baseline import BASELINE_PAIRS, Pair, baseline_pairs
from edgeflare.campaign.limits import LimitsConfig
from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import TRIGGERS, Status


class Breaches:
    """Tells of one outcome after the other what it crosses: `min_l2`, `max_severity`, `max_disagreement` and `new_pairs`."""

    def __init__(self, store: Store, limits: Sequence[LimitCheck]) -> None:
        checked = {one.name: one.limit for one in limits if one.checked}
        self._nearest = checked.get("min_l2")
        self._most_severe = checked.get("max_severity")
        self._furthest_apart = checked.get("max_disagreement")
        self._known = _known_pairs(store) if "new_pairs" in checked else None

    def of(self, one: OutcomeRecord) -> list[str]:
        """Return a phrase for each limit that this outcome crosses."""
        told: list[str] = []
        if one.status not in TRIGGERS:
            return told
        if (
            self._nearest is not None
            and one.status is Status.FOUND
            and one.l2 is not None
            and one.l2 < self._nearest
        ):
            told.append(f"nearer than min_l2 = {self._nearest:g}")
        severity = one.severity
        if self._most_severe is not None and severity is not None and severity > self._most_severe:
            text = number(severity, self._most_severe)
            told.append(f"a smaller margin of {text}, above max_severity = {self._most_severe:g}")
        apart = one.disagreement
        if self._furthest_apart is not None and apart is not None and apart > self._furthest_apart:
            text = number(apart, self._furthest_apart)
            told.append(
                f"a disagreement of {text}, above max_disagreement = {self._furthest_apart:g}"
            )
        pair = (one.original_label, one.deployed_label)
        if self._known is not None and None not in pair and pair not in self._known:
            told.append("a pair of classes that does not deviate in the baseline")
        return told


def _known_pairs(store: Store) -> set[Pair] | None:
    """Return the baseline's pairs, None where they can't be told any more."""
    kept = store.fact(BASELINE_PAIRS)
    if kept is not None:
        return {(original, deployed) for original, deployed in kept}
    try:
        return baseline_pairs(LimitsConfig.model_validate(store.campaign.get("limits") or {}))
    except UsageError:
        return None
