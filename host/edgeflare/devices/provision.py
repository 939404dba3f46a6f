"""Uploads agent and model to the device: content-addressed files, uploaded once."""

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from edgeflare.devices.bundle import agent_bundle
from edgeflare.devices.device import Device
from edgeflare.devices.device_scripts import TEND, invalid_answer, run_script
from edgeflare.devices.probe import Probe
from edgeflare.devices.reported import count, texts
from edgeflare.devices.transport import Transport
from edgeflare.errors import DeviceDiskFullError, DeviceError, ModelError

RECENT_S = 3600
"""A file that was used so many seconds ago, or later, may be in use and stays."""
TEMPORARY = ".part"
_SPARE_BYTES = 256 << 10
_TEND_S = 60.0
_SLOWEST_HASH = 2e6
"""Bytes a second that even a slow board reads and hashes."""

Tell = Callable[[str], None]


class Data(NamedTuple):
    """A file beside the model: its name below ``root``/models on the device, its path on the host."""

    name: str
    source: Path


@dataclass(frozen=True)
class Provisioned:
    """What is on the device now; paths are the device's own.

    `model_name` is ``<sha256>.<extension>`` below ``root``/models, `source` the model's path on the
    host; `uploaded` are the names of the files that were not there before, or not whole; `data` is what
    the model needs beside itself, if anything.
    """

    agent_path: str
    root: str
    model_name: str
    model_sha256: str
    source: Path
    uploaded: tuple[str, ...] = ()
    data: Data | None = None

    @property
    def users_words(self) -> dict[str, str]:
        """Each path on the device that a user knows by another: the host's."""
        known = {self.model_path: str(self.source)}
        if self.data is not None:
            known[f"{self.root}/models/{self.data.name}"] = str(self.data.source)
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
    seen: Probe,
    device: Device,
    model: Path,
    data: Path | None = None,
    *,
    runtime: str | None = None,
    progress: Tell | None = None,
) -> Provisioned:
    """Bring agent, model and its data to the device unless they are there, by their SHA-256.

    The agent has the `runtime`, where that is the user's. The device hashes all of them each time. Uploads go to a temporary name, are checked there and
    renamed, so that several hosts may do this at once. After an upload the least recently used files go until the cache keeps `device.cache_limit_mb`.
    Raises ModelError, DeviceDiskFullError, DeviceError and what the transport raises.
    """
    with TemporaryDirectory() as folder:
        agent = _described(agent_bundle(Path(folder), filter(None, [runtime])), "agents")
        loaded = _described(model, "models")
        beside = None if data is None else _described(data, "models")
        files = [agent, loaded, *([] if beside is None else [beside])]
        uploaded = _bring(transport, seen, device, files, progress)
    return Provisioned(
        f"{seen.root}/agents/{agent.name}",
        seen.root,
        loaded.name,
        loaded.sha256,
        model,
        uploaded,
        None if beside is None else Data(beside.name, beside.local),
    )


def provision_agent(
    transport: Transport, seen: Probe, device: Device, runtimes: Sequence[str] = ()
) -> str:
    """Bring the agent alone to the device, with those of the `runtimes` that are the user's; return its path there."""
    with TemporaryDirectory() as folder:
        agent = _described(agent_bundle(Path(folder), runtimes), "agents")
        _bring(transport, seen, device, [agent], None)
    return f"{seen.root}/agents/{agent.name}"


def _described(path: Path, folder: str) -> _File:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return _File(path, folder, digest.hexdigest(), path.stat().st_size)
    except OSError as error:
        what = "the calibration file" if path.suffix == ".npy" else "the model"
        raise ModelError(f"can't read {what} {path}: {error.strerror}") from error


def _bring(
    transport: Transport,
    seen: Probe,
    device: Device,
    files: Sequence[_File],
    progress: Tell | None,
) -> tuple[str, ...]:
    missing = [
        file for file in files if seen.files.get(file.folder, {}).get(file.name) != file.size
    ]
    uploads: Counter[str] = Counter()
    while True:
        _check_space(seen, missing)
        temporaries = {}
        for file in missing:
            if progress is not None:
                progress(f"uploading {file.label} to {seen.name} ({file.size / 1e6:.1f} MB)")
            temporaries[file.name] = _put(transport, seen, file)
        uploads.update(temporaries.keys())
        bad = _settle(transport, seen, device, files, temporaries)
        missing = [file for file in files if file.name in bad]
        if not missing:
            return tuple(uploads)
        for file in missing:
            if uploads[file.name] > 1:
                raise DeviceError(
                    f"{file.label} arrived damaged on {seen.name} twice: its disk, its memory or "
                    "the link changes bytes; try another folder as `cache`, then another card"
                )


def _settle(
    transport: Transport,
    seen: Probe,
    device: Device,
    files: Sequence[_File],
    temporaries: dict[str, str],
) -> list[str]:
    """Have the device check and rename what was uploaded; return the names that are not right."""
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
    timeout = _TEND_S + sum(file.size for file in files) / _SLOWEST_HASH
    answer = tend(transport, seen, wanted=wanted, limit=limit, timeout=timeout)
    return list(answer["bad"])


def tend(
    transport: Transport,
    seen: Probe,
    *,
    wanted: Sequence[dict[str, Any]] = (),
    discard: Sequence[str] = (),
    limit: int | None = None,
    recent_s: float = RECENT_S,
    timeout: float = _TEND_S,
) -> dict[str, Any]:
    """Run the script that checks files in the cache and collects garbage; return {"bad": names, "files": removed, "bytes": removed}."""
    parameters = {
        "root": seen.root,
        "wanted": list(wanted),
        "discard": list(discard),
        "limit": limit,
        "recent_s": recent_s,
        "stale_s": RECENT_S,
    }
    answer = run_script(transport, seen.command, TEND, parameters, timeout)
    try:
        removed = {name: count(answer, name) or 0 for name in ("files", "bytes")}
        return {"bad": texts(answer, "bad"), **removed}
    except ValueError as error:
        raise invalid_answer(seen.name, error) from error


def _check_space(seen: Probe, missing: Sequence[_File]) -> None:
    needed = sum(file.size for file in missing) + _SPARE_BYTES
    if missing and seen.free_bytes is not None and needed > seen.free_bytes:
        raise DeviceDiskFullError(
            f"{seen.root} on {seen.name} has {seen.free_bytes} bytes free and {needed} are needed: "
            + _make_space(seen)
        )


def _put(transport: Transport, seen: Probe, file: _File) -> str:
    """Upload to a unique temporary name beside the file's place and return that path."""
    path = f"{seen.root}/{file.folder}/{file.sha256}-{uuid.uuid4().hex}{TEMPORARY}"
    try:
        transport.put(file.local, path)
    except DeviceDiskFullError as error:
        tend(transport, seen, discard=[path])
        raise DeviceDiskFullError(
            f"no space was left in {seen.root} on {seen.name} for {file.label} ({file.size} "
            f"bytes): {_make_space(seen)}"
        ) from error
    return path


def _make_space(seen: Probe) -> str:
    """Return the words that tell how to make space."""
    return (
        f"free some there, run `edgeflare devices prune {seen.name}`, or give a folder on another "
        "disk as `cache` in the device's inventory entry"
    )
