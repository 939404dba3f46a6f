"""The weights of a Whisper model, read from CTranslate2's binary format without CTranslate2.

The format (version 6, little-endian; strings are a 16-bit length and that many bytes, the last one
zero): the version, the name and the revision of the specification, then the number of variables
and for each its name, rank, dimensions, element type, bytes and data; then the aliases, pairs of
names, of variables that are the same tensor.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from whisper_export.errors import ExportError

Tensor = npt.NDArray[np.generic]

SUPPORTED_VERSIONS = (5, 6)
SPECIFICATION = "WhisperSpec"
_ELEMENT_TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}


def read_weights(path: Path) -> dict[str, Tensor]:
    """Every variable of ``path`` (a CTranslate2 ``model.bin``) by its name, aliases included.

    Raises:
        ExportError: The file cannot be read, is not in that format, or is not a Whisper model.
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ExportError(f"Cannot read {path}: {problem.strerror}.") from problem
    try:
        return _Reader(data).variables()
    except _NotWhisperError as problem:
        raise ExportError(f"{path} {problem}") from problem
    except (struct.error, ValueError, UnicodeDecodeError, KeyError) as problem:
        raise ExportError(
            f"{path} is not a whole model in CTranslate2's binary format: give the folder of a "
            "Whisper tiny.en model converted for CTranslate2."
        ) from problem


def floats(weights: Mapping[str, Tensor], name: str) -> npt.NDArray[np.float32]:
    """The variable ``name`` as float32.

    Raises:
        ExportError: There is no such variable, or it is kept as integers.
    """
    found = weights.get(name)
    if found is None:
        raise ExportError(
            f"The weights hold no variable {name}: this is not a whole Whisper model."
        )
    if found.dtype.kind != "f":
        raise ExportError(
            f"The variable {name} is kept as {found.dtype}: give weights kept as float16 or "
            "float32, for the exporter quantises by itself."
        )
    return np.ascontiguousarray(found, dtype=np.float32)


class _NotWhisperError(Exception):
    """The file is in the format, but holds another kind of model."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def variables(self) -> dict[str, Tensor]:
        version = self._number("<I")
        if version not in SUPPORTED_VERSIONS:
            raise ValueError(version)
        specification = self._string()
        if specification != SPECIFICATION:
            raise _NotWhisperError(f"holds a {specification} model, not a Whisper model.")
        self._number("<I")
        found = dict(self._variable() for _ in range(self._number("<I")))
        for _ in range(self._number("<I")):
            alias, name = self._string(), self._string()
            found[alias] = found[name]
        return found

    def _variable(self) -> tuple[str, Tensor]:
        name = self._string()
        rank = self._number("<B")
        shape = tuple(self._number("<I") for _ in range(rank))
        element_type = _ELEMENT_TYPES[self._number("<B")]
        raw = self._take(self._number("<I"))
        return name, np.frombuffer(raw, element_type).reshape(shape)

    def _string(self) -> str:
        return self._take(self._number("<H")).rstrip(b"\0").decode("utf-8")

    def _number(self, layout: str) -> int:
        (number,) = struct.unpack(layout, self._take(struct.calcsize(layout)))
        return int(number)

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise ValueError(f"the file ends at byte {len(self._data)}")
        self._at += count
        return taken
