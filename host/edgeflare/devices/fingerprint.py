"""What makes a device's answers its own: board, system, libraries and the runtime in effect."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_FIELDS = ("board", "soc", "cpu", "cpu_flags", "arch", "kernel", "os", "python", "numpy")


def fingerprint(device: Mapping[str, Any], runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Return, as JSON, all that is known to change a device's results.

    `device` is a session's `device`; `runtime` what is in effect for the loaded model: name, package,
    version, threads, delegate, kernels, providers and the nodes on each. Where the system doesn't tell, a field is None.
    Name and address are no part of it: two boards of one kind and state have the same; nor is how long
    an engine was built.
    """
    lasting = {name: value for name, value in runtime.items() if name != "build_s"}
    return {**{field: device.get(field) for field in _FIELDS}, "runtime": lasting}


def fingerprint_digest(described: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of a fingerprint's canonical JSON text."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
