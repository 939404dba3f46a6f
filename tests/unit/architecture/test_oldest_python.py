"""Python 3.10 runs what newer ones do: what `.ci/release` would find late."""

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
_SECOND_BASE = re.compile(
    r"^\s*class \w+\((?:[^()]*,\s*)?(?:NamedTuple\s*,|[^()]*,\s*NamedTuple)", re.MULTILINE
)


def test_no_named_tuple_has_a_second_base() -> None:
    """`NamedTuple` with `Generic` is a TypeError at import before Python 3.11."""
    assert _SECOND_BASE.search("class A(NamedTuple, Generic[T]):")
    assert _SECOND_BASE.search("class A(Generic[T], NamedTuple):")
    assert not _SECOND_BASE.search("class A(NamedTuple):")
    found = [
        str(file.relative_to(PROJECT))
        for folder in ("agent", "host", "mutators", "tests")
        for file in (PROJECT / folder).rglob("*.py")
        if file != Path(__file__) and _SECOND_BASE.search(file.read_text(encoding="utf-8"))
    ]
    assert found == []
