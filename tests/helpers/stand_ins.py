"""Interpreters that lack something, made from the one that runs the tests."""

import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path


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
