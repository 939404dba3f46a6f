"""Which limits a triggering input crosses all by itself."""

from collections.abc import Sequence
from contextlib import suppress

from edgeflare.analysis.limit_counts import held_against, known_pairs, number
from edgeflare.analysis.limits import LimitCheck
from edgeflare.campaign.baseline import Pair
from edgeflare.campaign.limits import LimitsConfig
from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import TRIGGERS

_SENTENCES = {
    "min_l2": "nearer than min_l2 = {limit:g}",
    "max_severity": "a smaller margin of {text}, above max_severity = {limit:g}",
    "max_disagreement": "a disagreement of {text}, above max_disagreement = {limit:g}",
}


class Breaches:
    """Returns for one outcome after the other what it crosses: a limit of `_SENTENCES`, or `new_pairs`."""

    def __init__(self, store: Store, limits: Sequence[LimitCheck]) -> None:
        checked = {one.name: one.limit for one in limits if one.checked}
        self._limits = {name: float(checked[name]) for name in _SENTENCES if name in checked}
        self._known: set[Pair] | None = None
        if "new_pairs" in checked:
            own = LimitsConfig.model_validate(store.campaign.get("limits") or {})
            with suppress(UsageError):  # the baseline is gone: no pair is known to be new
                self._known = known_pairs(store, own)

    def of(self, one: OutcomeRecord) -> list[str]:
        """Return a phrase for each limit that this outcome crosses."""
        crossed = [
            _SENTENCES[rule.name].format(text=number(value, limit), limit=limit)
            for rule, value, limit in held_against(one, self._limits)
            if rule.crossed_by(value, limit)
        ]
        pair = (one.original_label, one.deployed_label)
        known = self._known
        if one.status in TRIGGERS and None not in pair and known is not None and pair not in known:
            crossed.append("a pair of classes that does not deviate in the baseline")
        return crossed
