"""An input of a replay, and what the models answered to it when they were last asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from edgeflare.types import Sample

REPLAY = "replay"
"""The fact that makes a campaign a replay: its source and its inputs."""

ReplayKind: TypeAlias = Literal["trigger", "seed"]
"""A triggering input of a campaign, or a seed input on which the models agreed."""


class Look(NamedTuple):
    """One device's last answer to an input: whether it deviated, and its label or text."""

    deviated: bool
    deployed_label: int | None
    deployed_text: str | None = None


@dataclass(frozen=True)
class ReplayInput:
    """An input to be sent to both models again.

    `id` is unique among the inputs of a replay, and the same in every replay. `deviated`: it deviated when it was
    last sent, on the device `replica` where that isn't ""; both labels (class indices), or both texts of
    recognisers, are of that time. `seed_id` names the seed input in its own campaign, `label` its class where
    that is known. `l2` is the distance to it, as `edgeflare.distances` has it. `rate` is that of audio, in Hz.
    `looks` has each device's last answer, by its name, where there is one; the latest comes last.
    """

    id: str
    sample: Sample
    kind: ReplayKind
    deviated: bool
    seed_id: str
    replica: str = ""
    label: int | None = None
    original_label: int | None = None
    deployed_label: int | None = None
    l2: float | None = None
    original_text: str | None = None
    deployed_text: str | None = None
    rate: int | None = None
    looks: Mapping[str, Look] = field(default_factory=dict)
