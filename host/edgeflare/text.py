"""Text for people: time spans, shapes, and foreign text without control characters."""

import re
import unicodedata
from collections.abc import Sequence

_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, such as a window's title
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI, such as a colour
)
_CONTROLS = ("Cc", "Cf", "Cs")
_JOINERS = "\u200c\u200d"
_NONE = "\ufffe\uffff"
"""Code points that are no characters; XML forbids them."""
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


def shape_text(shape: Sequence[int | None]) -> str:
    """Return a shape as "1 x 3 x ?"; a question mark stands for an open axis, "[]" for none."""
    return " x ".join("?" if size is None else str(size) for size in shape) or "[]"


def clean_text(text: str, longest: int | None = None, *, lines: bool = False) -> str:
    """Return a text that is safe to show and to store: at most `longest` characters, an ellipsis included.

    Escape sequences of terminals are dropped; other control characters (C0, C1, those that change the direction of
    writing or have no glyph) and lone surrogates become U+FFFD. `lines`: line feeds and tabs stay, else they
    become spaces.
    """
    if not text.isprintable():
        if longest is not None:
            text = text[: 2 * longest]
        text = _SEQUENCES.sub("", text).replace("\r\n", "\n")
        text = "".join(_shown(char, lines) for char in (text if lines else text.strip("\n")))
    if longest is None or len(text) <= longest:
        return text
    return text[: longest - 3] + "..."


def _shown(char: str, lines: bool) -> str:
    category = unicodedata.category(char)
    if char in "\n\t" or category[0] == "Z":
        return char if lines and char in "\n\t" else " "
    return "\ufffd" if (category in _CONTROLS and char not in _JOINERS) or char in _NONE else char
