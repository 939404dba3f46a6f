"""Answers without a top-1 class in reports: detections and values."""
