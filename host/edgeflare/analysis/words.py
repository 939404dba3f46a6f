"""Figures in words, and tables, for Markdown."""

import math
import re
from collections.abc import Sequence

from edgeflare.text import clean_text

NOTHING = "–"
_SMALL = 0.01
_TINY = 1e-5


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[str] = ()) -> str:
    """Return a Markdown table: the first column and those called `words` to the left, figures to the right."""
    left = {header[0], *words}
    lines = [header, ["---" if name in left else "---:" for name in header], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(text: str) -> str:
    """Return text that stays itself in a Markdown table or line: no break, nothing that marks up or controls."""
    words = clean_text(" ".join(text.split()))
    for sign in "\\`*_|<>[]&~$":
        words = words.replace(sign, f"\\{sign}")
    return words


def code(text: str) -> str:
    """Return text as a span of code in a Markdown line, which no run of backticks in it ends."""
    words = clean_text(" ".join(text.split()))
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    space = " " if "`" in words else ""
    return f"{fence}{space}{words}{space}{fence}"


def number_text(value: float | None, digits: int = 2) -> str:
    """Return a number with so many digits behind the point, a dash for None."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def margin_text(margin: float | None) -> str:
    """Return a margin (from 0 to 1) with three digits behind the point, more for a small one."""
    if margin is None or margin >= _SMALL or margin <= 0:
        return number_text(margin, 3)
    if margin < _TINY:
        return f"{margin:.1e}"
    return number_text(margin, 1 - math.floor(math.log10(margin)))


def percent_text(rate: float | None, digits: int = 1) -> str:
    """Return a rate as per cent; whole where it is 0 or 1, and never rounded to these."""
    if rate is None:
        return NOTHING
    if rate in {0.0, 1.0}:
        return f"{100 * rate:.0f} %"
    least = 10.0**-digits
    return f"{min(max(100 * rate, least), 100 - least):.{digits}f} %"


def p_value_text(p: float | None) -> str:
    """Return a p value, a dash for None; what is very small is not told exactly."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
