"""XML that is well-formed whatever a campaign holds."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

from edgeflare.analysis import words

Element = ET.Element

_FORBIDDEN = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""What XML 1.0 (section 2.2) has no place for, also as a reference, beside control characters: surrogates among it."""


def element(tag: str, attributes: Mapping[str, str], text: str | None = None) -> Element:
    """Return an element of cleaned text."""
    made = ET.Element(tag, {name: clean(value) for name, value in attributes.items()})
    made.text = None if text is None else clean(text)
    return made


def clean(text: str) -> str:
    """Return text with U+FFFD for each character that XML lacks, and for every other control character."""
    return _FORBIDDEN.sub("\ufffd", words.clean(text))


def dumped(made: Element) -> str:
    """Return an element as text."""
    return ET.tostring(made, encoding="unicode")


def open_tag(tag: str, attributes: Mapping[str, str]) -> str:
    """Return the start of an element whose content follows."""
    return dumped(element(tag, attributes, "\n")).partition("\n")[0]
