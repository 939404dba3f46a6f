"""The numbers of a sentence, for tests that hold what is counted and not how it is worded."""

import re


def numbers(text: str) -> str:
    """Return the numbers that `text` shows, as it writes them: "5,200 of them, 0.25 apart" -> "5,200 0.25"."""
    return " ".join(re.findall(r"\d+(?:[.,]\d+)*", text))
