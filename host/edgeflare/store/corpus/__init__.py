"""Trigger corpora: triggering inputs of many campaigns, stored for replays."""
