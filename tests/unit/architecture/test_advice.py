"""What sentences tell a user to do can be done: flags, commands and extras exist."""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from edgeflare._internal import extras, toml
from edgeflare.cli.app import app
from edgeflare.errors import UsageError

PROJECT = Path(__file__).resolve().parents[3]
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*(?<!-)")
_COMMAND = re.compile(r"`edgeflare ([^`]+)`")
_EXTRA = re.compile(r"edgeflare\[(\w+)\]")
_OF_OTHERS = {"--tls", "--root", "--edgeflare-device", "--edgeflare-away", "--this", "--no-this"}
_OF_OTHERS |= {"--sort", "--system-site-packages", "--inputIOFormats", "--outputIOFormats"}
"""Flags of other programs, and examples in docstrings."""


def texts(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield each text of the code, with {} for what is filled in, and where it stands."""
    for file in (one for folder in folders for one in (PROJECT / folder).rglob("*.py")):
        inner: set[int] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.JoinedStr(values=values):
                    inner |= set(map(id, values))
                    whole = [one.value if isinstance(one, ast.Constant) else "{}" for one in values]
                    text = "".join(map(str, whole))
                case ast.Constant(value=str(text)) if id(node) not in inner:
                    pass
                case _:
                    continue
            if " " in text.strip():  # a sentence; words alone are arguments of other programs
                yield f"{file.relative_to(PROJECT).as_posix()}:{node.lineno}", text


def flags_of_commands() -> dict[tuple[str, ...], set[str]]:
    found: dict[tuple[str, ...], set[str]] = {}

    def add(command: Any, name: tuple[str, ...], parent: Any = None) -> None:
        context = command.context_class(command, info_name=" ".join(name), parent=parent)
        found[name] = {*command.make_parser(context)._long_opt, "--help"}
        for inner in command.list_commands(context) if hasattr(command, "list_commands") else ():
            add(command.get_command(context, inner), (*name, inner), context)

    add(typer.main.get_command(app), ())
    return found


def test_flags_and_commands_of_sentences_exist() -> None:
    commands = flags_of_commands()
    known = set().union(*commands.values()) | _OF_OTHERS
    unknown, wrong, count = [], [], 0
    for where, text in texts("host", "agent", "mutators"):
        if where.startswith("host/edgeflare_lab/virtual/"):  # tar's, pip's and apt's
            continue
        unknown += [(where, flag) for flag in _FLAG.findall(text) if flag not in known]
        for words in map(str.split, _COMMAND.findall(text)):
            name: tuple[str, ...] = ()
            while words and (*name, words[0]) in commands:
                name = (*name, words.pop(0))
            flags = {flag for word in words for flag in _FLAG.findall(word)}
            wrong += [(where, *name, flag) for flag in flags - commands[name]]
            count += 1
    assert count > 30
    assert (unknown, wrong) == ([], [])


def test_the_demo_takes_what_its_verdict_recommends() -> None:
    assert "--reference" in flags_of_commands()["demo",]


def extras_of_project() -> dict[str, set[str]]:
    project = toml.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        name: {re.match(r"[\w.-]+", one).group().lower() for one in packages}  # type: ignore[union-attr]
        for name, packages in project["optional-dependencies"].items()
    }


def test_extras_of_sentences_have_what_they_are_named_for() -> None:
    known = extras_of_project()
    found = [
        (where, text, extra)
        for where, text in texts("host", "agent", "mutators")
        for extra in _EXTRA.findall(text)
    ]
    assert len(found) > 5
    for where, text, extra in found:
        assert any(package in text.lower() for package in known[extra]), (where, text)


_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


@pytest.mark.parametrize(
    ("load", "arguments"),
    [
        (extras.rapidfuzz, ()),
        (extras.soundfile, ()),
        (extras.soxr, ()),
        (extras.mlflow, ()),
        (extras.distributed, ()),
        (extras.torch, ()),
        (extras.torch, ("inspection", "relevance")),
        (extras.scikit_learn, ("cluster",)),
        (extras.scikit_learn, ("cluster", "inspection", "clustering")),
        (extras.onnx, ()),
    ],
)
def test_a_missing_package_is_in_the_extra_that_is_named(
    load: Any, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def missing(name: str) -> Any:
        asked.append(name.partition(".")[0])
        raise ImportError(name)

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(UsageError) as error:
        load(*arguments)
    [extra] = _EXTRA.findall(str(error.value)) or [None]
    package = _DISTRIBUTIONS.get(asked[0], asked[0])
    if extra is None:
        assert f"`pip install {package}`" in str(error.value)
        assert find_spec(package) is not None
    else:
        assert any(one.startswith(package) for one in extras_of_project()[extra])
