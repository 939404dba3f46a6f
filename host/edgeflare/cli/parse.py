"""Values of flags -> plain values."""

import json
from collections.abc import Sequence
from typing import Any

from edgeflare import UsageError


def pairs(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Return ``KEY=VALUE`` texts as a table.

    Numbers, true / false, comma-separated values, and lists and objects in JSON are read; the rest is text.
    """
    table: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UsageError(f"{flag} {text!r} is not of the form KEY=VALUE")
        table[key.strip()] = _value(value.strip())
    return table


def _value(text: str) -> Any:
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if "," in text:
        return [_value(part.strip()) for part in text.split(",")]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
