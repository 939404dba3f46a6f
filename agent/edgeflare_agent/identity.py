"""Identifies the device and its installed runtimes, without importing them."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Dict, Optional, Tuple

from edgeflare_agent.install_hints import architecture, is_installed

TENSORRT_PACKAGES = ("tensorrt", "tensorrt-cu13", "tensorrt-cu12", "tensorrt-cu11")
RUNTIME_PACKAGES: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("ai_edge_litert", ("ai-edge-litert",)),
    ("tflite_runtime", ("tflite-runtime",)),
    ("onnxruntime", ("onnxruntime", "onnxruntime-gpu")),
    ("tensorrt", TENSORRT_PACKAGES),
    ("torch", ("torch",)),
    ("keras", ("keras",)),
    ("executorch", ("executorch",)),
)
"""Importable module, and the packages that may contain it."""


def runtimes() -> Dict[str, str]:
    """Return {package: version} of the runtimes that are installed here."""
    return {
        package: known
        for module, packages in RUNTIME_PACKAGES
        if is_installed(module)
        for package, known in [package_version(*packages)]
    }


def package_version(*packages: str) -> Tuple[str, str]:
    """Return the first of these packages that is installed, and its version or ``unknown``."""
    found = ((package, _version(package)) for package in packages)
    return next(((package, known) for package, known in found if known), (packages[0], "unknown"))


def device() -> Dict[str, Any]:
    """Return what identifies this kind of device, as JSON; None where the system doesn't report it.

    `board` and `soc` come from the device tree; `cpu` is a name, or an Arm part's number such as
    ``0xd08``; `cpu_flags` are x86 flags or Arm features, sorted; `arch` is the interpreter's,
    32-bit under a 64-bit kernel, too; `memory_bytes` is all of the memory.
    """
    cpu = _first_cpu()
    return {
        "board": _text("/proc/device-tree/model"),
        "soc": _last_entry(_text("/proc/device-tree/compatible", separator=" ")),
        "cpu": cpu.get("model name") or cpu.get("CPU part") or platform.processor() or None,
        "cpu_flags": sorted((cpu.get("flags") or cpu.get("Features") or "").split()),
        "arch": architecture(),
        "kernel": "{} {}".format(platform.system(), platform.release()),
        "os": _pretty_name() or platform.platform(),
        "hostname": platform.node(),
        "cores": os.cpu_count(),
        "memory_bytes": _memory_bytes(),
    }


def _version(package: str) -> Optional[str]:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _first_cpu() -> Dict[str, str]:
    fields: Dict[str, str] = {}
    for line in (_text("/proc/cpuinfo") or "").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields


def _pretty_name() -> Optional[str]:
    for line in (_text("/etc/os-release") or "").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return None


def _memory_bytes() -> Optional[int]:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _last_entry(text: Optional[str]) -> Optional[str]:
    return text.split()[-1] if text else None


def _text(path: str, separator: str = "") -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().replace("\0", separator).strip()
    except OSError:
        return None
