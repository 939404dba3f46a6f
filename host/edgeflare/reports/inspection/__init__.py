"""What was seen within the original model, as tables."""
