"""The metadata of an ONNX file, for runtimes that don't give it: a glance at its protocol buffers."""

import os
from typing import BinaryIO, Dict, Iterator, Tuple

from edgeflare_agent.errors import ModelError

_METADATA_PROPS = 14
_KEY, _VALUE = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10
_LONGEST_ENTRY = 1 << 24


def read_metadata(path: str) -> Dict[str, str]:
    """Return the file's ``metadata_props``; the network itself is skipped. Raises ModelError."""
    found = {}
    with open(path, "rb") as file:
        for field, start, size in _fields(file, os.path.getsize(path), path):
            if field == _METADATA_PROPS and size <= _LONGEST_ENTRY:
                entry = {}
                for part, at, length in _fields(file, start + size, path):
                    file.seek(at)
                    entry[part] = file.read(length).decode(errors="replace")
                found[entry.get(_KEY, "")] = entry.get(_VALUE, "")
    return found


def _fields(file: BinaryIO, end: int, path: str) -> Iterator[Tuple[int, int, int]]:
    """Yield (number, start, size) of each field of bytes from here to `end`; others are skipped."""
    at = file.tell()
    while at < end:
        file.seek(at)
        tag = _varint(file, path)
        kind, at = tag & 7, file.tell()
        if kind == _VARINT:
            _varint(file, path)
            at = file.tell()
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        elif kind == _BYTES:
            size = _varint(file, path)
            start = file.tell()
            at = start + size
            if at > end:
                raise _damaged(path)
            file.seek(start)
            yield tag >> 3, start, size
        else:
            raise _damaged(path)


def _varint(file: BinaryIO, path: str) -> int:
    value = 0
    for position in range(_LONGEST_VARINT):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 0x7F) << (7 * position)
        if byte[0] < 0x80:
            return value
    raise _damaged(path)


def _damaged(path: str) -> ModelError:
    return ModelError("{} is no ONNX file, or is damaged".format(path))
