"""How to run a whole campaign again: its configuration as a ``campaign.toml``, its models and versions."""

import json
from collections.abc import Mapping
from typing import Any

from edgeflare._internal.text import number_text
from edgeflare.reports.devices import runtime_words, value_words
from edgeflare.reports.document import Column, KeyFigure, Table
from edgeflare.store import Store

_LEFT_OUT = "out"


def models_table(models: Mapping[str, Any]) -> Table:
    """Return the models of a campaign: their files, byte for byte, and the runtimes in effect."""
    columns = (
        Column("model", 0, lambda one: one[0], text=True),
        Column("file", 0, lambda one: str(one[1].get("name", "")), text=True),
        Column("bytes", 0, lambda one: number_text(one[1].get("bytes"), 0)),
        Column("SHA-256", 0, lambda one: str(one[1].get("sha256", "")), text=True),
        Column("runtime", 0, lambda one: runtime_words(one[1].get("runtime") or {}), text=True),
    )
    rows = [(which, models[which]) for which in ("original", "deployed") if models.get(which)]
    return Table(columns, rows, "The models' files, byte for byte, and what ran them", "models")


def versions(store: Store) -> list[KeyFigure]:
    """Return the versions of what ran on the host; of several environments all of them."""
    seen: dict[str, dict[str, None]] = {}
    for environment in store.environments().values():
        for name, value in environment.items():
            if value:
                seen.setdefault(name, {})[value_words(value)] = None
    return [KeyFigure(name, ", then ".join(values)) for name, values in seen.items()]


def campaign_toml(config: Mapping[str, Any]) -> str:
    """Return a stored configuration as TOML; what is not set, and where its folder was, is left out."""
    plain, tables = [], []
    for name, value in config.items():
        if name == _LEFT_OUT:
            continue
        if isinstance(value, Mapping):
            tables.append(_table(name, value))
        elif value is not None:
            plain.append(f"{name} = {_toml(value)}")
    return "\n".join(["\n".join(plain), *filter(None, tables)]).strip() + "\n"


def _table(name: str, values: Mapping[str, Any]) -> str:
    lines = [
        f"{key} = {text}"
        for key, value in values.items()
        if value is not None and (text := _toml(value)) not in ("{}", "[]")
    ]
    return "\n".join(["", f"[{name}]", *lines]) if lines else ""


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = [f"{_key(key)} = {_toml(one)}" for key, one in value.items() if one is not None]
        return f"{{ {', '.join(inner)} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    # A basic string of TOML has the escapes of JSON, but for DEL, which must be one.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if plain else json.dumps(name)
