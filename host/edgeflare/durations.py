"""Time spans as text."""

_UNITS = ((86400, "days"), (3600, "h"), (60, "min"))


def duration(seconds: float) -> str:
    """Return a time span, 0 or more seconds, in the unit that reads best, such as ``38 ms`` or ``2.3 min``."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.{1 if seconds < 100 * size else 0}f} {unit}"
    if seconds >= 10 or seconds == 0:
        return f"{seconds:.0f} s"
    if seconds >= 0.1:
        return f"{seconds:.1f} s"
    return f"{1000 * seconds:.{0 if seconds >= 0.01 else 1}f} ms"
