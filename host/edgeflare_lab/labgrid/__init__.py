"""Boards that a labgrid coordinator gives out: places."""
