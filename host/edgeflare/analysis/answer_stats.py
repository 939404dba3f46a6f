"""What models with detections and tags are stored to return."""

DETECTION_KINDS = ("detections", "tags")
"""What the outputs of models are (`edgeflare.models.OutputKind`) whose answers are `Detections`."""
