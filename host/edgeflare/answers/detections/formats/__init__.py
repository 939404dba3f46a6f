"""The outputs of detectors: their formats, and how they become `edgeflare.types.Detections`."""

from edgeflare.answers.detections.formats.completion import choose_format, complete_options
from edgeflare.answers.detections.formats.inference import (
    InferredFormat,
    check_format,
    class_names,
    infer_format,
)
from edgeflare.answers.detections.formats.options import DetectorOptions, GridOptions
from edgeflare.answers.detections.formats.reader import DetectionReader, keep_anchors

__all__ = [
    "DetectionReader",
    "DetectorOptions",
    "GridOptions",
    "InferredFormat",
    "check_format",
    "choose_format",
    "class_names",
    "complete_options",
    "infer_format",
    "keep_anchors",
]
