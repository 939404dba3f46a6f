"""What an import costs and needs, seen in a fresh interpreter."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from edgeflare._internal import toml

PROJECT = Path(__file__).resolve().parents[3]
ROOTS = (
    *("host/edgeflare", "host/edgeflare_whitebox", "host/edgeflare_bench", "host/edgeflare_lab"),
    *("agent/edgeflare_agent", "mutators/edgeflare_mutators"),
)
HEAVY = {
    "cv2", "numpy", "onnxruntime", "ai_edge_litert", "paramiko", "pydantic", "sqlalchemy",
}  # fmt: skip

LOADED = "import sys, json; import {module}; print(json.dumps(sorted(sys.modules)))"

WITHOUT = """
import importlib, json, sys
blocked, modules = json.loads(sys.stdin.read())
for name in blocked:
    sys.modules[name] = None  # an import of it fails as if it were not installed
for name in modules:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
"""


def python(code: str, text: str = "") -> str:
    """Run code in a fresh interpreter; return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["edgeflare", "edgeflare.cli"])
def test_the_import_is_light(module: str) -> None:
    loaded = set(json.loads(python(LOADED.format(module=module))))
    assert module in loaded
    assert HEAVY & loaded == set()


def test_showing_a_campaign_needs_nothing_that_running_one_does() -> None:
    words = "edgeflare.reports.render.terminal, edgeflare.reports.sections.campaign"
    loaded = set(json.loads(python(LOADED.format(module=words))))
    assert HEAVY & loaded == {"numpy", "pydantic", "sqlalchemy"}
    assert loaded.isdisjoint({"edgeflare.campaign.executor", "edgeflare.devices.open"})


def test_a_campaign_in_a_folder_needs_no_other_store(tmp_path: Path) -> None:
    use = f"""
import json, sys
from pathlib import Path
from edgeflare.store import CampaignLock, Store
with Store.create(Path({str(tmp_path / "c")!r}), {{}}) as store, CampaignLock(store.folder):
    store.add_notice("x")
with Store.open(Path({str(tmp_path / "c")!r})) as store:
    assert store.notices() == ["x"]
print(json.dumps(sorted(sys.modules)))
"""
    assert [name for name in json.loads(python(use)) if name.startswith("edgeflare_lab")] == []


def test_the_plugin_costs_a_pytest_session_next_to_nothing() -> None:
    before = set(json.loads(python(LOADED.format(module="pytest"))))
    loaded = set(json.loads(python(LOADED.format(module="pytest, edgeflare.pytest_plugin"))))
    new = loaded - before
    assert HEAVY & new == set()
    assert {name for name in new if name.startswith("edgeflare")} == {
        *("edgeflare", "edgeflare.assertions", "edgeflare.assertions.running_test"),
        *("edgeflare.errors", "edgeflare.pytest_plugin"),
    }
    others = {name.partition(".")[0] for name in new} - sys.stdlib_module_names
    assert others - {"edgeflare"} <= {"lazy_loader", "packaging"}


def test_heavy_libraries_would_be_seen() -> None:
    loaded = set(json.loads(python(LOADED.format(module="numpy"))))
    assert HEAVY & loaded == {"numpy"}


def test_every_module_imports_without_the_optional_libraries() -> None:
    project = toml.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {_distribution(text) for text in project["dependencies"]}
    optional = {
        _distribution(text) for texts in project["optional-dependencies"].values() for text in texts
    } - {*needed, project["name"]}
    blocked = sorted(
        name
        for name, distributions in packages_distributions().items()
        if {_normal(distribution) for distribution in distributions} <= optional
    )
    assert "asyncssh" in blocked
    problems = python(WITHOUT, json.dumps([blocked, sorted(_modules())])).splitlines()
    of_pytest = "edgeflare.pytest_plugin: import of pytest halted; None in sys.modules"
    assert problems == [of_pytest]  # which nothing but pytest imports


def _modules() -> list[str]:
    names = []
    for root in ROOTS:
        for file in (PROJECT / root).rglob("*.py"):
            parts = file.relative_to((PROJECT / root).parent).with_suffix("").parts
            if parts[-1] != "__main__" and not parts[-1].startswith("build_"):  # these run
                names.append(".".join(part for part in parts if part != "__init__"))
    return names


def _distribution(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return _normal(name.group())


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
