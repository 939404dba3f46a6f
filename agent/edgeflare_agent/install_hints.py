"""Advice to a device's user: which packages to install, and how."""

import os
import platform
import shlex
import struct
import sys
import sysconfig
from importlib.util import find_spec
from typing import Optional, Sequence, Tuple

OLD_NUMPY = "numpy<2"
ON_JETSON = (
    "on a Jetson, run 'sudo apt install python3-libnvinfer' there, for JetPack's Python or a "
    "virtual environment of it that was made with --system-site-packages"
)
"""How TensorRT comes to a Jetson: the packages of PyPI don't run there."""
_JETSON_RELEASE = "/etc/nv_tegra_release"
_OWN_PYTHON = "edgeflare-python"
_OF_32_BITS = {"aarch64": "armv8l", "x86_64": "i686"}
"""The architecture of a 32-bit program under a 64-bit kernel."""


def is_installed(module: str) -> bool:
    """Whether a top-level module can be found; it is not imported."""
    return find_spec(module) is not None


def how_to_install(*packages: str) -> str:
    """Return advice on how to install these packages for this interpreter.

    Where the system's package manager owns the interpreter (PEP 668), pip would refuse: then a
    virtual environment is made, and the inventory names it.
    """
    python = sys.executable or "python3"
    if not _externally_managed():
        return "run '{}'".format(_joined(python, "-m", "pip", "install", *packages))
    folder = os.path.join(os.path.expanduser("~"), _OWN_PYTHON)
    own = os.path.join(folder, "bin", "python")
    wanted = packages if OLD_NUMPY in packages else ("numpy", *packages)
    return 'run \'{} && {}\' and name "{}" as "python" in the device\'s inventory entry'.format(
        _joined(python, "-m", "venv", folder),
        _joined(own, "-m", "pip", "install", *dict.fromkeys(wanted)),
        own,
    )


def architecture() -> str:
    """Return the architecture that this interpreter is built for, whatever kernel it runs under."""
    machine = platform.machine()
    return _OF_32_BITS.get(machine, machine) if struct.calcsize("P") == 4 else machine


def tflite_packages(
    version: Sequence[int] = sys.version_info[:2], machine: Optional[str] = None
) -> Tuple[str, ...]:
    """Return what to install for TFLite models: ai-edge-litert where its wheels exist.

    They exist for 64-bit interpreters from Python 3.9 on; elsewhere tflite-runtime (up to Python
    3.11) serves, with the numpy that it was built for. `machine`: as `architecture` has it, this
    interpreter's where none is given.
    """
    built_for = machine or architecture()
    if tuple(version) >= (3, 9) and built_for in ("x86_64", "AMD64", "aarch64", "arm64"):
        return ("ai-edge-litert",)
    return ("tflite-runtime", OLD_NUMPY)


def how_to_install_tensorrt() -> str:
    """Return advice on how to install TensorRT for this interpreter."""
    return ON_JETSON if os.path.exists(_JETSON_RELEASE) else how_to_install("tensorrt")


def _joined(*words: str) -> str:
    # Double quotes: the command stands between single ones in a sentence.
    return " ".join(word if shlex.quote(word) == word else '"{}"'.format(word) for word in words)


def _externally_managed() -> bool:
    if sys.prefix != sys.base_prefix:
        return False
    return os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
