"""What a run may use beside its settings."""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare.campaign.events import BatchWatch, Progress, Stage, Step, silent
from edgeflare.devices import Connect, ConnectOptions, Prompt

if TYPE_CHECKING:
    from edgeflare.campaign.executor import Cluster


class RunOptions(ConnectOptions, total=False):
    """What an analysis or a replay may use beside its settings.

    `progress` is called with every event, by the calling thread; `ask` and `connect` are those of
    `ConnectOptions`.
    """

    progress: Progress


class CampaignOptions(RunOptions, total=False):
    """What a campaign may use beside its settings; `ask`, `connect` and `progress` as of `RunOptions`.

    `name` is shown to others who want a device that the campaign uses (the folder's name where
    None). With a `cluster` (`edgeflare.distributed.DaskCluster`) its workers' devices take part, not
    those of this process.
    """

    name: str | None
    cluster: "Cluster | None"


def _connect() -> Connect:
    from edgeflare.devices import connect  # an analysis's sections need no device

    return connect


def _no_folder(name: str) -> Path:
    raise ValueError(f"this run keeps nothing, so that there is no folder for {name}")


@dataclass(frozen=True)
class RunContext:
    """What a campaign or an analysis may use beside its settings.

    The first five are `CampaignOptions`. An analysis has a `folder` for campaigns of its own, below
    its campaign's, by a name; `batch`, to which it reports campaigns that it runs one after the
    other; and `resume`, what was finished before it was interrupted: what it puts there is stored
    at once, and is there again when it is run anew with the same settings. Keys are texts, values
    JSON.
    """

    progress: Progress = silent
    connect: Connect = field(default_factory=_connect)
    ask: Prompt | None = None
    name: str | None = None
    cluster: "Cluster | None" = None
    folder: Callable[[str], Path] = _no_folder
    batch: BatchWatch = silent
    resume: MutableMapping[str, Any] = field(default_factory=dict)
    _told: list[tuple[str, int | None]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @property
    def reach(self) -> ConnectOptions:
        """How devices are reached, for `open_device`."""
        return {"ask": self.ask, "connect": self.connect}

    @property
    def options(self) -> RunOptions:
        """What another run gets of this one: how devices are reached, and who is told of its events."""
        return {**self.reach, "progress": self.progress}

    def tell(self, what: str, done: int, total: int | None = None) -> None:
        """Report that so many of `total` steps are done; None: it isn't known how many there are."""
        if not done or self._told != [(what, total)]:
            self._told[:] = [(what, total)]
            self.progress(Stage(what, "", total))
        if done:
            self.progress(Step(done))
