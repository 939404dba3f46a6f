"""Wheels of a few lines each, named like packages that are too large to install in a test."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


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
