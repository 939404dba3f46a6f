"""Seed inputs: images on disk, brought to one size and number of channels."""

from edgeflare.seeds.convert import RESIZE_RULES
from edgeflare.seeds.labels import load_label_mapping
from edgeflare.seeds.load import load_seeds
from edgeflare.seeds.records import LoadedSeeds, RawSeed, Skipped

__all__ = [
    "RESIZE_RULES",
    "LoadedSeeds",
    "RawSeed",
    "Skipped",
    "load_label_mapping",
    "load_seeds",
]
