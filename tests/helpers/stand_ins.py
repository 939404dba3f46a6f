"""Stand-ins for what a device has: Pythons that lack something, small wheels, system files, commands.

The last part runs the scripts of the recipes in deploy/ on this machine, with a home folder and a PATH of
their own.
"""

import base64
import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest


def bare_python(folder: Path) -> str:
    """Return the command of a Python of this version without any package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{folder}/bare"], check=True)
    return f"{folder}/bare/bin/python"


def python_at_start(folder: Path, code: str, **environment: str) -> str:
    """Return the command of this interpreter with `code` run as it starts."""
    (folder / "sitecustomize.py").write_text(code)
    return with_environment(sys.executable, PYTHONPATH=str(folder), **environment)


def old_python_stand_in(folder: Path, **environment: str) -> str:
    """Return the command of an interpreter that says it is Python 3.7.16."""
    folder.mkdir(exist_ok=True)
    code = "import sys\nsys.version_info = (3, 7, 16, 'final', 0)\n"
    return python_at_start(folder, code, **environment)


def python_with_old_tflite(folder: Path) -> str:
    """Return the command of a Python with this one's numpy and a tflite-runtime 2.14.0, a stand-in."""
    python = bare_python(folder)
    site = folder / "site"
    site.mkdir()
    numpy = find_spec("numpy")
    assert numpy is not None
    assert numpy.origin is not None
    for found in Path(numpy.origin).parent.parent.glob("numpy*"):
        (site / found.name).symlink_to(found)
    (site / "tflite_runtime").mkdir()
    (site / "tflite_runtime" / "__init__.py").write_text("")
    about = site / "tflite_runtime-2.14.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tflite-runtime\nVersion: 2.14.0\n"
    )
    return with_environment(python, PYTHONPATH=str(site))


def with_environment(python: str, **environment: str) -> str:
    """Return a Python command with these variables set."""
    return shlex.join(["env", *(f"{name}={value}" for name, value in environment.items()), python])


def write_wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    """Write a wheel for any Python and machine; `name` as in file names, `files` {path: text}."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = "".join(f"{path},{_digest(text)},{len(text)}\n" for path, text in content.items())
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return wheel


def write_runtimes(folder: Path) -> Path:
    """Write numpy 1 and 2, and the three runtimes, and return the folder."""
    for version in ("1.26.4", "2.3.0"):
        write_wheel(folder, "numpy", version, {"numpy/__init__.py": _versioned(version)})
    for name, version in (("ai_edge_litert", "2.3.0"), ("tflite_runtime", "2.14.0")):
        files = {f"{name}/__init__.py": _versioned(version), f"{name}/interpreter.py": ""}
        write_wheel(folder, name, version, files)
    write_wheel(folder, "onnxruntime", "1.31.1", {"onnxruntime/__init__.py": _versioned("1.31.1")})
    return folder


def _versioned(version: str) -> str:
    return f"__version__ = {version!r}\n"


def _digest(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


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


DEPLOY = Path(__file__).parents[2] / "deploy"


def scripts() -> list[Path]:
    """Return every script of the recipes."""
    return sorted(DEPLOY.rglob("*.sh"))


def documents() -> list[Path]:
    """Return the pages on devices, and the others that name files of the recipes."""
    docs = DEPLOY.parent / "docs"
    how_to = (docs / "how-to" / f"{name}.md" for name in ("audio", "nightly", "phones", "tensorrt"))
    return [*sorted((docs / "devices").glob("*.md")), *how_to]


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
            "HOME": str(home), "PATH": first + os.environ["PATH"], "LC_ALL": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", **(environment or {}),
        },
        check=False,
    )  # fmt: skip


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
