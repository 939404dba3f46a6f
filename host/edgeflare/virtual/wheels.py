"""The board's Python libraries: PyPI's wheels for aarch64, in the versions that this machine has."""

import importlib.metadata
import re
from pathlib import Path

from edgeflare.virtual.tools import Log, ToolError, run_tool

LIBRARIES = ("numpy", "ai-edge-litert", "onnxruntime")
"""The libraries that the agent needs to run models."""

PYTHON = "3.11"
"""The board's Python, Debian bookworm's."""

_NEWEST_GLIBC = 36  # bookworm has glibc 2.36
FOLDER = "usr/lib/python3/dist-packages"
"""The folder of the libraries in the board's root file system."""


def platforms() -> list[str]:
    """Return the platform tags of wheels that run on the board, newest first."""
    tags = [f"manylinux_2_{minor}_aarch64" for minor in range(_NEWEST_GLIBC, 16, -1)]
    return [*tags, "manylinux2014_aarch64"]


def host_versions() -> dict[str, str]:
    """Return the versions of the libraries that this machine has, without a local part such as +cu12."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def put_wheels(pip: list[str], root: Path, wanted: dict[str, str], log: Log) -> dict[str, str]:
    """Put the libraries and what they need into the root file system; return all versions by name.

    Where PyPI has no wheel of the `wanted` version for the board, the newest one is installed.
    Raises DeviceError.
    """
    versions = dict(wanted)
    while True:
        pinned = [f"{name}=={versions[name]}" if name in versions else name for name in LIBRARIES]
        try:
            run_tool(
                [*pip, *_install_words(root / FOLDER), *pinned],
                log,
                doing="fetching the aarch64 wheels from the Python package index",
            )
        except ToolError as error:
            if not versions:
                raise
            lacking = without_wheels(error.output, versions)
            if lacking is None:
                raise
            for name in lacking:
                del versions[name]
        else:
            return installed(root / FOLDER)


def without_wheels(output: str, pinned: dict[str, str]) -> list[str] | None:
    """Return the pinned libraries that pip found no wheel of, by what it printed.

    All of them where the versions don't go together; None where pip failed for another reason.
    """
    if "ResolutionImpossible" in output:
        return list(pinned)
    found = re.search(r"No matching distribution found for ([A-Za-z0-9._-]+?)==", output)
    if found is None:
        return None
    name = re.sub(r"[-_.]+", "-", found[1]).lower()
    return [name] if name in pinned else None


def installed(folder: Path) -> dict[str, str]:
    """Return the versions of the distributions in a folder, by name."""
    found = importlib.metadata.distributions(path=[str(folder)])
    return dict(sorted((each.metadata["Name"].lower(), each.version) for each in found))


def _install_words(folder: Path) -> list[str | Path]:
    words: list[str | Path] = ["install", "--no-compile", "--no-warn-conflicts", "--upgrade"]
    words += ["--quiet", "--disable-pip-version-check", "--no-input", "--target", folder]
    words += ["--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON]
    for abi in ("cp311", "abi3", "none"):
        words += ["--abi", abi]
    for platform in platforms():
        words += ["--platform", platform]
    return words
