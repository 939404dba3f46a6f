"""What every report of a campaign is made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare.analysis.class_names import class_name, known_class_names
from edgeflare.analysis.limits import LimitCheck, check_limits
from edgeflare.analysis.replayed import ReplaySummary, replay_summary
from edgeflare.analysis.summary import Summary, summarize
from edgeflare.analysis.verdict import Verdict, guidance, progress, verdict
from edgeflare.campaign.live import campaign_status
from edgeflare.store import Store
from edgeflare.types import TRIGGERS


@dataclass(frozen=True)
class Material:
    """A campaign's open store, its figures, its limits and the names of its classes.

    `replay` is what a replay came to, None for another campaign; `names` is None where the classes have
    numbers only.
    """

    store: Store
    summary: Summary
    limits: tuple[LimitCheck, ...]
    replay: ReplaySummary | None
    names: tuple[str, ...] | None

    @property
    def verdict(self) -> str:
        """Whether the limits are kept, and how much was found, in a line."""
        return self._said.text

    @property
    def guidance(self) -> tuple[str, ...]:
        """What the verdict leaves open, and what to do next; often nothing."""
        return guidance(self._said, self.summary)

    @property
    def nothing_found(self) -> bool:
        """Whether there is no triggering input."""
        return not any(self.summary.by_status[status.value] for status in TRIGGERS)

    @property
    def _said(self) -> Verdict:
        return verdict(self.store, self.summary, self.limits, self.replay)

    @property
    def progress(self) -> str:
        """How far a campaign is that isn't finished, and how to go on; "" for a finished one."""
        return progress(self.summary, campaign_status(self.store.folder))

    @property
    def has_limits(self) -> bool:
        """Whether there is a limit that says something of such a campaign."""
        return any(one.checked for one in self.limits)

    @property
    def crossed(self) -> bool:
        """Whether a limit is crossed."""
        return any(one.crossed for one in self.limits)

    def name(self, number: int | None) -> str:
        """Return a class's name, its number where it has none."""
        return class_name(self.names, number)


def gather(
    store: Store,
    class_names: Sequence[str] | None = None,
    limits: tuple[LimitCheck, ...] | None = None,
) -> Material:
    """Return what a campaign's reports are made of. Raises UsageError, StoreError."""
    return Material(
        store=store,
        summary=summarize(store),
        limits=check_limits(store) if limits is None else limits,
        replay=replay_summary(store) if store.fact("replay") else None,
        names=known_class_names(store, class_names),
    )
