"""Searches that use the original's gradients."""
