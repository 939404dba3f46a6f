"""Probes a device before anything is uploaded: Python, numpy, runtimes, cache folder."""

import shlex
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from edgeflare.devices.inventory import Device
from edgeflare.devices.provisioning.scripts import PROBE, invalid_answer, run_script
from edgeflare.devices.reported import wrong_value_in
from edgeflare.devices.transports.base import Transport
from edgeflare.errors import DeviceError, DevicePythonError, DeviceRuntimeError
from edgeflare_agent.identity import RUNTIME_PACKAGES, TENSORRT_PACKAGES
from edgeflare_agent.install_hints import OLD_NUMPY, ON_JETSON, tflite_packages

OLDEST_PYTHON = (3, 8)
_PROBE_S = 60.0
_TFLITE, _OLD_TFLITE, _ONNX = "ai-edge-litert", "tflite-runtime", "onnxruntime"
_PACKAGES_OF = {
    "tflite": (_TFLITE, _OLD_TFLITE),
    "onnx": (_ONNX, "onnxruntime-gpu"),
    "tensorrt": TENSORRT_PACKAGES,
    "torch": ("torch",),
    "keras": ("keras",),
    "executorch": ("executorch",),
}


@dataclass(frozen=True)
class Probe:
    """The result of probing a device. Paths are the device's own, sizes in bytes.

    `name` and `command` are the device's name and Python command. `numpy` is its version, or None
    and `numpy_problem` the text of the error. `runtimes` is {package: version}; `files` is
    {"agents": {name: size}, "models": ...} below the cache folder `root`; `cache_problem` says why
    that can't be used, `free_bytes` the free space there. `arch` is what the interpreter is built
    for, ``armv8l`` where it is a 32-bit one under a 64-bit kernel. `managed`: pip refuses to
    install for this Python (PEP 668).
    """

    name: str
    command: str
    version: tuple[int, int, int]
    executable: str
    home: str
    root: str
    arch: str
    libc: str
    managed: bool
    numpy: str | None
    numpy_problem: str | None
    runtimes: dict[str, str]
    files: dict[str, dict[str, int]]
    cache_problem: str | None
    free_bytes: int | None

    @property
    def python(self) -> str:
        """The Python version as text, such as ``3.11.2``."""
        return ".".join(map(str, self.version))


_PROBE = TypeAdapter(Probe)


@dataclass(frozen=True)
class Problem:
    """A problem of a device: the error's class, what is wrong and what to do about it."""

    kind: type[DeviceError]
    what: str
    fix: str

    def error(self) -> DeviceError:
        """Return the error to raise."""
        return self.kind(f"{self.what}: {self.fix}")


def probe(transport: Transport, device: Device) -> Probe:
    """Inspect a device and make its cache folders (mode 0700) where they are missing.

    Raises DevicePythonError where there is no Python at all, DeviceProtocolError where something
    else answers, and what the transport raises. Other problems are in the result; see `require`.
    """
    parameters = {"cache": device.cache, "packages": RUNTIME_PACKAGES}
    answer = run_script(transport, device.python, PROBE, parameters, _PROBE_S)
    try:
        return _PROBE.validate_python({**answer, "name": device.name, "command": device.python})
    except ValidationError as error:
        raise invalid_answer(device.name, wrong_value_in(error)) from error


def require(probed: Probe, runtime: str | None = None) -> None:
    """Raise for the first problem that prevents a device from running models with a runtime.

    Without a runtime: to run the agent. Raises DevicePythonError, DeviceRuntimeError or
    DeviceError, each with what to do, such as the pip command for that device's Python.
    """
    problems = (
        check_python(probed),
        check_numpy(probed, runtime),
        check_runtime(probed, runtime) if runtime else None,
        check_cache(probed),
    )
    for problem in problems:
        if problem is not None:
            raise problem.error()


def check_python(probed: Probe) -> Problem | None:
    """Return what is wrong with the device's Python."""
    if probed.version >= OLDEST_PYTHON:
        return None
    return Problem(
        DevicePythonError,
        f"Python on {probed.name} is {probed.python} ({probed.executable}) and EdgeFlare's agent "
        "needs 3.8 or newer",
        "install a newer one there and name it as `python` in the device's inventory entry",
    )


def check_numpy(probed: Probe, runtime: str | None = None) -> Problem | None:
    """Return what is wrong with numpy; the advice installs a named runtime with it."""
    if probed.numpy is not None:
        return None
    problem = probed.numpy_problem or ""
    what = f"numpy is missing for {probed.executable} on {probed.name}"
    if not problem.startswith(("ImportError: No module", "ModuleNotFoundError")):
        what = f"numpy on {probed.name} is broken ({problem})"
    packages = _packages(probed, runtime) if runtime in _PACKAGES_OF else ()
    wanted = packages if OLD_NUMPY in packages else ("numpy", *packages)
    return Problem(DeviceRuntimeError, what, how_to_install(probed, *wanted))


def check_runtime(probed: Probe, runtime: str) -> Problem | None:
    """Return what is missing to run models with this runtime."""
    if runtime not in _PACKAGES_OF:  # the user's: it reports its own problems
        return None
    if not any(package in probed.runtimes for package in _PACKAGES_OF[runtime]):
        return Problem(
            DeviceRuntimeError,
            f"no runtime for {runtime} models is installed for {probed.executable} on "
            f"{probed.name}",
            _how_to_install_runtime(probed, runtime),
        )
    if runtime == "tflite" and _TFLITE not in probed.runtimes and _major(probed.numpy) >= 2:
        packages = _packages(probed, runtime)
        return Problem(
            DeviceRuntimeError,
            f"{_OLD_TFLITE} {probed.runtimes[_OLD_TFLITE]} on {probed.name} was built for numpy 1 "
            f"and numpy {probed.numpy} is installed",
            how_to_install(probed, *((OLD_NUMPY,) if OLD_NUMPY in packages else packages)),
        )
    return None


def check_cache(probed: Probe) -> Problem | None:
    """Return why the cache folder can't be used."""
    if probed.cache_problem is None:
        return None
    return Problem(
        DeviceError,
        f"the cache folder {probed.root} on {probed.name} can't be used ({probed.cache_problem})",
        "give a folder of the login user's as `cache` in the device's inventory entry",
    )


def how_to_install(probed: Probe, *packages: str) -> str:
    """Return advice on installing packages for the device's Python.

    Where pip would refuse, it is to make a virtual environment and to name that in the inventory.
    """
    if not probed.managed:
        return f"run '{probed.command} -m pip install {_joined(packages)}' there"
    folder = f"{probed.home}/edgeflare-python"
    own = with_interpreter(probed.command, f"{folder}/bin/python")
    wanted = packages if OLD_NUMPY in packages else dict.fromkeys(("numpy", *packages))
    return (
        f"run '{probed.command} -m venv {folder} && {own} -m pip install {_joined(tuple(wanted))}' "
        f'there and give "{own}" as `python` in the device\'s inventory entry'
    )


def with_interpreter(command: str, python: str) -> str:
    """Return a command with another interpreter in place of its own, options dropped."""
    words = shlex.split(command)
    while len(words) > 1 and words[-1].startswith("-"):
        words.pop()
    return " ".join([*words[:-1], python])


def _how_to_install_runtime(probed: Probe, runtime: str) -> str:
    pip = how_to_install(probed, *(_packages(probed, runtime) or TENSORRT_PACKAGES[:1]))
    return f"{ON_JETSON}; on another board {pip}" if _may_be_jetson(probed, runtime) else pip


def _packages(probed: Probe, runtime: str) -> tuple[str, ...]:
    """Return what pip installs for a runtime; nothing where the system's packages bring it."""
    if runtime == "tensorrt":
        return () if _may_be_jetson(probed, runtime) else TENSORRT_PACKAGES[:1]
    if runtime == "tflite":
        return tflite_packages(probed.version[:2], probed.arch)
    return _PACKAGES_OF[runtime][:1]


def _may_be_jetson(probed: Probe, runtime: str) -> bool:
    return runtime == "tensorrt" and probed.arch == "aarch64"


def _joined(packages: tuple[str, ...]) -> str:
    return " ".join(f'"{name}"' if "<" in name else name for name in packages)


def _major(version: str | None) -> int:
    head = (version or "0").split(".", maxsplit=1)[0]
    return int(head) if head.isdigit() else 0
