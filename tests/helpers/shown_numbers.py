"""The numbers of a sentence, for tests that hold what is counted and not how it is worded."""

import re


def numbers(text: str) -> list[str]:
    """Return the numbers that `text` shows, as it writes them: "5,200 of 0.25" -> ["5,200", "0.25"]."""
    return re.findall(r"\d+(?:[.,]\d+)*", text)
