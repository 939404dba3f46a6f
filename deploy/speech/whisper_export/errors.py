"""What can go wrong while exporting, as sentences for the person who runs it."""

from __future__ import annotations


class ExportError(Exception):
    """The export cannot go on: the message says what is wrong and what to do next."""
