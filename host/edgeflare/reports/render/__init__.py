"""Formats of a report: each a function that takes a `Report` and returns its text."""
