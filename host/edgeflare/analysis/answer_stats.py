"""What callers of before still import from here."""

from edgeflare.analysis.outcome_stats import AnswerFigures as AnswerFigures  # noqa: PLC0414

DETECTION_KINDS = ("detections", "tags")
"""What the outputs of models are (`edgeflare.models.OutputKind`) whose answers are `Detections`."""
