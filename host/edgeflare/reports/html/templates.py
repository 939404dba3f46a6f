"""HTML pages made of templates: each one a single file that needs no network."""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from edgeflare._internal.text import clean_text

PAGES = Path(__file__).parents[2] / "assets" / "pages"
"""The folder with the templates, styles and scripts."""


def render(template: str, **values: Any) -> str:
    """Return a page: the template of that name in `PAGES` with these values, all of them escaped.

    Templates extend ``base.html.j2``, whose blocks are ``title``, ``head`` (more styles), ``nav``,
    ``content`` and ``data``. `scripts`, names of files in `PAGES`, are put inline at the page's
    end; the page lets no other script run, and asks for nothing from a network. What UTF-8 has no
    place for, as in names of files in another encoding, becomes a question mark.
    """
    page = _environment().get_template(template).render({"scripts": (), **values})
    return page.encode(errors="replace").decode()


def asset(name: str) -> Markup:
    """Return a style's or script's text, to be put inline as it is."""
    return Markup((PAGES / name).read_text(encoding="utf-8"))  # noqa: S704  these are our own files


def script_digest(name: str) -> str:
    """Return what a content security policy calls an inline script: its SHA-256."""
    digest = hashlib.sha256(asset(name).encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def embedded_json(value: Any) -> Markup:
    """Return compact JSON for a ``<script type="application/json">``, in which no text can end the
    element.

    Raises ValueError for NaN and infinity.
    """
    text = json.dumps(_cleaned(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704  nothing in it can be markup any more


def _cleaned(value: object) -> object:
    """Return a value whose texts have no control characters; markup is unchanged."""
    if isinstance(value, Mapping):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    return clean_text(value, lines=True) if type(value) is str else value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        finalize=lambda value: _cleaned(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        asset=asset, script_digest=script_digest, embedded_json=embedded_json
    )
    return environment
