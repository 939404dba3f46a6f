"""What users are told to run fits their device."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare_agent import install_hints


@pytest.mark.parametrize(
    ("version", "machine", "packages"),
    [
        ((3, 8), "x86_64", ("tflite-runtime", "numpy<2")),
        ((3, 8), "aarch64", ("tflite-runtime", "numpy<2")),
        ((3, 9), "aarch64", ("ai-edge-litert",)),
        ((3, 13), "x86_64", ("ai-edge-litert",)),
        ((3, 11), "arm64", ("ai-edge-litert",)),
        ((3, 11), "armv7l", ("tflite-runtime", "numpy<2")),
        ((3, 11), "armv8l", ("tflite-runtime", "numpy<2")),
    ],
)
def test_tflite_package_depends_on_python_and_machine(version, machine, packages) -> None:
    assert install_hints.tflite_packages(version, machine) == packages


@pytest.mark.parametrize(
    ("pointer", "machine", "told"),
    [
        (4, "aarch64", "armv8l"),
        (4, "x86_64", "i686"),
        (4, "armv7l", "armv7l"),
        (8, "aarch64", "aarch64"),
    ],
)
def test_a_32_bit_python_under_a_64_bit_kernel_is_recognised_by_its_pointers(
    monkeypatch: pytest.MonkeyPatch, pointer: int, machine: str, told: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("struct.calcsize", lambda _: pointer)
    assert install_hints.architecture() == told
    old = pointer == 4
    expected = ("tflite-runtime", "numpy<2") if old else ("ai-edge-litert",)
    assert install_hints.tflite_packages((3, 11)) == expected


def command_in(sentence: str) -> str:
    found = re.search(r"run '([^']*)'", sentence)
    return found.group(1)


@pytest.fixture
def own_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter is the user's own, whether or not the system's package manager owns it."""
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))


def test_command_is_this_interpreters_pip(own_python, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python3")
    assert shlex.split(command_in(install_hints.how_to_install("tflite-runtime", "numpy<2"))) == [
        "/opt/my python/bin/python3", "-m", "pip", "install", "tflite-runtime", "numpy<2",
    ]  # fmt: skip


def test_a_python_of_the_system_gets_an_environment_of_its_own(tmp_path, monkeypatch) -> None:
    (tmp_path / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("HOME", str(tmp_path))
    sentence = install_hints.how_to_install("ai-edge-litert")
    made, filled = command_in(sentence).split(" && ")
    python = str(tmp_path / "edgeflare-python" / "bin" / "python")
    assert shlex.split(made) == [sys.executable, "-m", "venv", str(tmp_path / "edgeflare-python")]
    assert shlex.split(filled) == [python, "-m", "pip", "install", "numpy", "ai-edge-litert"]
    assert f'name "{python}" as "python"' in sentence


def test_a_shell_takes_the_command(own_python: None, tmp_path: Path) -> None:
    command = command_in(install_hints.how_to_install("numpy<2"))
    (tmp_path / "2").mkdir()
    echoed = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {command}"],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert echoed.stdout.splitlines()[1:] == ["-m", "pip", "install", "numpy<2"]
