"""What identifies a run: models by content, programs by version."""

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edgeflare._version import __version__
from edgeflare.campaign.pair import Side
from edgeflare.models import OutputReader

_LIBRARIES = ("numpy", "opencv-python-headless", "onnxruntime", "ai-edge-litert")


def file_sha256(path: Path) -> str:
    """Return the hex digest of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def environment() -> dict[str, Any]:
    """Return the host's versions that may affect a result: of EdgeFlare, Python and libraries."""
    return {
        "edgeflare": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        **{name: version(name) for name in _LIBRARIES},
    }


def model_identity(
    path: Path, side: Side, reader: OutputReader, in_effect: Mapping[str, Any]
) -> dict[str, Any]:
    """Return everything about one model that decides its answers."""
    return {
        "name": path.name,
        "path": str(path.resolve()),
        "sha256": file_sha256(path),
        "bytes": path.stat().st_size,
        "runtime": dict(in_effect),
        "input": side.spec.to_json(),
        "output": {
            **side.output.to_json(),
            "kind": reader.kind,
            **({} if side.decoder is None else {"decoder": dict(side.decoder)}),
        },
    }
