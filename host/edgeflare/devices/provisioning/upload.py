"""Uploads agent and model to the device: content-addressed files, uploaded once."""

import hashlib
import io
import re
import uuid
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import edgeflare_agent
from edgeflare._internal.files import is_disk_full, write_whole
from edgeflare.devices.inventory import Device
from edgeflare.devices.provisioning.probe import Probe, check_cache, check_python
from edgeflare.devices.provisioning.scripts import CLEAN_CACHE, invalid_answer, run_script
from edgeflare.devices.reported import WrongValueError, count, texts
from edgeflare.devices.runtimes import users_runtime
from edgeflare.devices.transports.base import Transport
from edgeflare.errors import DeviceDiskFullError, DeviceError, DiskFullError, ModelError
from edgeflare_agent.runtimes import ADDED

_EPOCH = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16


def agent_bundle(folder: Path, runtimes: Iterable[str] = ()) -> Path:
    """Return the path of the agent's zipapp in `folder`, built unless it is there already.

    Those of the `runtimes` that are the user's are part of it. Its name is its content's SHA-256,
    ``<64 hex>.pyz``; the same sources give the same bytes on every machine. Raises DiskFullError or
    DeviceError where it can't be written, UsageError for a user's runtime that can't be used.
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
            sources[f"{package.name}/runtimes/{ADDED.format(name)}.py"] = users[1]
    sources["__main__.py"] = sources[f"{package.name}/__main__.py"]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as bundle:
        for name in sorted(sources):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = _REGULAR_FILE
            bundle.writestr(entry, sources[name])
    return buffer.getvalue()


RECENT_S = 3600
"""Files used within this number of seconds may be in use, and stay."""
TEMPORARY = ".part"
_SPARE_BYTES = 256 << 10
_CLEAN_S = 60.0
_SLOWEST_HASH_PER_S = 2e6
"""Bytes a second that a slow board reads and hashes."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Provisioned:
    """The files on the device after provisioning; paths are the device's own.

    `model_name` is ``<sha256>.<extension>`` below ``root``/models, `source` the model's path on the
    host; `uploaded` are the names of files that were missing or incomplete; `data` is a further
    file of the model: its name below ``root``/models, and its path on the host.
    """

    agent_path: str
    root: str
    model_name: str
    model_sha256: str
    source: Path
    uploaded: tuple[str, ...] = ()
    data: tuple[str, Path] | None = None

    @property
    def user_paths(self) -> dict[str, str]:
        """The paths on the device, mapped to the user's own on the host."""
        known = {self.model_path: str(self.source)}
        if self.data is not None:
            name, source = self.data
            known[f"{self.root}/models/{name}"] = str(source)
        return known

    @property
    def model_path(self) -> str:
        """The model's path on the device."""
        return f"{self.root}/models/{self.model_name}"


@dataclass(frozen=True)
class _File:
    local: Path
    folder: str
    sha256: str
    size: int

    @property
    def label(self) -> str:
        """What to call it in messages."""
        return "the agent" if self.folder == "agents" else self.local.name

    @property
    def name(self) -> str:
        suffix = self.local.suffix.lower()
        return self.sha256 + (suffix if re.fullmatch(r"\.[a-z0-9]{1,16}", suffix) else ".bin")


def provision(
    transport: Transport,
    probed: Probe,
    device: Device,
    model: Path,
    data: Path | None = None,
    *,
    runtime: str | None = None,
    progress: Progress | None = None,
) -> Provisioned:
    """Upload agent, model and its data to the device unless files with their SHA-256 are there.

    The agent contains `runtime` where that is a user's. The device hashes the files each time.
    Uploads go to a temporary name, are checked and renamed, so that several hosts may do this at
    once. After an upload the least recently used files are removed until the cache has at most
    `device.cache_limit_mb`. Raises ModelError, DeviceDiskFullError, DeviceError and what the
    transport raises.
    """
    with TemporaryDirectory() as folder:
        agent = _hashed(agent_bundle(Path(folder), filter(None, [runtime])), "agents")
        loaded = _hashed(model, "models")
        extra = None if data is None else _hashed(data, "models")
        files = [agent, loaded, *([] if extra is None else [extra])]
        uploaded = _upload_missing(transport, probed, device, files, progress)
    return Provisioned(
        f"{probed.root}/agents/{agent.name}",
        probed.root,
        loaded.name,
        loaded.sha256,
        model,
        uploaded,
        None if extra is None else (extra.name, extra.local),
    )


def provision_agent(
    transport: Transport, probed: Probe, device: Device, runtimes: Sequence[str] = ()
) -> str:
    """Upload the agent with the user's own of the `runtimes`; return its path there."""
    with TemporaryDirectory() as folder:
        agent = _hashed(agent_bundle(Path(folder), runtimes), "agents")
        _upload_missing(transport, probed, device, [agent], None)
    return f"{probed.root}/agents/{agent.name}"


def _hashed(path: Path, folder: str) -> _File:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return _File(path, folder, digest.hexdigest(), path.stat().st_size)
    except OSError as error:
        what = "the calibration file" if path.suffix == ".npy" else "the model"
        raise ModelError(f"can't read {what} {path}: {error.strerror}") from error


def _upload_missing(
    transport: Transport,
    probed: Probe,
    device: Device,
    files: Sequence[_File],
    progress: Progress | None,
) -> tuple[str, ...]:
    missing = [
        file for file in files if probed.files.get(file.folder, {}).get(file.name) != file.size
    ]
    uploads: Counter[str] = Counter()
    while True:
        _check_space(probed, missing)
        temporaries = {}
        for file in missing:
            if progress is not None:
                progress(f"uploading {file.label} to {probed.name} ({file.size / 1e6:.1f} MB)")
            temporaries[file.name] = _upload(transport, probed, file)
        uploads.update(temporaries.keys())
        bad = _verify(transport, probed, device, files, temporaries)
        missing = [file for file in files if file.name in bad]
        if not missing:
            return tuple(uploads)
        for file in missing:
            if uploads[file.name] > 1:
                raise DeviceError(
                    f"{file.label} arrived damaged on {probed.name} twice: its disk, its memory or "
                    "the link changes bytes; try another folder as `cache`, then another card"
                )


def _verify(
    transport: Transport,
    probed: Probe,
    device: Device,
    files: Sequence[_File],
    temporaries: dict[str, str],
) -> list[str]:
    """Have the device check and rename the uploaded files; return the names of the damaged ones."""
    wanted = [
        {
            "folder": file.folder,
            "name": file.name,
            "sha256": file.sha256,
            "size": file.size,
            "temporary": temporaries.get(file.name),
        }
        for file in files
    ]
    limit = device.cache_limit_mb * 1_000_000 if temporaries else None
    timeout = _CLEAN_S + sum(file.size for file in files) / _SLOWEST_HASH_PER_S
    answer = _collect_garbage(transport, probed, wanted=wanted, limit=limit, timeout=timeout)
    return list(answer["bad"])


def _collect_garbage(
    transport: Transport,
    probed: Probe,
    *,
    wanted: Sequence[dict[str, Any]] = (),
    discard: Sequence[str] = (),
    limit: int | None = None,
    recent_s: float = RECENT_S,
    timeout: float = _CLEAN_S,
) -> dict[str, Any]:
    """Run the script that checks files in the cache and removes unused ones.

    Return {"bad": names, "files": removed, "bytes": removed}.
    """
    parameters = {
        "root": probed.root,
        "wanted": list(wanted),
        "discard": list(discard),
        "limit": limit,
        "recent_s": recent_s,
        "stale_s": RECENT_S,
    }
    answer = run_script(transport, probed.command, CLEAN_CACHE, parameters, timeout)
    try:
        removed = {name: count(answer, name) or 0 for name in ("files", "bytes")}
        return {"bad": texts(answer, "bad"), **removed}
    except WrongValueError as error:
        raise invalid_answer(probed.name, error) from error


def _check_space(probed: Probe, missing: Sequence[_File]) -> None:
    needed = sum(file.size for file in missing) + _SPARE_BYTES
    if missing and probed.free_bytes is not None and needed > probed.free_bytes:
        raise DeviceDiskFullError(
            f"{probed.root} on {probed.name} has {probed.free_bytes} bytes free and {needed} are "
            "needed: " + _how_to_make_space(probed)
        )


def _upload(transport: Transport, probed: Probe, file: _File) -> str:
    """Upload to a unique temporary name in the file's folder and return that path."""
    path = f"{probed.root}/{file.folder}/{file.sha256}-{uuid.uuid4().hex}{TEMPORARY}"
    try:
        transport.put(file.local, path)
    except DeviceDiskFullError as error:
        _collect_garbage(transport, probed, discard=[path])
        raise DeviceDiskFullError(
            f"no space was left in {probed.root} on {probed.name} for {file.label} ({file.size} "
            f"bytes): {_how_to_make_space(probed)}"
        ) from error
    return path


def _how_to_make_space(probed: Probe) -> str:
    """Return advice on freeing space."""
    return (
        f"free some there, run `edgeflare devices prune {probed.name}`, or give a folder on "
        "another disk as `cache` in the device's inventory entry"
    )


class PruneReport(NamedTuple):
    """How many files were removed from the device, and their bytes."""

    files: int
    bytes: int


def prune(transport: Transport, probed: Probe, everything: bool) -> PruneReport:
    """Remove cached agents and models: what was not used in the last hour, or everything.

    Other hosts' current uploads are left alone. Raises DeviceError and what the transport raises.
    """
    for problem in (check_python(probed), check_cache(probed)):
        if problem is not None:
            raise problem.error()
    recent_s = -RECENT_S if everything else RECENT_S
    answer = _collect_garbage(transport, probed, limit=-1, recent_s=recent_s)
    return PruneReport(answer["files"], answer["bytes"])
