"""Engines that were built on this device, kept under what they were built from."""

import hashlib
import json
import os
import time
import uuid
from contextlib import suppress
from typing import Any, Callable, Mapping, NamedTuple, Optional

FOLDER = "engines"
_RECIPE = 1
"""Raised when the same options come to build another engine."""


class Built(NamedTuple):
    """A serialised engine, its SHA-256 in hex, and how long building it took, in seconds."""

    plan: bytes
    sha256: str
    build_s: float


class EngineCache:
    """The folder `root`/engines: ``<key>.engine`` with a ``<key>.json`` beside it that describes it.

    The key is the digest of `made_from`, which holds, as JSON, all that an engine depends on.
    """

    def __init__(self, root: str) -> None:
        self._folder = os.path.join(root, FOLDER)

    def find(self, made_from: Mapping[str, Any]) -> Optional[Built]:
        """Return the whole engine that was made from exactly this, or None."""
        path = self._path(made_from)
        try:
            with open(path + ".json", encoding="utf-8") as file:
                about = json.load(file)
            with open(path + ".engine", "rb") as file:
                plan = file.read()
            known, build_s = str(about["engine_sha256"]), float(about["build_s"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if sha256_of(plan) != known:
            return None
        for ending in (".engine", ".json"):
            with suppress(OSError):  # the host may tidy up meanwhile
                os.utime(path + ending, None)  # what was used lately is kept
        return Built(plan, known, build_s)

    def build(self, made_from: Mapping[str, Any], build: Callable[[], bytes]) -> Built:
        """Build an engine and keep it; where there is no room to keep it, it serves all the same."""
        begin = time.monotonic()
        plan = build()
        built = Built(plan, sha256_of(plan), round(time.monotonic() - begin, 2))
        about = {**made_from, "engine_sha256": built.sha256, "build_s": built.build_s}
        path = self._path(made_from)
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            _write(path + ".engine", plan)
            _write(path + ".json", json.dumps(about, indent=1, sort_keys=True).encode())
        except OSError:
            self.forget(made_from)
        return built

    def forget(self, made_from: Mapping[str, Any]) -> None:
        """Remove an engine. Safe to repeat."""
        for ending in (".json", ".engine"):
            with suppress(OSError):
                os.remove(self._path(made_from) + ending)

    def _path(self, made_from: Mapping[str, Any]) -> str:
        text = json.dumps({"recipe": _RECIPE, **made_from}, sort_keys=True)
        return os.path.join(self._folder, sha256_of(text.encode()))


def sha256_of(content: bytes) -> str:
    """Return a content's SHA-256, in hex."""
    return hashlib.sha256(content).hexdigest()


def _write(path: str, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = "{}-{}.part".format(path, uuid.uuid4().hex)
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.remove(temporary)
        raise
