"""What identifies a run: models by content, programs by version."""

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edgeflare import plugins
from edgeflare._version import __version__
from edgeflare.campaign.config import SearchConfig
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


def environment(search: SearchConfig) -> dict[str, Any]:
    """Return what on the host may change a result: versions of program, Python, libraries and plug-ins in use."""
    used: dict[plugins.Kind, str] = {"strategy": search.strategy, "oracle": search.oracle}
    return {
        "edgeflare": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        **{name: version(name) for name in _LIBRARIES},
        **{
            f"{k} {name}": origin for k, name in used.items() if (origin := plugins.origin(k, name))
        },
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
