"""Fingerprints: all that is known to change a device's results, and in what two of them differ."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from edgeflare.errors import DeviceChangedError

_FIELDS = ("board", "soc", "cpu", "cpu_flags", "arch", "kernel", "os", "python", "numpy")


def fingerprint(device: Mapping[str, Any], runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Return, as JSON, all that is known to change a device's results.

    `device` is a session's `device`; `runtime` what is in effect for the loaded model: name,
    package, version, threads, delegate, kernels, providers and the nodes on each. Where the system
    doesn't tell, a field is None. Name and address are no part of it: two boards of one kind and
    state have the same; nor is how long an engine was built.
    """
    lasting = {name: value for name, value in runtime.items() if name != "build_s"}
    return {**{field: device.get(field) for field in _FIELDS}, "runtime": lasting}


def fingerprint_digest(described: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of a fingerprint's canonical JSON text."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return each field of two fingerprints that differs, as (name, value there, value here).

    A field of the runtime is named ``runtime.threads``; one that is missing counts as None.
    """
    found: list[tuple[str, Any, Any]] = []
    for field in [*first, *(field for field in second if field not in first)]:
        one, other = first.get(field), second.get(field)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            inner = differences(one, other)
            found += [(f"{field}.{name}", here, there) for name, here, there in inner]
        elif one != other:
            found.append((field, one, other))
    return found


def check_unchanged(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that a device that came back has its old fingerprint.

    Raises DeviceChangedError that names the fields which differ.
    """
    found = differences(before, now)
    if found:
        changes = "; ".join(f"{field} was {old!r}, is {new!r}" for field, old, new in found)
        raise DeviceChangedError(
            f"{name} came back as another device than it was: {changes}; its answers might differ from "
            "those before: bring it back to that state, or begin a new campaign with it"
        )
