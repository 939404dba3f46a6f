"""Seed inputs: images on disk, brought to one size and number of channels."""

from edgeflare.seeds.changes import changed_files
from edgeflare.seeds.convert import RESIZE_RULES
from edgeflare.seeds.labels import load_label_mapping
from edgeflare.seeds.records import RawSeed, Skipped
from edgeflare.seeds.source import SeedSource, open_seeds

__all__ = [
    "RESIZE_RULES",
    "RawSeed",
    "SeedSource",
    "Skipped",
    "changed_files",
    "load_label_mapping",
    "open_seeds",
]
