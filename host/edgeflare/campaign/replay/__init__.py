"""Replays: the triggering inputs and seed inputs of an earlier campaign, sent to a device again."""
