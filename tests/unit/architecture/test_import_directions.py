"""Who may import whom, read from the source: a lower layer never imports a higher one."""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import edgeflare

PROJECT = Path(__file__).resolve().parents[3]

FOLDERS = {"edgeflare_agent": "agent", "edgeflare_mutators": "mutators"}

PACKAGES = {
    "edgeflare": set(),
    "edgeflare_whitebox": {"edgeflare"},
    "edgeflare_bench": {"edgeflare", "edgeflare_whitebox"},
    "edgeflare_lab": {"edgeflare"},
}
"""The import packages of host/, each with those of them that it may import.

For now the last three may import all modules of the core, not its public names alone.
"""

ALIASES = {"bench", "distributed", "inspection", "testing", "virtual"}
"""Parts of host/edgeflare that have the names of what is in another package now."""

MOVED = {f"{name}.py" for name in ALIASES} | {"devices/__init__.py", "reports/__init__.py"}
"""Files of host/edgeflare that may name another package, as text: they have names that were there."""

LAYERS = (
    {"errors", "types", "_version", "assets"},
    {"_internal"},
    {"statistics", "document"},
    {"words/answers", "words/inputs", "words/search"},
    {"answers"},
    {
        "metrics", "oracles", "transcripts", "detections", "values",
    },  # aliases of answers, and distances of samples
    {"models", "devices", "seeds"},
    {"survey"},
    {"strategies"},
    {"store"},
    {"scheduler"},
    {"triage"},
    {"words/triage"},
    {"words/campaign", "words/preflight", "words/next_steps"},
    {"campaign"},
    {"explanation"},
    {"analysis"},
    {"words/repair"},
    {"repair"},
    {"words"},
    {"reports"},
    {"assertions", "nightly"},
    {"__init__"},  # the public API
    {"cli", "pytest_plugin"} | ALIASES,  # all but cli stand aside: nothing that runs imports them
)  # fmt: skip
"""The parts of host/edgeflare, lowest first. A part imports itself and what lies below its layer.

A module of words is a part of its own where stages word notices by it; the others have one layer.
"""

FREE = {"edgeflare_lab/testing": {"errors", "types", "oracles", "devices"}}
"""Folders of host/ that may import of the core these parts alone, and of packages their public names."""

USERS = {
    "edgeflare_agent": {
        *("_internal", "answers", "models", "devices", "seeds", "repair", "triage")
    },
    "edgeflare_mutators": {"strategies", "survey"},
}
"""The parts of host/edgeflare that may import the other roots."""

THIRD_PARTY = {
    "edgeflare_mutators": {"numpy", "cv2", "audiomentations"},
    "edgeflare_agent": {"numpy", "onnxruntime", "ai_edge_litert", "tflite_runtime", "tensorrt"},
}
"""All that the other roots may import beside the standard library and themselves."""

LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}


class Import(NamedTuple):
    """One imported name, in full, and where."""

    where: str
    name: str


@cache
def imports(project: Path, file: Path) -> list[Import]:
    """Every import of a file, wherever it stands; ``import_module("x")`` counts too."""
    return list(_imports(project, file))


def _imports(project: Path, file: Path) -> Iterator[Import]:
    package = file.relative_to(project).parts[1:-1]  # without host, agent or mutators
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        where = f"{file.relative_to(project).as_posix()}:{getattr(node, 'lineno', 0)}"
        match node:
            case ast.Import(names=names):
                yield from (Import(where, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                start = package[: len(package) - level + 1] if level else ()
                base = [*start, *([module] if module else [])]
                yield from (Import(where, ".".join([*base, alias.name])) for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(where, name)


def sources(project: Path, folder: str) -> list[Path]:
    return sorted((project / folder).rglob("*.py"))


def against_the_layers(project: Path) -> list[str]:
    """Imports within host/edgeflare that lead up or sideways, and parts that have no place."""
    found = []
    root = project / "host" / "edgeflare"
    for file in sources(project, "host/edgeflare"):
        path = file.relative_to(root)
        part = _part(path.with_suffix("").parts)
        if part not in LEVEL:
            found.append(
                f"{file.relative_to(project).as_posix()}: {part!r} has no place yet; "
                f"put it into LAYERS of {Path(__file__).name}"
            )
            continue
        for where, name in imports(project, file):
            top, *rest = name.split(".")
            if top in USERS and part not in USERS[top]:
                found.append(f"{where}: {part} may not import {top}")
            if top != "edgeflare":
                continue
            target = _part(rest) if rest and _exists(root / rest[0]) else "__init__"
            if target != part and target in LEVEL and LEVEL[target] >= LEVEL[part]:
                found.append(f"{where}: {part} may not import {name}, which is not below it")
    return list(dict.fromkeys(found))


def _part(names: Sequence[str]) -> str:
    """Return the part that a module of host/edgeflare belongs to, by the names of its path."""
    module = "/".join(names[:2])
    return module if module in LEVEL else names[0]


def _exists(module: Path) -> bool:
    return module.is_dir() or module.with_suffix(".py").is_file()


def foreign_to_the_small_roots(project: Path) -> list[str]:
    """Imports of the agent and the mutators beyond their own and the few libraries they may use."""
    found = []
    for root, libraries in THIRD_PARTY.items():
        allowed = sys.stdlib_module_names | libraries | {root}
        for file in sources(project, FOLDERS[root]):
            found += [
                f"{where}: {root} may not import {name}"
                for where, name in imports(project, file)
                if name.split(".")[0] not in allowed
            ]
    return found


def imports_of_insides(project: Path) -> list[str]:
    """Imports of the command line that are neither its own, nor ``_internal``, nor public names of a package."""
    found = []
    for file in sources(project, "host/edgeflare/cli"):
        for where, name in imports(project, file):
            top, *rest = name.split(".")
            if top in FOLDERS or (
                top == "edgeflare" and rest[:1] != ["_internal"] and not _is_public(rest)
            ):
                found.append(
                    f"{where}: cli may not import {name}; it uses the names that edgeflare and its "
                    "packages export, by from edgeflare.package import"
                )
    return found


def _is_public(parts: list[str]) -> bool:
    """Whether cli may import ``edgeflare.`` and these parts: its own, or a name of the first part's ``__all__``."""
    match parts:
        case ["cli", *_]:
            return True
        case [name]:
            return name in edgeflare.__all__
        case [package, name] if not name.startswith("_"):
            module = import_module(f"edgeflare.{package}")
            return name in getattr(module, "__all__", vars(module))
    return False


def between_packages(project: Path) -> list[str]:
    """Imports from one package of host/ of another that it may not import; the core doesn't name them."""
    found = []
    for package, may_import in PACKAGES.items():
        foreign = PACKAGES.keys() - may_import - {package}
        for file in sources(project, f"host/{package}"):
            path = file.relative_to(project / "host" / package).as_posix()
            named = texts(project, file) if package == "edgeflare" and path not in MOVED else []
            found += [
                f"{where}: {package} may not import {name}"
                for where, name in [*imports(project, file), *named]
                if name.partition(".")[0] in foreign
            ]
    return list(dict.fromkeys(found))


def texts(project: Path, file: Path) -> Iterator[Import]:
    """Yield the texts of a file that may be names of modules, such as ``package.module:name``."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]+(:\w+)?", text):
                where = f"{file.relative_to(project).as_posix()}:{node.lineno}"
                yield Import(where, text.partition(":")[0])


def past_what_is_free(project: Path) -> list[str]:
    """Imports of the core by the folders in FREE that aren't free to them."""
    found = []
    root = project / "host" / "edgeflare"
    for folder, free in FREE.items():
        for file in sources(project, f"host/{folder}"):
            for where, name in imports(project, file):
                top, *rest = name.split(".")
                if top != "edgeflare":
                    continue
                inside = len(rest) > 2 or (len(rest) == 2 and _exists(root.joinpath(*rest)))
                if not rest or rest[0] not in free or inside:
                    found.append(f"{where}: {folder} may not import {name}")
    return found


def circles_of_folders(project: Path) -> list[str]:
    """Circles of imports between a sub-folder and the files and sub-folders beside it."""
    root = project / "host" / "edgeflare"
    used: dict[str, dict[str, str]] = {}
    for file in sources(project, "host/edgeflare"):
        own = file.relative_to(root).with_suffix("").parts
        for where, name in imports(project, file):
            there = name.split(".")[1:] if name.startswith("edgeflare.") else []
            same = next((n for n, (a, b) in enumerate(zip(own, there, strict=False)) if a != b), 0)
            one, other = "/".join(own[: same + 1]), "/".join(there[: same + 1])
            if same and _exists(root / other):
                used.setdefault(one, {})[other] = where
    return [
        f"{where}: {one} may not import {other}, which imports it"
        for one, others in used.items()
        for other, where in others.items()
        if (root / one).is_dir() or (root / other).is_dir()
        if one in _reached(used, other)
    ]


def _reached(used: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Return what a part imports, directly or not."""
    found: set[str] = set()
    left = [start]
    while left:
        new = set(used.get(left.pop(), ())) - found
        found |= new
        left += new
    return found


CHECKS = [
    between_packages, past_what_is_free, against_the_layers, foreign_to_the_small_roots,
    imports_of_insides, circles_of_folders,
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_the_project_keeps_its_directions(check: Callable[[Path], list[str]]) -> None:
    assert (PROJECT / "host" / "edgeflare" / "cli").is_dir()
    found = check(PROJECT)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("file", "line", "check", "words"),
    [
        (
            "host/edgeflare/store/x.py",
            "from edgeflare.campaign import Run",
            against_the_layers,
            "host/edgeflare/store/x.py:2: store may",
        ),
        (
            "host/edgeflare/strategies/deep/x.py",
            "def f():\n    from edgeflare import store",
            against_the_layers,
            "host/edgeflare/strategies/deep/x.py:3: strategies may",
        ),
        (
            "host/edgeflare/models/x.py",
            "import edgeflare.devices",
            against_the_layers,
            "import edgeflare.devices",
        ),
        (
            "host/edgeflare/strategies/x.py",
            "from ..scheduler import Scheduler",
            against_the_layers,
            "import edgeflare.scheduler.Scheduler",
        ),
        (
            "host/edgeflare/campaign/x.py",
            "from edgeflare.words.verdict import sentence",
            against_the_layers,
            "import edgeflare.words.verdict.sentence",
        ),
        (
            "host/edgeflare/campaign/x.py",
            "from edgeflare import __version__",
            against_the_layers,
            "import edgeflare.__version__",
        ),
        (
            "host/edgeflare/errors.py",
            "importlib.import_module('edgeflare.types')",
            against_the_layers,
            "import edgeflare.types",
        ),
        (
            "host/edgeflare/store/x.py",
            "import edgeflare_agent.wire",
            against_the_layers,
            "import edgeflare_agent",
        ),
        (
            "host/edgeflare/scheduler/x.py",
            "from edgeflare_mutators import mutate",
            against_the_layers,
            "import edgeflare_mutators",
        ),
        ("host/edgeflare/magic/x.py", "", against_the_layers, "'magic'"),
        ("host/edgeflare/magic.py", "", against_the_layers, "'magic'"),
        (
            "agent/edgeflare_agent/x.py",
            "if TYPE_CHECKING:\n    import edgeflare",
            foreign_to_the_small_roots,
            "x.py:3: edgeflare_agent may",
        ),
        (
            "agent/edgeflare_agent/x.py",
            "import json, cv2",
            foreign_to_the_small_roots,
            "import cv2",
        ),
        (
            "mutators/edgeflare_mutators/x.py",
            "from edgeflare_agent.wire import Frame",
            foreign_to_the_small_roots,
            "import edgeflare_agent.wire.Frame",
        ),
        (
            "mutators/edgeflare_mutators/x.py",
            "from scipy import ndimage",
            foreign_to_the_small_roots,
            "import scipy.ndimage",
        ),
        (
            "host/edgeflare/campaign/x.py",
            "from edgeflare_lab.testing import FaultPlan",
            between_packages,
            "import edgeflare_lab.testing.FaultPlan",
        ),
        (
            "host/edgeflare/campaign/x.py",
            "NAME = 'edgeflare_bench.suites:Suite'",
            between_packages,
            "import edgeflare_bench.suites",
        ),
        (
            "host/edgeflare_whitebox/x.py",
            "from edgeflare_bench import Suite",
            between_packages,
            "import edgeflare_bench.Suite",
        ),
        (
            "host/edgeflare/campaign/x.py",
            "from edgeflare.testing import FaultPlan",
            against_the_layers,
            "import edgeflare.testing.FaultPlan",
        ),
        (
            "host/edgeflare_lab/testing/x.py",
            "from edgeflare.devices.transports.local import LocalTransport",
            past_what_is_free,
            "import edgeflare.devices.transports.local.LocalTransport",
        ),
        (
            "host/edgeflare_lab/testing/x.py",
            "from edgeflare.store import Store",
            past_what_is_free,
            "import edgeflare.store.Store",
        ),
        (
            "host/edgeflare_lab/testing/x.py",
            "from edgeflare import run_campaign",
            past_what_is_free,
            "import edgeflare.run_campaign",
        ),
        (
            "host/edgeflare_lab/testing/x.py",
            "import edgeflare",
            past_what_is_free,
            "edgeflare_lab/testing may",
        ),
        (
            "host/edgeflare/cli/x.py",
            "from edgeflare.store.tables import T",
            imports_of_insides,
            "import edgeflare.store.tables.T",
        ),
        (
            "host/edgeflare/cli/x.py",
            "from edgeflare.store import tables",
            imports_of_insides,
            "import edgeflare.store.tables",
        ),
        (
            "host/edgeflare/cli/x.py",
            "from edgeflare import store",
            imports_of_insides,
            "import edgeflare.store",
        ),
        (
            "host/edgeflare/cli/x.py",
            "import edgeflare_mutators",
            imports_of_insides,
            "import edgeflare_mutators",
        ),
    ],
)
def test_a_wrong_import_is_found(
    tmp_path: Path, file: str, line: str, check: Callable[[Path], list[str]], words: str
) -> None:
    for part in ("devices", "scheduler", "store", "campaign", "testing", "types", "words"):
        (tmp_path / "host" / "edgeflare" / part).mkdir(parents=True)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"import numpy as np\n{line}\n")
    (found,) = check(tmp_path)
    assert words in found


def test_no_part_of_the_text_reports_imports_them() -> None:
    before = "edgeflare.reports."
    used = {
        f"{before}{folder}{file.stem}": {
            name.rpartition(".")[0] for _, name in imports(PROJECT, file)
        }
        for folder in ("", "render.")
        for file in (PROJECT / "host" / "edgeflare" / "reports" / folder.strip(".")).glob("*.py")
    }
    reached = _reached(used, f"{before}text_reports")
    assert f"{before}render.markdown" in reached
    assert f"{before}text_reports" not in reached


def test_a_circle_between_folders_is_found(tmp_path: Path) -> None:
    files = {
        "devices/inventory.py": "from edgeflare.devices.session.link import Link",
        "devices/session/link.py": "from edgeflare.devices.transports.base import Stream",
        "devices/transports/base.py": "import edgeflare.devices.inventory",
        "devices/open.py": "from edgeflare.devices.session import link",
    }
    for name, line in files.items():
        path = tmp_path / "host" / "edgeflare" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(line)
    found = circles_of_folders(tmp_path)
    assert len(found) == 3
    assert not any("open" in line for line in found)
    words = "devices/inventory may not import devices/session, which imports it"
    assert any(words in line for line in found)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("host/edgeflare/campaign/x.py", "from edgeflare.store.tables import T"),
        ("host/edgeflare/strategies/x.py", "from edgeflare_mutators import get"),
        ("host/edgeflare/strategies/x.py", "from . import fitness"),
        ("host/edgeflare/campaign/x.py", "from edgeflare.words.preflight import sentence"),
        ("host/edgeflare/words/x.py", "from edgeflare.repair import Repair"),
        ("host/edgeflare/__init__.py", "from edgeflare.store import Store"),
        ("host/edgeflare/cli/x.py", "from edgeflare import __version__\nimport edgeflare.cli.app"),
        ("host/edgeflare/cli/x.py", "from edgeflare.campaign import Stage"),
        ("host/edgeflare/cli/x.py", "from edgeflare.errors import UsageError"),
        ("agent/edgeflare_agent/x.py", "import json\nfrom .wire import Frame"),
        ("mutators/edgeflare_mutators/x.py", "import cv2"),
        ("host/edgeflare_lab/testing/x.py", "from edgeflare.devices import Transport"),
        (
            "host/edgeflare_lab/testing/x.py",
            "from edgeflare_lab.testing.fault_plan import FaultPlan",
        ),
    ],
)
def test_a_right_import_is_not(tmp_path: Path, file: str, line: str) -> None:
    for part in ("store", "words", "repair"):
        (tmp_path / "host" / "edgeflare" / part).mkdir(parents=True, exist_ok=True)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{line}\n")
    assert [found for check in CHECKS for found in check(tmp_path)] == []
