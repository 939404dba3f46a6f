"""The agent as one file: a zipapp that any device's Python starts."""

import hashlib
import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

import edgeflare_agent
from edgeflare._internal.files import is_disk_full, write_whole
from edgeflare.devices.runtimes import users_runtime
from edgeflare.errors import DeviceError, DiskFullError
from edgeflare_agent.runtimes import ADDED

_EPOCH = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16


def agent_bundle(folder: Path, runtimes: Iterable[str] = ()) -> Path:
    """Return the path of the agent's zipapp in `folder`, built unless it is there already.

    Those of the `runtimes` that are the user's are part of it. Its name is its content's SHA-256, ``<64 hex>.pyz``; the
    same sources give the same bytes on every machine. Raises DiskFullError or DeviceError where it can't be written,
    UsageError for a user's runtime that can't be used.
    """
    content = _bundle_bytes(runtimes)
    path = folder / f"{hashlib.sha256(content).hexdigest()}.pyz"
    try:
        if not path.is_file() or path.read_bytes() != content:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(f"no space left for the agent's bundle in {folder}") from error
        raise DeviceError(
            f"the agent's bundle can't be written to {folder}: {error.strerror}"
        ) from error
    return path


def _bundle_bytes(runtimes: Iterable[str]) -> bytes:
    package = Path(edgeflare_agent.__file__).parent
    sources = {
        f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in package.rglob("*.py")
    }
    for name in runtimes:
        if (users := users_runtime(name)) is not None:
            sources[f"{package.name}/runtimes/{ADDED.format(name)}.py"] = users.source
    sources["__main__.py"] = sources[f"{package.name}/__main__.py"]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as bundle:
        for name in sorted(sources):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = _REGULAR_FILE
            bundle.writestr(entry, sources[name])
    return buffer.getvalue()
