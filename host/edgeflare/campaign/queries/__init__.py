"""The stages of a campaign that query the models."""
