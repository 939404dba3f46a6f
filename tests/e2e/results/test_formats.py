"""What programs read of EdgeFlare keeps its spelling: flags, keys of files and of JSON output, tables, words, imports.

The names are stored in `tests/data/formats.json`. A change that adds a name adds it there too; a name that
others read is never removed or spelled anew. This writes the file again, unless a name would be lost:
`PYTHONPATH=tests/helpers python tests/e2e/results/test_formats.py`.
"""

import contextlib
import importlib
import io
import json
import re
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from command import DEMO, ROOT, edgeflare, must_run
from pydantic import BaseModel

from edgeflare import CampaignConfig, Device
from edgeflare.cli.app import app
from edgeflare.nightly import NightlyConfig
from edgeflare.reports.mlflow_run import run_metrics, run_params, run_tags
from edgeflare.reports.sections.campaign import make_report
from edgeflare.reports.telemetry import METRIC_FAMILIES
from edgeflare.store import CampaignLock, Store
from edgeflare_mutators import operators

FORMATS = Path(__file__).resolve().parents[2] / "data" / "formats.json"
_DEVICE = re.compile(r"^(by_device|telemetry)[.].*")
_MEASURED = {"telemetry.*"}
"""What a device reports is not the same everywhere; its names are those of the JSON."""
_DIRECTIVE = re.compile(r"^\.\. auto\w+:: (edgeflare[\w.]*)\.(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"from (edgeflare[\w.]*) import ([\w, ]+|\([\w,\s]+\))")
_KEY = re.compile(r"[a-z][a-z0-9_]*\Z")


def shape(value: Any) -> Any:
    """The keys of a JSON value, at every depth; keys that are data (names, hashes) count as one, `*`."""
    if isinstance(value, dict):
        keys: dict[str, Any] = {}
        for key, inner in value.items():
            name = key if _KEY.match(key) else "*"
            keys[name] = _joined(keys.get(name), shape(inner))
        return dict(sorted(keys.items()))
    if isinstance(value, list):
        joined = None
        for inner in value:
            joined = _joined(joined, shape(inner))
        return joined
    return None


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        return {name: _joined(one.get(name), other.get(name)) for name in names}
    return other if one is None else one


def flags(command: Any, name: str) -> dict[str, list[str]]:
    """The flags and arguments of a command and of those below it."""
    context = click.Context(command)
    spellings = {
        spelling
        for each in command.get_params(context)
        for spelling in (*each.opts, *each.secondary_opts)
    }
    found = {name: sorted(spellings)}
    for below in command.list_commands(context) if hasattr(command, "list_commands") else ():
        found |= flags(command.get_command(context, below), f"{name} {below}")
    return found


def imports(stored: dict[str, list[str]]) -> dict[str, list[str]]:
    """The names by module that the stored ones or the documentation state, where they can be imported."""
    stated = {(module, name) for module, names in stored.items() for name in names}
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r" as \w+", "", page.read_text(encoding="utf-8"))
        stated |= set(_DIRECTIVE.findall(text))
        for module, names in _IMPORT.findall(text):
            stated |= {(module, name) for name in re.findall(r"\w+", names)}
    found: dict[str, list[str]] = {}
    for module, name in sorted(stated):
        with contextlib.suppress(ImportError):
            if hasattr(importlib.import_module(module), name):
                found.setdefault(module, []).append(name)
    return found


def database(file: Path) -> dict[str, Any]:
    """Tables, columns, and the keys of the JSON documents in them."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        tables = sorted(
            name
            for (name,) in connection.execute("select name from sqlite_master where type='table'")
        )
        found: dict[str, Any] = {}
        for table in tables:
            if table.startswith(("sqlite_", "alembic_")):
                continue
            cursor = connection.execute(f"select * from {table}")
            columns: dict[str, Any] = {name: None for name, *_ in cursor.description}
            for row in cursor:
                for name, value in zip(columns, row, strict=True):
                    with contextlib.suppress(TypeError, ValueError):  # what is no JSON document
                        columns[name] = _joined(columns[name], shape(json.loads(value)))
            found[table] = columns
        return found


def settings(config: type[BaseModel]) -> list[str]:
    """The keys of a settings file, in all its sections."""
    schema = config.model_json_schema()
    sections = [schema, *schema.get("$defs", {}).values()]
    return sorted({name for section in sections for name in section.get("properties", {})})


def formats(home: Path) -> dict[str, Any]:
    """Run EdgeFlare once through what it writes, and return the names in it."""
    pair = ["--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite"]

    def out(*arguments: object) -> str:
        ran = must_run(*arguments, home=home)
        return ran.out

    def keys(*arguments: object) -> Any:
        return shape(json.loads(out(*arguments)))

    found: dict[str, Any] = {"flags": flags(typer.main.get_command(app), "edgeflare")}
    found["imports"] = imports(json.loads(FORMATS.read_text()).get("imports", {}))
    found["run --json"] = keys(
        "run", *pair, "--seeds", DEMO / "seeds.npz", "--limit", 3, "--device", "local", "--device", "local", "--fleet",
        "replicate", "--out", "c", "--json",
    )  # fmt: skip
    found["campaign.sqlite"] = database(home / "c" / "campaign.sqlite")
    found["live.json"] = shape(json.loads((home / "c" / "live.json").read_text()))
    for command in ("show", "status"):
        found[f"{command} --json"] = keys(command, "c", "--json")
    found["report --format json"] = keys("report", "c", "--format", "json")
    found["report --format csv"] = out("report", "c", "--format", "csv").splitlines()[0].split(",")
    xml = out("report", "c", "--format", "junit")
    found["report --format junit"] = sorted(set(re.findall(r"<(\w+)|(?<=\s)(\w+)=\"", xml)))
    out("export", "c", "e")
    lines = (home / "e" / "triggers.jsonl").read_text().splitlines()
    found["triggers.jsonl"] = shape([json.loads(line) for line in lines])
    found["telemetry.csv"] = (home / "e/telemetry.csv").read_text().splitlines()[0].split(",")
    found["telemetry.openmetrics.txt"] = sorted(one.sample_name for one in METRIC_FAMILIES)
    with Store.open(home / "c") as store:
        data = make_report(store)
        logged = (run_metrics(data.summary), run_params(store), run_tags(data))
    found["export --mlflow"] = {
        kind: sorted({_DEVICE.sub(r"\1.*", name) for name in names} - _MEASURED)
        for kind, names in zip(("metrics", "params", "tags"), logged, strict=True)
    }
    found["replay --json"] = keys("replay", "c", "--device", "local", "--out", "r", "--json")
    found["replay's campaign.sqlite"] = database(home / "r" / "campaign.sqlite")
    found["corpus add --json"] = keys("corpus", "add", "k", "c", "r", "--json")
    found["corpus show --json"] = keys("corpus", "show", "k", "--json")
    (corpus,) = (home / "k").glob("*.sqlite")
    found[corpus.name] = database(corpus)
    found["devices check --json"] = keys("devices", "check", "local", "--json")
    found["campaign.toml"] = settings(CampaignConfig)
    found["nightly.toml"] = settings(NightlyConfig)
    found["devices.toml"] = settings(Device)
    with CampaignLock(home / "c"):
        found["campaign.lock.json"] = shape(json.loads((home / "c/campaign.lock.json").read_text()))
    found["operators"] = sorted(operators())
    found["exit codes"] = [
        edgeflare("show", "nowhere", home=home).code,
        edgeflare("run", *pair, "--seeds", DEMO / "seeds.npz", "--device", "ssh://u@127.0.0.1:1", home=home).code,
    ]  # fmt: skip
    return json.loads(json.dumps(found))


@pytest.mark.extended
def test_no_name_that_programs_read_is_lost(tmp_path):
    with contextlib.redirect_stdout(io.StringIO()):
        now = formats(tmp_path)
    before = json.loads(FORMATS.read_text())
    assert lost(before, now) == []
    assert lost(now, before) == [], "new names: write tests/data/formats.json again"


def lost(before: Any, now: Any, where: str = "") -> list[str]:
    """The paths of names that are in the first value and not in the second."""
    if isinstance(before, dict):
        if not isinstance(now, dict):
            return [where]
        return [
            path
            for name, inner in before.items()
            for path in (
                lost(inner, now[name], f"{where}/{name}") if name in now else [f"{where}/{name}"]
            )
        ]
    if isinstance(before, list):
        return [f"{where}/{name}" for name in before if name not in (now or [])]
    return []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        new = formats(Path(folder))
    if gone := lost(json.loads(FORMATS.read_text()), new):
        sys.exit("not written, since these names would be lost:\n" + "\n".join(gone))
    FORMATS.write_text(json.dumps(new, indent=1) + "\n")
