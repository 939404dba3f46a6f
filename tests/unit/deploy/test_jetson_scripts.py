"""The Jetson's scripts, with stand-ins for TensorRT and for NVIDIA's commands."""

import importlib.util
import os
from pathlib import Path

import pytest
from stand_ins import DEPLOY, run_script, write_command, write_python, write_runtimes

from edgeflare import load_inventory

SETUP = DEPLOY / "jetson" / "setup.sh"
PERFORMANCE = DEPLOY / "jetson" / "performance.sh"

TENSORRT = """
__version__ = "10.3.0"

class Logger:
    ERROR = 1
    def __init__(self, level):
        pass

def Builder(logger):
    import os
    if os.environ.get("NO_GPU"):
        raise TypeError("pybind11::init(): factory function returned nullptr")
    return object()
"""


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A folder of commands: this Python as python3, and a module folder with TensorRT."""
    write_python(tmp_path / "bin", "python3")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "tensorrt.py").write_text(TENSORRT, encoding="utf-8")
    return tmp_path / "bin"


def test_without_tensorrt_it_names_the_debian_package(tmp_path: Path, board: Path) -> None:
    if importlib.util.find_spec("tensorrt") is not None:
        pytest.skip("this Python has TensorRT")
    done = run_script(SETUP, home=tmp_path / "home", commands=board)
    assert done.returncode == 3
    assert "apt install python3-libnvinfer" in done.stderr
    seen = run_script(SETUP, "--check", home=tmp_path / "home", commands=board)
    assert seen.returncode == 3
    assert "TensorRT's Python package" in seen.stdout
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.skipif(
    None in map(importlib.util.find_spec, ("ensurepip", "pip")),
    reason="this Python can't make environments, or has no pip",
)
def test_it_makes_a_python_that_sees_jetpacks_tensorrt(tmp_path, board, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    wheels = write_runtimes(tmp_path / "wheels")
    environment = {"PYTHONPATH": str(tmp_path / "modules")}
    options = ("--name", "jetson", "--host", "192.168.1.40", "--wheels", str(wheels))
    options += ("--wheel", str(wheels / "onnxruntime-1.31.1-py3-none-any.whl"))
    done = run_script(
        SETUP, *options, home=tmp_path, commands=board, environment=environment, by_stdin=True
    )
    # The stand-in tells no providers, so that the first look at it fails: said, and not taken for success.
    assert done.returncode == 3
    assert "get_available_providers" in done.stderr
    library = next((tmp_path / "edgeflare-python").glob("lib/python*/site-packages/onnxruntime"))
    with (library / "__init__.py").open("a", encoding="utf-8") as file:
        file.write("def get_available_providers():\n    return ['CUDAExecutionProvider']\n")
    done = run_script(SETUP, *options, home=tmp_path, commands=board, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "10.3.0, onnxruntime 1.31.1" in done.stderr
    (tmp_path / "devices.toml").write_text(done.stdout, encoding="utf-8")
    device = load_inventory(tmp_path / "devices.toml")["jetson"]
    assert (device.host, device.runtime) == ("192.168.1.40", "tensorrt")
    assert os.access(device.python, os.X_OK)
    no_gpu = {**environment, "NO_GPU": "1"}
    blind = run_script(SETUP, "--check", home=tmp_path, commands=board, environment=no_gpu)
    assert blind.returncode == 3
    assert "fix: TensorRT finds" in blind.stdout


def _clocks(folder: Path) -> Path:
    """Write NVIDIA's two commands, which keep what is set in files; return the mode's file."""
    folder.mkdir()
    mode, clocks = folder / "mode", folder / "clocks"
    mode.write_text("2\n", encoding="ascii")
    clocks.write_text("free\n", encoding="ascii")
    write_command(
        folder,
        "nvpmodel",
        f'case $1 in -q) echo NV Power Mode: X; cat {mode} ;; -m) echo "$2" >{mode} ;; esac',
    )
    write_command(
        folder,
        "jetson_clocks",
        f"case ${{1:-}} in --store) cp {clocks} $2 ;; --restore) cp $2 {clocks} ;; "
        f"*) echo locked >{clocks} ;; esac",
    )
    return mode


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/run", os.W_OK), reason="needs root, as on the board"
)
def test_clocks_and_power_mode_are_set_and_put_back(tmp_path: Path) -> None:
    mode = _clocks(tmp_path / "bin")
    clocks = mode.with_name("clocks")
    for _ in range(2):
        done = run_script(
            PERFORMANCE, "on", "--mode", "0", home=tmp_path / "home", commands=tmp_path / "bin"
        )
        assert done.returncode == 0, done.stderr
        assert (mode.read_text(), clocks.read_text()) == ("0\n", "locked\n")
    undone = run_script(PERFORMANCE, "off", home=tmp_path / "home", commands=tmp_path / "bin")
    assert undone.returncode == 0, undone.stderr
    assert (mode.read_text(), clocks.read_text()) == ("2\n", "free\n")
    again = run_script(PERFORMANCE, "off", home=tmp_path / "home", commands=tmp_path / "bin")
    assert again.returncode == 3


@pytest.mark.parametrize("arguments", [("on", "--mode", "fast"), ("--mode", "0"), ("on", "off")])
def test_a_wrong_argument_is_explained(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run_script(PERFORMANCE, *arguments, home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("performance.sh: ")


def test_another_machine_is_told_that_it_is_no_jetson(tmp_path: Path) -> None:
    done = run_script(PERFORMANCE, home=tmp_path)
    assert done.returncode == 3
    assert "Jetson?" in done.stderr
