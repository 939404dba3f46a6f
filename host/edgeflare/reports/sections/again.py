"""How to run a campaign again: its models, its settings and what ran them."""

import shlex
from collections.abc import Mapping
from typing import Any

from edgeflare._internal import toml
from edgeflare._internal.text import number_text
from edgeflare.analysis.campaign_verdict import is_control
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.analysis.summary import Summary
from edgeflare.document import (
    Block,
    Column,
    CommandLine,
    Figures,
    Fold,
    KeyFigure,
    Section,
    Table,
    Text,
)
from edgeflare.reports.campaign import key_figures
from edgeflare.store import Store, campaign_text
from edgeflare.words.devices import runtime_words, value_words


def again_section(summary: Summary, store: Store, replay: ReplaySummary | None) -> Section:
    """Return how to run a campaign, or a replay, once more."""
    blocks: list[Block] = [
        Text("A single finding: its card above has the command under “How to reproduce”."),
        _models_table(summary.models),
        Figures((*_settings(summary), *_versions(store))),
    ]
    if replay is not None:
        send_again = shlex.join(["edgeflare", "replay", campaign_text(replay.source)])
        blocks += [
            Text(
                "This is a replay: this line, with the deployed model above as --deployed, sends "
                "its inputs again."
            ),
            CommandLine(send_again),
        ]
    elif is_control(store.folder):
        blocks.append(
            Text(
                "This is the control of the campaign in the folder above it: it is run with that, "
                "by control = true."
            )
        )
    else:
        blocks += [
            Fold(
                "Save this as campaign.toml; the paths are those of the machine it ran on.",
                (CommandLine(campaign_toml(store.campaign)),),
            ),
            CommandLine("edgeflare run campaign.toml --out another-folder"),
        ]
    return Section("run-again", "Run it again", tuple(blocks), brief=False, order=900)


def _settings(summary: Summary) -> list[KeyFigure]:
    found = [one for one in key_figures(summary) if one.name == "search"]
    seed = summary.search.get("seed")
    return found + ([] if seed is None else [KeyFigure("seed of all randomness", str(seed))])


def _models_table(models: Mapping[str, Any]) -> Table:
    """Return the models of a campaign: their files, byte for byte, and the runtimes in effect."""
    columns = (
        Column("model", 0, lambda one: one[0], text=True),
        Column("file", 0, lambda one: str(one[1].get("name", "")), text=True),
        Column("bytes", 0, lambda one: number_text(one[1].get("bytes"), 0)),
        Column("SHA-256", 0, lambda one: str(one[1].get("sha256", "")), text=True),
        Column("runtime", 0, lambda one: runtime_words(one[1].get("runtime") or {}), text=True),
    )
    rows = [(which, models[which]) for which in ("original", "deployed") if models.get(which)]
    if repair := models.get("deployed", {}).get("repair"):
        rows.append(("its repair", repair))
    for which, model in [*rows]:
        if fixed := model.get("fixed_inputs"):
            rows.append((f"fixed inputs of the {which} model", fixed))
    return Table(columns, rows, "The models' files, byte for byte, and what ran them", "models")


def _versions(store: Store) -> list[KeyFigure]:
    """Return the versions of what ran on the host; of several environments all of them."""
    versions: dict[str, dict[str, None]] = {}
    for environment in store.environments().values():
        for name, value in environment.items():
            if value:
                versions.setdefault(name, {})[value_words(value)] = None
    return [KeyFigure(name, ", then ".join(values)) for name, values in versions.items()]


def campaign_toml(config: Mapping[str, Any]) -> str:
    """Return a stored configuration as TOML, without its folder and what is not set."""
    plain, tables = [], []
    for name, value in config.items():
        if name == "out":
            continue
        if isinstance(value, Mapping):
            tables.append(_toml_table(name, value))
        elif value is not None:
            plain.append(f"{name} = {toml.dumps(value)}")
    return "\n".join(["\n".join(plain), *filter(None, tables)]).strip() + "\n"


def _toml_table(name: str, values: Mapping[str, Any]) -> str:
    lines = [
        f"{key} = {text}"
        for key, value in values.items()
        if value is not None and (text := toml.dumps(value)) not in ("{}", "[]")
    ]
    return "\n".join(["", f"[{name}]", *lines]) if lines else ""
