"""Probes: what a strategy asks of the original beside its answers, such as gradients.

A probe is an entry point of the group ``edgeflare.probes``: a class with the methods of `Probe`. A
strategy asks it by its name, and states that name as `probe` of its options::

    answer = yield Ask(samples, of="original", want="my-probe", question=...)
    answer.probed  # what the probe's `answer` returned, one for each sample

It counts as one host-only query for each sample, or for each of `classes`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from edgeflare._internal import plugins
from edgeflare.errors import UsageError
from edgeflare.types import Ask

if TYPE_CHECKING:
    from edgeflare.models.original import OriginalModel


class Probe(Protocol):
    """Answers requests about an original; used by one thread at a time.

    It is made in each process that asks, with the `OriginalModel`: its `path`, `inputs`, `runtime`,
    `configuration` and `reader` say what is run and how, `raw` runs it. The class may name, in
    `libraries`, distributions whose versions can change what it answers; a campaign notes them.
    """

    libraries: Sequence[str] = ()

    def __init__(self, original: "OriginalModel") -> None:
        """Raises UsageError where this original can't be asked."""

    def check(self, others: Sequence[str]) -> None:
        """Raise UsageError where `others`, files of further models, can't be asked beside it."""

    def answer(self, ask: Ask) -> Sequence[Any]:
        """Return one answer for each sample of a request; they must be picklable."""
        ...


def probe_class(name: str) -> Any:
    """Return the class of a probe. Raises UsageError where no distribution declares it."""
    kind = plugins.load("probe", name)
    if kind is None:
        installed = ", ".join(plugins.names("probe")) or "none"
        raise UsageError(
            f"there is no probe {name!r} of the original; those installed: {installed}"
        )
    if not isinstance(kind, type) or not {"check", "answer"} <= set(dir(kind)):
        raise plugins.unusable("probe", name, "must be a class with the methods check and answer")
    return kind
