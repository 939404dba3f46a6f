"""A Sphinx extension: signatures name EdgeFlare's type aliases instead of what they stand for."""

from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

from edgeflare import types
from edgeflare.campaign import api, events
from edgeflare.devices import Connect, Prompt

_ALIASES = {
    "edgeflare.campaign.api.SeedInputs": api.SeedInputs,
    "edgeflare.campaign.api.PathOrTable": api.PathOrTable,
    "edgeflare.campaign.events.Progress": events.Progress,
    "edgeflare.devices.transports.base.Connect": Connect,
    "edgeflare.devices.transports.base.Prompt": Prompt,
    "edgeflare.types.Strategy": types.Strategy,
    "edgeflare.types.Output": types.Output,
    "edgeflare.types.Scores": types.Scores,
    "edgeflare.types.Sample": types.Sample,
}
"""The aliases by their names; one that is part of another comes after it."""
_TEXTS = {stringify_annotation(alias, "smart"): f"~{name}" for name, alias in _ALIASES.items()}


def shortened(text: str | None) -> str | None:
    """Return the text of a signature with the aliases' names in it, and readable defaults."""
    if text is None:
        return None
    for expansion, name in _TEXTS.items():
        text = text.replace(expansion, name)
    return text.replace("<factory>", "...")


def _shorten(*event: Any) -> tuple[str | None, str | None]:
    return shortened(event[-2]), shortened(event[-1])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to autodoc."""
    app.connect("autodoc-process-signature", _shorten)
    return {"parallel_read_safe": True}
