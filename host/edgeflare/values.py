"""The distances of values by their documented names; they stand in `edgeflare.answers.values`."""

from edgeflare.answers.measures import MEASURES, distance, label_map, mean_iou

__all__ = [
    "MEASURES",
    "distance",
    "label_map",
    "mean_iou",
]
