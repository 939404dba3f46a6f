"""The Raspberry Pi's scripts, run on this machine with stand-in wheels."""

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from shown_numbers import numbers
from stand_ins import DEPLOY, run_script, write_command, write_python, write_runtimes

from edgeflare import load_inventory

SETUP = DEPLOY / "raspberry-pi" / "setup.sh"
PERFORMANCE = DEPLOY / "raspberry-pi" / "performance.sh"

needs_venv = pytest.mark.skipif(
    None in map(importlib.util.find_spec, ("ensurepip", "pip")),
    reason="this Python can't make environments, or has no pip",
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runtimes(tmp_path_factory.mktemp("wheels"))


def _python(folder: Path, facts: str, *, venv: bool = True) -> str:
    """Write a Python that says to be of another board, and perhaps has no python3-venv."""
    lacks = "" if venv else 'case "$*" in *ensurepip*) exit 1 ;; esac\n'
    first = f'case "$*" in *calcsize*) echo "{facts}"; exit ;; esac\n{lacks}'
    return str(write_python(folder, "python-there", first=first))


@pytest.fixture
def python(tmp_path: Path) -> str:
    """This Python, which makes environments at less than its usual cost."""
    return str(write_python(tmp_path / "python", "python3"))


@needs_venv
@pytest.mark.parametrize("own", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_it_makes_a_python_whose_entry_can_be_used(
    own: bool, python: str, tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    python = sys.executable if own else python
    options = ("--wheels", str(wheels), "--python", python, "--runtime", "both")
    home = tmp_path / "home"
    done = run_script(SETUP, *options, "--name", "pi", home=home, by_stdin=True)
    assert done.returncode == 0, done.stderr
    assert "2.3.0, ai_edge_litert 2.3.0" in done.stderr
    (tmp_path / "devices.toml").write_text(done.stdout, encoding="utf-8")
    device = load_inventory(tmp_path / "devices.toml")["pi"]
    assert device.python == f"{home}/edgeflare-python/bin/python"
    assert (device.host or "").endswith(".local")
    subprocess.run([device.python, "-c", "import numpy, onnxruntime"], check=True)
    assert [path.name for path in home.glob("[!.]*")] == ["edgeflare-python"]


@needs_venv
def test_a_second_run_changes_nothing_and_repairs_what_broke(tmp_path, wheels, python) -> None:
    home, made = tmp_path / "home", tmp_path / "home" / "edgeflare-python"
    options = ("--wheels", str(wheels), "--python", python)
    first = run_script(SETUP, *options, home=home)
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*.py")}
    second = run_script(SETUP, "--python", python, home=home)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*.py")} == before
    subprocess.run([made / "bin/python", "-m", "pip", "uninstall", "-qy", "numpy"], check=True)
    broken = run_script(SETUP, "--check", "--python", python, home=home)
    assert broken.returncode == 3
    assert "module named 'numpy'" in broken.stdout
    assert run_script(SETUP, *options, home=home).returncode == 0
    assert run_script(SETUP, "--check", "--python", python, home=home).returncode == 0


@needs_venv
def test_a_run_that_was_cut_off_is_completed(tmp_path: Path, wheels: Path, python: str) -> None:
    made = tmp_path / "home" / "edgeflare-python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    options = ("--wheels", str(wheels), "--python", python)
    done = run_script(SETUP, *options, home=tmp_path / "home")
    assert done.returncode == 0, done.stderr


@needs_venv
def test_without_python3_venv_a_pip_wheel_serves(tmp_path: Path) -> None:
    places = [
        Path(importlib.util.find_spec("ensurepip").origin or "").parent / "_bundled",  # type: ignore[union-attr]
        Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "/nonexistent"),
    ]
    pip = next((wheel for place in places for wheel in place.glob("pip-*.whl")), None)
    if pip is None:
        pytest.skip("there is no pip wheel on this machine")
    wheels = write_runtimes(tmp_path / "wheels")
    board = _python(tmp_path, "3 11 64 aarch64", venv=False)
    options = ("--wheels", str(wheels), "--python", board)
    refused = run_script(SETUP, *options, home=tmp_path / "home")
    assert refused.returncode == 3
    assert "apt install python3-venv" in refused.stderr
    assert list((tmp_path / "home").iterdir()) == []
    (wheels / pip.name).write_bytes(pip.read_bytes())
    done = run_script(SETUP, *options, home=tmp_path / "home")
    assert done.returncode == 0, done.stderr


@needs_venv
def test_an_old_python_gets_tflite_runtime_with_numpy_1(tmp_path: Path, wheels: Path) -> None:
    board = _python(tmp_path, "3 8 64 aarch64")
    done = run_script(SETUP, "--wheels", str(wheels), "--python", board, home=tmp_path / "home")
    assert "1.26.4, tflite_runtime 2.14.0" in done.stderr
    made = tmp_path / "home/edgeflare-python/bin/python"
    upgrade = ["-m", "pip", "install", "-q", "--no-index", "--find-links", wheels, "numpy==2.3.0"]
    subprocess.run([made, *upgrade], check=True)
    spoilt = run_script(SETUP, "--check", "--python", board, home=tmp_path / "home")
    assert "2 is installed" in spoilt.stdout


@pytest.mark.parametrize(
    ("facts", "runtime", "told"),
    [
        ("3 13 64 aarch64", "both", "packages  numpy ai-edge-litert onnxruntime"),
        ("3 8 64 aarch64", "both", "packages  numpy<2 tflite-runtime onnxruntime"),
        ("3 11 32 armv7l", "tflite", "packages  numpy<2 tflite-runtime"),
        (
            "3 13 32 armv7l",
            "tflite",
            "no TFLite runtime wheel for a 32-bit system with Python 3.13",
        ),
        ("3 11 32 armv6l", "tflite", "no TFLite runtime wheel for ARMv6"),
        ("3 11 32 armv7l", "onnx", "no ONNX Runtime wheel for a 32-bit system"),
        ("3 7 32 armv7l", "tflite", "the agent needs 3.8 or newer"),
    ],
)
def test_it_knows_what_a_board_can_have(tmp_path, facts, runtime, told) -> None:
    options = ("--python", _python(tmp_path, facts), "--runtime", runtime)
    seen = run_script(SETUP, *options, "--check", home=tmp_path / "home")
    assert seen.returncode == 3
    assert told in seen.stdout
    if "packages" not in told:
        assert told in run_script(SETUP, *options, home=tmp_path / "home").stderr
    assert list((tmp_path / "home").iterdir()) == []


def test_a_32_bit_system_on_a_64_bit_kernel_is_seen_as_what_it_is() -> None:
    text = SETUP.read_text(encoding="utf-8")
    code = text.partition('"$1" -c \'\n')[2].partition("\n'\n")[0]
    fake = (
        "import platform, struct\nplatform.machine = lambda: 'aarch64'\n"
        "struct.calcsize = lambda kind: 4\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", fake + code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[2:] == ["32", "armv7l"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--runtime", "torch"), "torch"),
        (("--wheels", "/nonexistent"), "/nonexistent"),
        (("--name", "my pi"), "my pi"),
        (("--host", 'a"b'), "--host"),
        (("--folder", "a folder"), "a folder"),
        (("--name",), "needs a value"),
    ],
)
def test_a_wrong_option_is_explained(tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    done = run_script(SETUP, *options, home=tmp_path)
    assert done.returncode == 2
    assert named in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_another_folder_of_the_users_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work", encoding="utf-8")
    options = ("--python", sys.executable, "--folder", str(mine))
    done = run_script(SETUP, *options, home=tmp_path / "home")
    assert done.returncode == 3
    assert "virtual environment" in done.stderr
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


def _board(root: Path, governors: str = "ondemand performance") -> list[Path]:
    (root / "run").mkdir(parents=True)
    zone = root / "sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "temp").write_text("48312\n", encoding="ascii")
    files = {
        "scaling_governor": "ondemand",
        "scaling_cur_freq": "600000",
        "cpuinfo_max_freq": "1800000",
        "scaling_available_governors": governors,
    }
    for core in range(2):
        folder = root / f"sys/devices/system/cpu/cpu{core}/cpufreq"
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(f"{text}\n", encoding="ascii")
    return sorted(root.rglob("scaling_governor"))


def test_the_governor_is_set_and_put_back(tmp_path: Path) -> None:
    governors = _board(tmp_path / "board")
    options = ("--root", str(tmp_path / "board"))
    for _ in range(2):
        done = run_script(PERFORMANCE, "on", *options, home=tmp_path / "home")
        assert done.returncode == 0, done.stderr
        assert [path.read_text() for path in governors] == ["performance\n"] * 2
    undone = run_script(PERFORMANCE, "off", *options, home=tmp_path / "home")
    assert [path.read_text() for path in governors] == ["ondemand\n"] * 2
    assert "governor" in undone.stdout
    again = run_script(PERFORMANCE, "off", *options, home=tmp_path / "home")
    assert again.returncode == 3
    assert "nothing to undo" in again.stderr


def test_what_slows_the_board_down_is_reported_in_words(tmp_path: Path) -> None:
    _board(tmp_path / "board")
    write_command(tmp_path / "bin", "vcgencmd", "echo throttled=0x80005")
    options = ("--root", str(tmp_path / "board"))
    done = run_script(PERFORMANCE, *options, home=tmp_path / "home", commands=tmp_path / "bin")
    assert numbers(done.stdout) == "600 1800 48"


def test_a_board_that_cannot_be_steadied_is_reported(tmp_path: Path) -> None:
    governors = _board(tmp_path / "board", "ondemand schedutil")
    options = ("--root", str(tmp_path / "board"))
    done = run_script(PERFORMANCE, "on", *options, home=tmp_path / "home")
    assert done.returncode == 3
    assert 'no governor "performance"' in done.stderr
    assert [path.read_text() for path in governors] == ["ondemand\n"] * 2
    (tmp_path / "bare").mkdir()
    bare = run_script(PERFORMANCE, "on", "--root", str(tmp_path / "bare"), home=tmp_path / "home")
    assert bare.returncode == 3
    assert "no cpufreq" in bare.stderr
