"""What a trigger of a replicated fleet comes of: the compression, or what sets some devices apart."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Literal, TypeAlias

from edgeflare.analysis.agreement import prints_of
from edgeflare.analysis.unlike import Cause, Unlike, cause_of, what_differs
from edgeflare.store import SeedComparison, Store, TriggerAnswer

TriggerCause: TypeAlias = Literal["compression", "not attributed"] | Cause

NOT_ATTRIBUTED: TriggerCause = "not attributed"


class Causes:
    """Tells the cause of each trigger of one seed after the other, the seeds in their order.

    A trigger that triggers on every device that answered it comes of what all share: "compression". Where
    it does so on some only, the cause is judged by `cause_of` from the fingerprints of the two devices
    that are most alike of all pairs in which it triggers on one and not on the other. "not attributed"
    where devices shared the seeds, there is one, or no other device has answered.
    """

    def __init__(self, store: Store, replicas: Sequence[str]) -> None:
        self._comparisons: Iterator[SeedComparison] = iter(())
        if len(replicas) > 1:
            self._comparisons = store.comparisons(replicas)
        self._prints = prints_of(store) if len(replicas) > 1 else {}
        self._here: SeedComparison | None = None
        self._differences = cache(self._what_differs)

    def of(self, seed_id: str, trigger: str | None) -> TriggerCause:
        """Return the cause of a trigger, by the digest of its sample.

        Seeds must come in their order; one may come several times in a row. Raises StoreError.
        """
        while self._here is None or self._here.seed_id != seed_id:
            self._here = next(self._comparisons, None)
            if self._here is None:
                return NOT_ATTRIBUTED
        return self._judged(self._here.triggers.get(trigger or "", {}))

    def _judged(self, answers: Mapping[str, TriggerAnswer]) -> TriggerCause:
        triggering = [name for name, answer in answers.items() if answer.deviates]
        others = [name for name, answer in answers.items() if not answer.deviates]
        if len(answers) < 2:
            return NOT_ATTRIBUTED
        if not others:
            return "compression"
        pairs = [self._differences(one, other) for one in triggering for other in others]
        pairs.sort(key=len)
        return cause_of(pairs[0]) if pairs else NOT_ATTRIBUTED

    def _what_differs(self, first: str, second: str) -> tuple[Unlike, ...]:
        return what_differs(self._prints.get(first, {}), self._prints.get(second, {}))
