"""XML that is well-formed whatever a campaign holds."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping

from edgeflare.text import clean_text

Element = ET.Element


def element(tag: str, attributes: Mapping[str, str], text: str | None = None) -> Element:
    """Return an element of cleaned text."""
    made = ET.Element(
        tag, {name: clean_text(value, lines=True) for name, value in attributes.items()}
    )
    made.text = None if text is None else clean_text(text, lines=True)
    return made


def dumped(made: Element) -> str:
    """Return an element as text."""
    return ET.tostring(made, encoding="unicode")


def open_tag(tag: str, attributes: Mapping[str, str]) -> str:
    """Return the start of an element whose content follows."""
    return dumped(element(tag, attributes, "\n")).partition("\n")[0]
