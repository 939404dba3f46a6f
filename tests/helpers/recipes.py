"""The recipes in deploy/, and their scripts run on this machine in a home folder and with a PATH of their own."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"


def scripts() -> list[Path]:
    """Return every script of the recipes."""
    return sorted(DEPLOY.rglob("*.sh"))


def documents() -> list[Path]:
    """Return every text of the recipes."""
    return sorted(DEPLOY.rglob("*.md"))


def run_script(
    script: Path,
    *arguments: str,
    home: Path,
    commands: Path | None = None,
    environment: Mapping[str, str] | None = None,
    by_stdin: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Run a script with sh, without network for pip.

    `commands`: a folder of stand-ins that come first in the PATH. `by_stdin`: as ``ssh ... 'sh -s' <`` does.
    """
    home.mkdir(parents=True, exist_ok=True)
    first = "" if commands is None else f"{commands}{os.pathsep}"
    return subprocess.run(
        ["sh", *(["-s", "--"] if by_stdin else [str(script)]), *arguments],
        input=script.read_text(encoding="utf-8") if by_stdin else "",
        capture_output=True,
        text=True,
        timeout=180,
        cwd=home,
        env={
            "HOME": str(home),
            "PATH": first + os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            **(environment or {}),
        },
        check=False,
    )


def write_command(folder: Path, name: str, text: str) -> Path:
    """Write a stand-in for a command: the text of a shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / name
    command.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    command.chmod(0o755)
    return command


def write_python(folder: Path, name: str, *, first: str = "") -> Path:
    """Write a stand-in for a Python: this one, but its new environments borrow this one's pip.

    Unpacking pip takes most of an environment's seconds. `first`: shell text that is run before all else.
    """
    found = importlib.util.find_spec("pip")
    assert found is not None
    assert found.origin is not None
    (folder / "borrowed").mkdir(parents=True, exist_ok=True)
    (folder / "borrowed" / "pip").symlink_to(Path(found.origin).parent)
    text = f"""{first}
if [ "$1 ${{2:-}}" = '-m venv' ]; then
    for made; do :; done
    {sys.executable} "$@" --without-pip || exit
    echo {folder}/borrowed >"$(echo "$made"/lib/python*/site-packages)/borrowed.pth"
    exit
fi
exec {sys.executable} "$@"
"""
    return write_command(folder, name, text)
