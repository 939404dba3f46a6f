"""What the system's small files say, below a `root`.

A file that is missing, unreadable or odd is one that doesn't tell.
"""

import os
from glob import glob
from typing import List, Optional

_MOST_READ = 1 << 16
_TOO_MUCH = 1 << 63


def below(root: str, path: str) -> str:
    """Return a path below a root."""
    return os.path.join(root, path)


def found(root: str, pattern: str) -> List[str]:
    """Return the paths below a root that a pattern names, in order."""
    return sorted(glob(below(root, pattern)))


def text(path: str) -> str:
    """Return a file's first 64 KiB; empty for one that doesn't tell."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(_MOST_READ)
    except OSError:
        return ""


def first_word(path: str) -> Optional[str]:
    """Return a file's first word."""
    words = text(path).split()
    return words[0] if words else None


def number(word: Optional[str]) -> Optional[float]:
    """Return a finite number; None for anything else."""
    try:
        value = float(word or "")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def number_in(path: str) -> Optional[float]:
    """Return the number that a file begins with."""
    return number(first_word(path))


def numbers(root: str, pattern: str) -> List[float]:
    """Return the numbers of all files that a pattern names."""
    told = (number_in(path) for path in found(root, pattern))
    return [value for value in told if value is not None]


def kibibytes(path: str, name: str) -> Optional[int]:
    """Return in bytes what a file like /proc/meminfo says of a name."""
    for line in text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == name and words[1].isdigit():
            value = int(words[1]) * 1024
            return value if value < _TOO_MUCH else None
    return None
