"""An input that is to be asked about again, and what the models said of it when last looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from edgeflare.types import Sample

REPLAY = "replay"
"""The fact that makes a campaign a replay: its source and its inputs."""

ReplayKind: TypeAlias = Literal["trigger", "seed"]
"""A triggering input of a campaign, or a seed input on which the models agreed."""


class Look(NamedTuple):
    """What one device said of an input when last looked at: whether it deviated, and its label or text there."""

    deviated: bool
    deployed_label: int | None
    deployed_text: str | None = None


@dataclass(frozen=True)
class ReplayInput:
    """An input to ask both models about again.

    `id` is unique among the inputs replayed together, and the same whenever they are. `deviated`: it deviated
    when last looked at, on the device `replica` where that isn't ""; both labels (class indices), or both
    texts of recognisers, are those of then. `seed_id` names the seed input in its own campaign, `label` that
    one's class where it is known. `l2` is the distance to it, as `edgeflare.distances` has it. `rate` is that
    of audio, in Hz. `looks` has what each device said, by its name, where that is known: the one that said so
    last comes last.
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
