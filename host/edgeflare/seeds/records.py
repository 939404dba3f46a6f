"""What loading seeds gives back."""

from dataclasses import dataclass, field

from edgeflare.types import Sample


@dataclass(frozen=True)
class RawSeed:
    """A seed before any model saw it.

    `id` is stable across runs; `sample` is uint8 [height, width, channels], RGB or grey; `label` is a
    class index, or None where it is unknown.
    """

    id: str
    sample: Sample
    label: int | None = None


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class LoadedSeeds:
    """Everything a source gave: seeds in order, files skipped, and what the user ought to know."""

    seeds: list[RawSeed] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
