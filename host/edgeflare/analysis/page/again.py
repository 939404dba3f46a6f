"""How to run a whole campaign again: its configuration as a ``campaign.toml``, its models and versions."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from edgeflare.store import Store

_LEFT_OUT = "out"


class ModelFile(NamedTuple):
    """One of the two models: what is known of its file and of the runtime in effect."""

    which: str
    name: str
    sha256: str
    bytes: int | None
    runtime: str


def model_files(models: Mapping[str, Any]) -> list[ModelFile]:
    """Return the models of a campaign as the page shows them."""
    return [
        ModelFile(
            which,
            str(model.get("name", "")),
            str(model.get("sha256", "")),
            model.get("bytes"),
            runtime_words(model.get("runtime") or {}),
        )
        for which in ("original", "deployed")
        if (model := models.get(which))
    ]


def runtime_words(runtime: Mapping[str, Any]) -> str:
    """Return a runtime in effect in words, like ``tflite (ai-edge-litert 2.3.0, XNNPACK, threads 1)``."""
    known = {name: value for name, value in runtime.items() if value not in (None, "", [], {})}
    name = str(known.pop("name", ""))
    package = " ".join(str(known.pop(key)) for key in ("package", "version") if key in known)
    told = [package] if package else []
    if "delegate" in known:
        told.append(str(known.pop("delegate")))
    told += [f"{key.replace('_', ' ')} {_plain(value)}" for key, value in known.items()]
    return f"{name} ({', '.join(told)})" if told else name


def versions(store: Store) -> list[tuple[str, str]]:
    """Return name and version of what ran on the host; of several environments all versions."""
    seen: dict[str, dict[str, None]] = {}
    for environment in store.environments().values():
        for name, value in environment.items():
            if value:
                seen.setdefault(name, {})[_plain(value)] = None
    return [(name, ", then ".join(values)) for name, values in seen.items()]


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


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_plain, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(one)}" for name, one in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)
