"""Corpora: triggering inputs of many campaigns, kept for replays."""
