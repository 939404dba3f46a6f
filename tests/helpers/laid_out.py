"""Systems that are laid out file by file, and commands that stand in for those of a device."""

from pathlib import Path

import pytest


def lay_out(root: Path, files: dict[str, str]) -> str:
    """Write files below a root; return the root as the agent takes it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return str(root)


def stand_in(folder: Path, name: str, script: str) -> Path:
    """Make a command of a shell script's lines."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def on_path(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have commands of this folder found before the system's."""
    patch.setenv("PATH", str(folder), prepend=":")
