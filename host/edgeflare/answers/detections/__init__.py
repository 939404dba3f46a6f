"""Boxes with classes and scores: their matching, the formats of detectors' outputs, and their kind."""

from edgeflare.answers.detections.kind import DETECTIONS

__all__ = [
    "DETECTIONS",
]
