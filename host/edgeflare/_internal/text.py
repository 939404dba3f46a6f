"""Numbers, counts and time spans in words; texts from elsewhere without control characters."""

import json
import math
import re
import unicodedata
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pydantic import ValidationError


_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, such as a window's title
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI, such as a colour
)
_ASCII_LINES = re.compile(r"[\n\t -~]*")
_CONTROLS = ("Cc", "Cf", "Cs")
_JOINERS = "\u200c\u200d"
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # lines, and directions of writing
    "\ud800-\udfff]"  # surrogates: bytes of a file's name that are no text
)
_NAME_BYTES = range(0xDC80, 0xDD00)
_NONE = "\ufffe\uffff"
"""Code points that are no characters; XML forbids them."""
NOTHING = "–"
"""What stands for a figure that is not known."""
ADDRESS = "its address, postgresql://user@host/database/NAME"
"""How a campaign in a database is named, in the help of commands."""

_SMALL = 0.01
_TINY = 1e-5
_UNITS = ((86400, "days"), (3600, "h"), (60, "min"))
_LONGEST = 60

_REASONS: dict[type[BaseException], str] = {
    UnicodeDecodeError: "it is no text in UTF-8",
    RecursionError: "it is nested too deep",
    MemoryError: "it takes more memory than there is",
    TypeError: "it holds values of another type than it should",
    AttributeError: "it holds values of another type than it should",
    IndexError: "it holds fewer values than it should",
    OverflowError: "it holds numbers that are too large",
}
_PICKLES = re.compile(r"allow_pickle|pickled")
_ARCHIVES = ("zipfile", "zlib", "_lzma", "lzma", "struct")

OTHER_INPUTS = (
    "pictures and mono sound are searched, and inputs of other kinds, such as token ids, tables or "
    "sensors' values, can't be yet"
)
"""What is said where a model or an archive may be of such a kind."""


def number_text(value: float | None, digits: int = 2) -> str:
    """Return a number with `digits` digits after the point, a dash for None."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def distinct_number(value: float, other: float) -> str:
    """Return a number in three digits, or in as many as it takes to differ from `other`."""
    for digits in (3, 6):
        text = f"{value:.{digits}g}"
        if value == other or text != f"{other:.{digits}g}":
            return text
    return repr(value)


def above_text(value: float, limit: float) -> str:
    """Return a number above a whole limit without decimals; one rounded up if it would look equal."""
    text = f"{value:,.0f}"
    return text if text != f"{limit:,.0f}" else f"{math.ceil(10 * value) / 10:,.1f}"


def margin_text(margin: float | None) -> str:
    """Return a margin (from 0 to 1) with three digits after the point, more for a small one."""
    if margin is None or margin >= _SMALL or margin <= 0:
        return number_text(margin, 3)
    if margin < _TINY:
        return f"{margin:.1e}"
    return number_text(margin, 1 - math.floor(math.log10(margin)))


def percent_text(rate: float | None, digits: int = 1) -> str:
    """Return a rate in per cent, a dash for None; 0 % and 100 % only for exactly 0 and 1.

    A change may be below 0.
    """
    if rate is None:
        return NOTHING
    if rate < 0:
        return f"-{percent_text(-rate, digits)}" if rate >= -1 else f"{100 * rate:.{digits}f} %"
    if rate in {0.0, 1.0}:
        return f"{100 * rate:.0f} %"
    least = 10.0**-digits
    return f"{min(max(100 * rate, least), 100 - least):.{digits}f} %"


def p_value_text(p: float | None) -> str:
    """Return a p value, a dash for None, "< 0.001" for anything smaller."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_text(p: float) -> str:
    """Return a p value with its name, such as "p = 0.012" or "p < 0.001"."""
    text = p_value_text(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun; the plural of `one` has an s unless `many` is given."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def capitalized(words: str) -> str:
    """Return words with a capital letter first, all others as they are."""
    return words[:1].upper() + words[1:]


def first_of(texts: Sequence[str], most: int = 5) -> str:
    """Return the first texts, with semicolons between them, and the number of the others."""
    more = len(texts) - most
    return "; ".join([*texts[:most], *([f"and {more} more"] if more > 0 else [])])


def names_text(names: Collection[str], most: int = 10) -> str:
    """Return the first names with commas between them and the number of the others.

    For lists whose length a file, a device or an inventory decides.
    """
    return first_names(list(islice(names, most)), len(names))


def first_names(names: Sequence[str], count: int) -> str:
    """Return the first names of `count`, with commas between them, and the number of the others."""
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return ", ".join(names) + more


def size_text(size: int) -> str:
    """Return a number of bytes in the decimal unit that reads best."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return counted(size, "byte")


def duration(seconds: float) -> str:
    """Return a time span of 0 or more seconds in a suitable unit: ``38 ms``, ``2.3 min``."""
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
    """Return a text that is safe to show and store, of at most `longest` characters with ellipsis.

    Escape sequences of terminals are dropped; other control characters (C0, C1, those that change
    the direction of writing or have no glyph) and lone surrogates become U+FFFD. `lines`: line
    feeds and tabs stay, else they become spaces.
    """
    if not text.isprintable() and not (lines and _ASCII_LINES.fullmatch(text)):
        if longest is not None:
            text = text[: 2 * longest]
        text = _SEQUENCES.sub("", text).replace("\r\n", "\n")
        text = "".join(_shown(char, lines) for char in (text if lines else text.strip("\n")))
    if longest is None or len(text) <= longest:
        return text
    return text[: longest - 3] + "..."


def visible_text(text: str) -> str:
    """Return a text for a terminal: what it would obey instead of show is spelled, as ``\\x1b``.

    That is every control character but line feed and tab, and those that turn the direction of
    writing. A byte of a file's name that is no text is spelled, too.
    """
    return text if text.isprintable() else _OBEYED.sub(_spelled, text)


def first_problem(error: "ValidationError") -> str:
    """Return the first problem as ``where: what, not value``; without a place if it is the whole.

    A long value is cut, a table or list left out.
    """
    problem = error.errors()[0]
    where = clean_text(".".join(map(str, problem["loc"])), _LONGEST)
    text = plain_problem(problem["msg"])
    if problem["msg"].startswith("Input should") and isinstance(
        problem["input"], (str, int, float, type(None))
    ):
        text += f", not {clean_text(repr(problem['input']), _LONGEST)}"
    return (f"{where}: " if where else "") + text


def reason(error: BaseException) -> str:
    """Return why a file or a value can't be read, for a sentence of ours.

    What a library says to its own users, such as numpy's advice to allow pickles or Python's on the
    types of arguments, says nothing to ours. The text of a ValueError is kept: it names what is wrong.
    """
    said = " ".join(str(error).split())
    if isinstance(error, OSError):
        return error.strerror or said or type(error).__name__
    if _PICKLES.search(said):
        return "it holds Python objects (pickles), which aren't read, or is no file of numpy's"
    if isinstance(error, KeyError) and error.args:
        return f"it has no {str(error.args[0])[:100]!r}"
    for kind, words in _REASONS.items():
        if isinstance(error, kind):
            return words
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON at line {error.lineno}, column {error.colno}"
    if hasattr(error, "errors"):  # pydantic's, which isn't imported here
        return first_problem(cast("ValidationError", error))
    if type(error).__module__ in _ARCHIVES or isinstance(error, EOFError):
        return "it is damaged, or another kind of file"
    return said or type(error).__name__


def plain_problem(message: str) -> str:
    """Return pydantic's message without its prefix, in lower case at the start."""
    text = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return text[:1].lower() + text[1:]


def _spelled(match: "re.Match[str]") -> str:
    code = ord(match[0])
    code -= 0xDC00 if code in _NAME_BYTES else 0
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"


def _shown(char: str, lines: bool) -> str:
    category = unicodedata.category(char)
    if char in "\n\t" or category[0] == "Z":
        return char if lines and char in "\n\t" else " "
    return "\ufffd" if (category in _CONTROLS and char not in _JOINERS) or char in _NONE else char
