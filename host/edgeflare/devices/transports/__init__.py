"""Transports: how a device is reached, and how files and streams get there."""
