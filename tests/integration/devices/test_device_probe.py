"""The probe against real interpreters: this one, old ones, one without numpy, one behind a banner."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from edgeflare.devices import Completed, Device, Stream
from edgeflare.devices.provisioning.probe import Probe, how_to_install, probe, require
from edgeflare.devices.provisioning.scripts import PROBE, run_script
from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import DeviceError, DeviceProtocolError, DevicePythonError, DeviceRuntimeError


def look(python: str, cache: Path) -> Probe:
    device = Device(name="bench", transport="local", python=python, cache=str(cache))
    return probe(LocalTransport("bench", python), device)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Probe:
    return look(shlex.quote(sys.executable), tmp_path_factory.mktemp("home") / "cache")


def test_this_interpreter_is_described(seen: Probe) -> None:
    assert seen.version == sys.version_info[:3]
    assert seen.executable == sys.executable
    assert seen.numpy == np.__version__
    assert seen.runtimes["onnxruntime"] == version("onnxruntime")
    assert seen.free_bytes
    assert seen.files == {"agents": {}, "models": {}}
    assert seen.cache_problem is None
    require(seen, "onnx")
    require(seen, "tflite")


def test_no_code_of_the_current_folder_runs(tmp_path, monkeypatch) -> None:
    for name in ("json", "hashlib", "platform", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    look(shlex.quote(sys.executable), tmp_path / "cache")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("pointer", "machine", "told"),
    [
        (4, "aarch64", "armv8l"),
        (4, "x86_64", "i686"),
        (4, "armv7l", "armv7l"),
        (8, "arm64", "arm64"),
    ],
)
def test_a_32_bit_python_is_recognised_by_its_pointers(monkeypatch, pointer, machine, told) -> None:
    script = {}
    exec(PROBE, script)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("struct.calcsize", lambda _: pointer)
    assert script["architecture"]() == told


def test_cache_folders_are_made_for_the_user_alone(seen: Probe) -> None:
    for folder in (seen.root, f"{seen.root}/agents", f"{seen.root}/models"):
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700


def test_cache_below_home_is_expanded_on_the_device(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    device = Device(name="bench", transport="local", cache="~/caché 'x'/edgeflare")
    seen = probe(LocalTransport("bench"), device)
    assert seen.root == f"{tmp_path}/caché 'x'/edgeflare"
    assert Path(seen.root, "models").is_dir()


def test_cached_files_are_listed_with_sizes(device: Device) -> None:
    transport = LocalTransport("bench")
    Path(probe(transport, device).root, "models", "m.onnx").write_bytes(b"12345")
    assert probe(transport, device).files["models"] == {"m.onnx": 5}


def test_cache_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    seen = look(shlex.quote(sys.executable), blocked / "cache")
    with pytest.raises(DeviceError, match=r"folder .*file/cache"):
        require(seen)


def test_a_cache_folder_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").symlink_to(tmp_path)
    seen = look(shlex.quote(sys.executable), tmp_path / "cache")
    with pytest.raises(DeviceError, match=r"symbolic link.*give"):
        require(seen)


@pytest.mark.parametrize("folder", ["cache", "cache/agents", "cache/models"])
def test_a_cache_folder_that_others_may_write_is_refused(tmp_path: Path, folder: str) -> None:
    look(shlex.quote(sys.executable), tmp_path / "cache")
    (tmp_path / folder).chmod(0o770)
    seen = look(shlex.quote(sys.executable), tmp_path / "cache")
    with pytest.raises(DeviceError, match="`chmod go-w`"):
        require(seen)


def test_a_cache_folder_that_others_may_exchange_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    command = shlex.quote(sys.executable)
    with pytest.raises(DeviceError, match="/open: every"):
        require(look(command, tmp_path / "open" / "cache"))
    (tmp_path / "open").chmod(0o1777)  # as /tmp is
    require(look(command, tmp_path / "open" / "cache"))


def test_a_cache_folder_of_another_user_is_refused(tmp_path, monkeypatch) -> None:
    script = {}
    exec(PROBE, script)
    assert script["prepare"](str(tmp_path / "cache"))["cache_problem"] is None
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    problem = script["prepare"](str(tmp_path / "cache"))["cache_problem"]
    assert f"{tmp_path}/cache: it belongs" in problem


def test_old_python_says_so_in_one_sentence(old_python: str, tmp_path: Path) -> None:
    seen = look(old_python, tmp_path / "cache")
    with pytest.raises(DevicePythonError, match=r"needs 3\.8"):
        require(seen, "tflite")


def test_python_without_numpy_gets_the_command_for_itself(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True
    )
    python = str(tmp_path / "bare" / "bin" / "python")
    seen = look(python, tmp_path / "cache")
    with pytest.raises(DeviceRuntimeError) as caught:
        require(seen, "onnx")
    assert f"'{python} -m pip" in str(caught.value)
    with pytest.raises(DeviceRuntimeError, match="onnx models"):
        require(replace(seen, numpy="1.26.4"), "onnx")


def test_numpy_that_breaks_on_import_is_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "numpy"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemError('wrong CPU\\nmore')")
    seen = look(f"env PYTHONPATH={tmp_path} {sys.executable}", tmp_path / "cache")
    with pytest.raises(DeviceRuntimeError, match=r"broken \(SystemError"):
        require(seen)


def test_banner_around_the_answer_does_no_harm(with_banner: str, tmp_path: Path) -> None:
    assert look(with_banner, tmp_path / "cache").version == sys.version_info[:3]


def test_something_else_than_python_is_quoted(tmp_path: Path) -> None:
    script = tmp_path / "menu.sh"
    script.write_text("echo; echo 'Pick one:'; echo ' 1) reboot'; echo '2) halt'; echo 3; exit 4\n")
    with pytest.raises(DeviceProtocolError) as caught:
        look(f"{shutil.which('sh')} {script}", tmp_path / "cache")
    assert "1) reboot" in str(caught.value)
    assert "exit status 4" in str(caught.value)


def test_wrapper_without_python_behind_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(DevicePythonError, match="'env no-such-python'"):
        look("env no-such-python", tmp_path / "cache")


def test_parameters_reach_every_python_unchanged(old_python: str) -> None:
    text = "a 'quoted' \"path\" \\n ünïcode \U0001f600 '''"
    script = "def main(text):\n    return {'back': text}\n"
    back = run_script(LocalTransport("bench", old_python), old_python, script, {"text": text}, 60)
    assert back == {"back": text}


@pytest.mark.parametrize(
    ("change", "runtime", "command"),
    [
        ({"runtimes": {}}, "tflite", "python3 -m pip install ai-edge-litert"),
        ({"runtimes": {}}, "onnx", "python3 -m pip install onnxruntime"),
        (
            {"runtimes": {}, "version": (3, 8, 10)},
            "tflite",
            'python3 -m pip install tflite-runtime "numpy<2"',
        ),
        (
            {"runtimes": {}, "arch": "armv7l"},
            "tflite",
            'python3 -m pip install tflite-runtime "numpy<2"',
        ),
        (
            {"runtimes": {"tflite-runtime": "2.14.0"}, "numpy": "2.1.0"},
            "tflite",
            "python3 -m pip install ai-edge-litert",
        ),
        (
            {"runtimes": {"tflite-runtime": "2.14.0"}, "numpy": "2.1.0", "arch": "armv7l"},
            "tflite",
            'python3 -m pip install "numpy<2"',
        ),
        ({"runtimes": {}}, "tensorrt", "sudo apt install python3-libnvinfer"),
        ({"runtimes": {}, "arch": "x86_64"}, "tensorrt", "python3 -m pip install tensorrt"),
        (
            {"runtimes": {}, "managed": True},
            "onnx",
            "python3 -m venv /home/pi/edgeflare-python && "  # noqa: ISC004
            "/home/pi/edgeflare-python/bin/python -m pip install numpy onnxruntime",
        ),
    ],
)
def test_lacking_runtime_gets_the_command_that_mends_it(seen, change, runtime, command) -> None:
    pi = replace(seen, command="python3", home="/home/pi", arch="aarch64", version=(3, 11, 2))
    with pytest.raises(DeviceRuntimeError) as caught:
        require(replace(pi, **change), runtime)  # type: ignore[arg-type]
    assert f"'{command}' there" in str(caught.value)


def test_old_tflite_runtime_serves_with_old_numpy(seen: Probe) -> None:
    require(replace(seen, runtimes={"tflite-runtime": "2.14.0"}, numpy="1.26.4"), "tflite")


def test_managed_python_behind_a_wrapper_keeps_the_wrapper(seen: Probe) -> None:
    wrapped = replace(
        seen, command="proot-distro login debian -- python3", home="/root", managed=True
    )
    advice = how_to_install(wrapped, "onnxruntime")
    assert '"proot-distro login debian' in advice


def test_managed_python_with_options_is_replaced_with_them(seen: Probe) -> None:
    isolated = replace(seen, command="nice python3 -S -E", home="/home/pi", managed=True)
    advice = how_to_install(isolated, "onnxruntime")
    assert '"nice /home/pi/edgeflare-python/bin/python"' in advice


class Said:
    """A transport on which every command prints this, whatever it is."""

    name = "bench"

    def __init__(self, text: str) -> None:
        self.text = text

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        del arguments, stdin, timeout
        return Completed(0, self.text.encode(), "")

    def open(self, arguments: Sequence[str]) -> Stream:
        raise NotImplementedError

    def put(self, local: Path, remote: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "changed",
    [
        '"version": [3, 11, Infinity]', '"version": [3]', '"version": null', '"home": 4',
        '"runtimes": ["onnxruntime"]', '"files": {"models": {"a": [1]}}', '"free_bytes": 1e400',
        f'"free_bytes": {10**400}', f'"libc": {"[" * 100_000}{"]" * 100_000}',
    ],
)  # fmt: skip
def test_an_answer_that_makes_no_sense_is_a_protocol_error(seen: Probe, changed: str) -> None:
    honest = json.dumps({**asdict(seen), "version": [3, 11, 2]})
    transport = Said(f"<<<edgeflare<<<{honest[:-1]}, {changed}}}>>>edgeflare>>>")
    with pytest.raises(DeviceProtocolError, match=r" = .*, expected|did not behave as Python does"):
        probe(transport, Device(name="bench", transport="local"))


def test_what_is_printed_in_place_of_an_answer_can_not_write_to_the_terminal() -> None:
    transport = Said("\x1b]0;owned\x07\x1b[2Jmenu\u202e" + "x" * 9000)
    with pytest.raises(DeviceProtocolError, match="printed: menu") as caught:
        probe(transport, Device(name="bench", transport="local"))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text", ["'<<<edgeflare<<<' + '[' * 200_000 + '>>>edgeflare>>>'", "'<<<edgeflare<<<' * 400_000"]
)
def test_an_endless_answer_is_a_short_error(tmp_path: Path, text: str) -> None:
    script = tmp_path / "liar.py"
    script.write_text(f"print({text})")
    with pytest.raises(DeviceProtocolError, match="Python") as caught:
        look(f"{sys.executable} {script}", tmp_path / "cache")
    assert len(str(caught.value)) < 1000
