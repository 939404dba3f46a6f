"""What a source of seeds gives."""

from dataclasses import dataclass

from edgeflare.types import Sample


@dataclass(frozen=True)
class RawSeed:
    """A seed before any model saw it.

    `id` is stable across runs; `sample` is uint8 [height, width, channels], RGB or grey; `label` is a
    class index, or None where it is unknown. `file_sha256` is the SHA-256, in hex, of the bytes of
    the file that it was read from: of the whole archive for an `.npz`.
    """

    id: str
    sample: Sample
    label: int | None = None
    file_sha256: str = ""


@dataclass(frozen=True)
class Skipped:
    """A file that could not be used, and why."""

    name: str
    reason: str
