"""Processes in which searches run; the process of the campaign keeps the devices and the store."""
