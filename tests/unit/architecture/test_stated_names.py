"""Names of the library that documentation and messages state exist."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflare._internal.plugins import GROUPS

PROJECT = Path(__file__).resolve().parents[3]
_DOTTED = re.compile(r"(?<![\w./@:-])edgeflare(?:\.[A-Za-z_]\w*)+(?![\w/-])")
_IMPORTED = re.compile(r"from (edgeflare[\w.]*) import ([\w, ]+|\([\w,\s]+\))")

_NO_OBJECTS = {*GROUPS.values(), "edgeflare.mutators", "edgeflare.input", "edgeflare.decoder"}
_NO_OBJECTS |= {"edgeflare.limits", "edgeflare.verdict", "edgeflare.version"}
"""Groups of entry points, keys of a model file's metadata, and tags of an MLflow run."""


def stated(text: str) -> set[str]:
    """Return the dotted names in a text, with those that it shows how to import."""
    names = {name for name in _DOTTED.findall(text) if not name.endswith(".md")}
    for module, imported in _IMPORTED.findall(re.sub(r" as \w+", "", text)):
        names |= {f"{module}.{name}" for name in re.findall(r"\w+", imported)}
    return names - _NO_OBJECTS


def texts() -> Iterator[tuple[str, str]]:
    for file in (*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")):
        if file.name != "CHANGELOG.md":  # names of earlier versions
            yield file.relative_to(PROJECT).as_posix(), file.read_text(encoding="utf-8")
    for file in (PROJECT / "host").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{file.relative_to(PROJECT).as_posix()}:{node.lineno}", node.value


def exists(name: str) -> bool:
    module, *attributes = name.split(".")
    found = importlib.import_module(module)
    for attribute in attributes:
        module += f".{attribute}"
        if not hasattr(found, attribute):
            try:
                importlib.import_module(module)
            except ModuleNotFoundError:
                return False
        found = getattr(found, attribute)
    return True


def test_every_one_exists() -> None:
    found = [(where, name) for where, text in texts() for name in stated(text)]
    assert len({name for _, name in found}) > 20
    assert [one for one in found if not exists(one[1])] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see `edgeflare.gone(1)`.", ["edgeflare.gone"]),
        ("from edgeflare import Ask, Gone\n", ["edgeflare.Gone"]),
        ("from edgeflare.campaign import (\n    Gone,\n)", ["edgeflare.campaign.Gone"]),
        ("entry points `edgeflare.oracles`, ~/.config/edgeflare/devices.toml", []),
    ],
)
def test_one_that_does_not_would_be_seen(text: str, names: list[str]) -> None:
    assert [name for name in stated(text) if not exists(name)] == names


def test_no_type_alias_is_defined_twice() -> None:
    places: dict[tuple[str, str], list[str]] = {}
    for file in (PROJECT / "host").rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(name)], value=ast.Subscript() as value)
                    | ast.AnnAssign(target=ast.Name(name), value=ast.Subscript() as value)
                ):
                    alias = (name, ast.unparse(value))
                    places.setdefault(alias, []).append(file.relative_to(PROJECT).as_posix())
    assert ("Prompt", "Callable[[str], str | None]") in places
    assert {alias: files for alias, files in places.items() if len(files) > 1} == {}
