"""What the recipes tell holds: scripts parse, entries load, commands and files exist."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from stand_ins import DEPLOY, documents, run_script, scripts

from edgeflare import load_inventory
from edgeflare.cli.app import app


def _named(path: Path) -> str:
    return str(path.relative_to(DEPLOY.parent))


def _blocks(document: Path, *languages: str) -> Iterator[str]:
    text = document.read_text(encoding="utf-8")
    for found in re.finditer(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        if found[1] in languages:
            yield found[2]


def _told_commands() -> Iterator[tuple[str, str]]:
    for document in documents():  # tests/docs has those in blocks
        for line in re.findall(r"`(edgeflare [^`]*)`", document.read_text(encoding="utf-8")):
            yield _named(document), line
    for script in scripts():
        for line in re.findall(r"edgeflare devices [\w $-]+", script.read_text(encoding="utf-8")):
            yield _named(script), line.replace("$name", "pi")


@pytest.mark.parametrize("script", scripts(), ids=_named)
def test_a_script_parses_and_passes_shellcheck(script: Path) -> None:
    subprocess.run(["sh", "-n", script], check=True)
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", scripts(), ids=_named)
def test_a_script_reports_its_options_and_refuses_others(script: Path, tmp_path: Path) -> None:
    told = run_script(script, "--help", home=tmp_path)
    assert told.returncode == 0
    assert told.stdout.startswith("usage: sh ")
    refused = run_script(script, "--colour", home=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert re.fullmatch(rf"{script.name}: .*--colour.*--help.*\n", refused.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("document", documents(), ids=_named)
def test_every_inventory_entry_loads(document, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    blocks = (block for block in _blocks(document, "toml") if "[devices." in block)
    for number, block in enumerate(blocks):
        inventory = tmp_path / f"{number}.toml"
        inventory.write_text(block, encoding="utf-8")
        told = re.findall(r"^\s*\[devices\.([\w-]+)\]", block, re.MULTILINE)
        assert set(told) <= set(load_inventory(inventory))


@pytest.mark.parametrize(("place", "line"), sorted(set(_told_commands())))
def test_every_command_line_is_one_of_edgeflare(place: str, line: str) -> None:
    words = shlex.split(line.partition(" | ")[0].partition(" > ")[0], comments=True)[1:]
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert words, f"{place}: {line} names no command"
        name = words.pop(0)
        inner = command.get_command(typer.Context(command), name)
        assert inner is not None, f"{place}: there is no command {name} ({line})"
        command = inner
    if not words or "..." in words:
        return  # a command's name in a sentence
    with command.make_context(line, words):
        pass


@pytest.mark.parametrize("document", documents(), ids=_named)
def test_every_file_that_is_named_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = re.findall(r"\bdeploy/[\w./@-]+\.\w+\b", text)
    assert [name for name in named if not (DEPLOY.parent / name).is_file()] == []


def test_the_list_of_folders_leads_to_their_pages() -> None:
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert [link for link in links if not (DEPLOY / link).exists()] == []
    folders = {path.name for path in DEPLOY.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert folders <= set(links)
