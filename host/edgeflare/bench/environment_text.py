"""What a bench ran on, as Markdown: settings, devices, versions, models."""

from collections.abc import Mapping
from typing import Any

from edgeflare._internal.text import NOTHING
from edgeflare.bench import explanations
from edgeflare.bench.report import BenchReport, ResolvedSearch
from edgeflare.reports.document import (
    Block,
    Explanation,
    Heading,
    Item,
    Listing,
    Text,
    code,
    plain,
    table_of,
)


def environment(report: BenchReport) -> list[Block]:
    """Return the last part of the document."""
    return [
        Heading("How it was run", 2),
        Explanation(_settings(report)),
        *_models(report),
        *_devices(report),
        *_versions(report),
        Explanation(explanations.files(report.folder)),
    ]


def _settings(report: BenchReport) -> str:
    settings = report.settings
    queries, seconds = (
        _limit(settings["max_queries"], "queries"),
        _limit(settings["timeout_s"], "seconds"),
    )
    floor = settings["margin_floor"]
    limits = [
        f"suite {code(report.suite)}",
        f"at most {settings['seeds']} seed inputs of each pair",
        f"campaign seeds from {settings['seed']}, {settings['repeats']} in all",
        f"at most {queries} and {seconds} a search",
        f"margin floor {floor:g}" if floor else "no margin floor",
    ]
    rows = [
        f"- {plain(strategy['name'])}: {_strategy(strategy)}" for strategy in settings["strategies"]
    ]
    queries_in_all = ", ".join(
        f"{count:,} {plain(kind)}" for kind, count in report.queries.items() if count
    )
    return "\n".join(
        [
            *([f"- {code(report.command)}"] if report.command else []),
            f"- {'; '.join(limits)}; where a strategy has its own, it says so here",
            *rows,
            *map(_resolved, report.resolved),
            f"- queries in all: {queries_in_all or 'none'}",
        ]
    )


def _limit(value: float, unit: str) -> str:
    return f"{value:g} {unit}" if value else f"any number of {unit}"


def _strategy(strategy: Mapping[str, Any]) -> str:
    parts = [f"strategy {code(strategy['strategy'])}"]
    for name, value in (strategy.get("options") or {}).items():
        parts.append(code(f"{name} = {value}"))
    for name in ("operators", "seeds", "repeats", "max_queries", "timeout_s", "margin_floor"):
        value = strategy.get(name)
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        if value not in (None, ""):
            parts.append(f"{plain(name)} {plain(str(value))}")
    return ", ".join(parts)


def _resolved(one: ResolvedSearch) -> str:
    at_once = f", {one.candidates} candidates at once" if one.candidates > 1 else ""
    three = ", three classes tied" if one.tied_classes == 3 else ""
    where = f"{plain(one.strategy)} on {plain(one.pair)}"
    return f"- {where}: crossing {one.crossing}, effort {one.effort}{three}{at_once}"


def _models(report: BenchReport) -> list[Block]:
    rows = [
        _model(pair, side, models.get(side) or {})
        for pair, several in report.models.items()
        for side in ("original", "deployed")
        for models in several
    ]
    header = ["pair", "model", "file", "runtime", "SHA-256 begins"]
    rows = list(dict.fromkeys(rows))
    return [Heading("Models"), table_of(header, rows, text=len(header))] if rows else []


def _model(pair: str, side: str, model: Mapping[str, Any]) -> tuple[str, ...]:
    runtime = model.get("runtime") or {}
    version = f"{runtime.get('name', '')} {runtime.get('version', '')}"
    return pair, side, str(model.get("name", NOTHING)), version, str(model.get("sha256", ""))[:16]


def _devices(report: BenchReport) -> list[Block]:
    blocks: list[Block] = [Heading("Devices")] if report.devices else []
    for device in report.devices:
        texts = ((name, _text(name, value)) for name, value in device.fingerprint.items())
        items = tuple(Item(f"{name}: {text}") for name, text in texts if text)
        blocks += [Text(", ".join(device.names), "strong"), Listing(items)]
    return blocks


def _text(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(key, part)}" for key, part in value.items())
    words = value if isinstance(value, list | tuple) else str(value).split()
    if name == "cpu_flags":
        return f"{len(words)} of them, in report.json"
    return " ".join(map(str, words))


def _versions(report: BenchReport) -> list[Block]:
    items = tuple(
        Item(", ".join(f"{name} {value}" for name, value in one.items()))
        for one in report.environments
    )
    return [Heading("Host"), Listing(items)] if items else []
