"""Seed inputs: images or audio on disk, brought to what the models take."""

from edgeflare.seeds.audio_source import open_audio_seeds
from edgeflare.seeds.folder import changed_files, load_label_mapping
from edgeflare.seeds.images import RESIZE_RULES
from edgeflare.seeds.source import open_seeds
from edgeflare.seeds.types import SeedSource
from edgeflare.types import SeedInput, Skipped

__all__ = [
    "RESIZE_RULES",
    "SeedInput",
    "SeedSource",
    "Skipped",
    "changed_files",
    "load_label_mapping",
    "open_audio_seeds",
    "open_seeds",
]
