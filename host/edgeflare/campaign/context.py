"""What a run may use beside its settings."""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare.campaign.events import Progress, Stage, Step, silent
from edgeflare.campaign.fleet import Connect
from edgeflare.devices import Prompt, connect

if TYPE_CHECKING:
    from edgeflare.campaign.executor import Cluster


def _no_folder(name: str) -> Path:
    raise ValueError(f"this run keeps nothing, so that there is no folder for {name}")


@dataclass(frozen=True)
class RunContext:
    """What a campaign or an analysis may use beside its settings.

    `progress` is called with every event, by the calling thread; `ask` for a passphrase or password
    where a device wants one; `connect` opens the transport to a device. `name` is shown to others who
    want a device that the run uses. With a `cluster` its workers' devices take part, not those of
    this process.

    An analysis has a `folder` for campaigns of its own, below its campaign's, by a name; and `resume`,
    what was finished before it was interrupted: what it puts there is stored at once, and is there
    again when it is run anew with the same settings. Keys are texts, values JSON.
    """

    progress: Progress = silent
    connect: Connect = connect
    ask: Prompt | None = None
    name: str | None = None
    cluster: "Cluster | None" = None
    folder: Callable[[str], Path] = _no_folder
    resume: MutableMapping[str, Any] = field(default_factory=dict)

    def tell(self, what: str, done: int, total: int | None = None) -> None:
        """Report that so many of `total` steps are done; None: it isn't known how many there are."""
        self.progress(Step(done) if done else Stage(what, "", total))
