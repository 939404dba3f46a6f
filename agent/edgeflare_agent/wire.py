"""Framed messages over a byte stream; the same module serves both ends.

A frame is a fixed binary prefix, a small JSON header and raw array bytes::

    magic 4s | version u8 | kind u8 | reserved u16 | header length u32 | body length u64 | crc32 u32

all little-endian, 24 bytes. The checksum covers the prefix (with the checksum field zero), the
header and the body. Arrays lie one after the other in the body; their dtypes and shapes stand in
the header under ``arrays``.
"""

import json
import re
import struct
import zlib
from enum import IntEnum
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple, Union

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ProtocolError

MAGIC = b"\x93EFW"
VERSION = 1
MAX_HEADER = 1 << 20
DEFAULT_MAX_BODY = 256 << 20
SCAN_LIMIT = 64 << 10

_PREFIX = struct.Struct("<4sBBHIQI")
PREFIX_SIZE = _PREFIX.size
_PLAIN_DTYPE = re.compile(r"[<>|][biuf][1248]")

Read = Callable[[int], bytes]
"""Reads at most n bytes, at least one; ``b""`` at the end of the stream."""


class Kind(IntEnum):
    """What a frame says. Requests carry an ``id`` in the header; their reply carries the same."""

    HELLO = 1  # agent -> host, once, unasked: who I am
    START = 2  # host -> agent, once: limits and heartbeat
    LOAD = 3  # host -> agent: load this model
    LOADED = 4
    CONFIGURE = 5  # host -> agent: the input spec
    CONFIGURED = 6
    INFER = 7  # host -> agent: samples
    RESULT = 8
    PING = 9
    PONG = 10
    ERROR = 11  # agent -> host: {id, code, message}
    BYE = 12  # host -> agent: finish


class Frame(NamedTuple):
    """One message: its kind, its JSON header (without ``arrays``) and its arrays."""

    kind: Kind
    header: Dict[str, Any]
    arrays: Tuple[Array, ...] = ()


class EndOfStreamError(ProtocolError):
    """The stream ended in the middle of a frame, or where one had to begin."""

    code = "eof"


def encode(frame: Frame) -> List[bytes]:
    """Return the frame as byte blocks to be written one after the other.

    Arrays are passed through as memory, not copied, where they are contiguous. Raises ProtocolError
    for a header over MAX_HEADER bytes.
    """
    described = []
    blocks = []  # type: List[Any]
    body_length = 0
    for array in frame.arrays:
        whole = np.ascontiguousarray(array)
        described.append({"dtype": whole.dtype.str, "shape": list(np.shape(array))})
        blocks.append(whole.reshape(-1).view(np.uint8).data if whole.size else b"")
        body_length += whole.nbytes
    header = dict(frame.header)
    if described:
        header["arrays"] = described
    header_bytes = json.dumps(header, separators=(",", ":")).encode()
    if len(header_bytes) > MAX_HEADER:
        raise ProtocolError(
            "a header of {} bytes is over the limit of {}".format(len(header_bytes), MAX_HEADER)
        )
    crc = zlib.crc32(_PREFIX.pack(MAGIC, VERSION, frame.kind, 0, len(header_bytes), body_length, 0))
    crc = zlib.crc32(header_bytes, crc)
    for block in blocks:
        crc = zlib.crc32(block, crc)
    prefix = _PREFIX.pack(MAGIC, VERSION, frame.kind, 0, len(header_bytes), body_length, crc)
    return [prefix + header_bytes, *blocks]


def read_frame(read: Read, max_body: int = DEFAULT_MAX_BODY) -> Frame:
    """Read one frame; lengths are checked against the limits before anything is allocated.

    Raises EndOfStreamError where the stream ends, ProtocolError on anything else that is no frame.
    """
    return _rest_of_frame(read_exactly(read, PREFIX_SIZE), read, max_body)


def find_first_frame(read: Read, max_body: int = DEFAULT_MAX_BODY) -> Tuple[bytes, Frame]:
    """Read up to the first frame; return what came before it (a shell's banner) and the frame.

    Raises EndOfStreamError or ProtocolError if no frame begins in the first SCAN_LIMIT bytes; the
    bytes read so far are in its attribute ``seen``.
    """
    seen = bytearray()
    try:
        while not seen.endswith(MAGIC):
            seen += _next_scanned(read, len(seen))
        rest = read_exactly(read, PREFIX_SIZE - len(MAGIC))
    except ProtocolError as error:
        error.seen = bytes(seen)  # type: ignore[attr-defined]
        raise
    return bytes(seen[: -len(MAGIC)]), _rest_of_frame(MAGIC + rest, read, max_body)


def read_exactly(read: Read, n: int) -> bytearray:
    """Read exactly n bytes or raise EndOfStreamError."""
    data = bytearray()
    while len(data) < n:
        chunk = read(n - len(data))
        if not chunk:
            raise EndOfStreamError("the stream ended {} bytes short".format(n - len(data)))
        data += chunk
    return data


def _next_scanned(read: Read, scanned: int) -> bytearray:
    if scanned >= SCAN_LIMIT:
        raise ProtocolError("no handshake in the first {} bytes of the stream".format(SCAN_LIMIT))
    return read_exactly(read, 1)


def _rest_of_frame(prefix: Union[bytes, bytearray], read: Read, max_body: int) -> Frame:
    magic, version, kind, reserved, header_length, body_length, crc = _PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise ProtocolError("the stream lost step: {!r} where a frame had to begin".format(magic))
    if version != VERSION:
        raise ProtocolError(
            "the other end speaks protocol version {}, this one {}".format(version, VERSION)
        )
    if header_length > MAX_HEADER or body_length > max_body:
        raise ProtocolError(
            "a frame of {} + {} bytes is over the limit of {} + {}".format(
                header_length, body_length, MAX_HEADER, max_body
            )
        )
    header_bytes = read_exactly(read, header_length)
    body = read_exactly(read, body_length)
    expected = zlib.crc32(
        _PREFIX.pack(magic, version, kind, reserved, header_length, body_length, 0)
    )
    if zlib.crc32(body, zlib.crc32(header_bytes, expected)) != crc:
        raise ProtocolError("a frame's checksum is wrong: the link changed its bytes")
    try:
        header = json.loads(bytes(header_bytes).decode())
        return Frame(Kind(kind), header, _split(header.pop("arrays", ()), body))
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ProtocolError("a frame's header makes no sense: {}".format(error)) from error


def _split(described: Sequence[Dict[str, Any]], body: bytearray) -> Tuple[Array, ...]:
    arrays = []
    offset = 0
    for entry in described:
        if not _PLAIN_DTYPE.fullmatch(entry["dtype"]):
            raise ValueError("arrays of {!r} do not travel".format(entry["dtype"]))
        dtype = np.dtype(entry["dtype"])
        shape = tuple(int(n) for n in entry["shape"])
        if any(n < 0 for n in shape):
            raise ValueError("a shape is negative")
        count = 1
        for n in shape:
            count *= n
        array = (
            np.frombuffer(body, dtype=dtype, count=count, offset=offset)
            if count
            else (np.empty(shape, dtype))
        )
        arrays.append(array.reshape(shape))
        offset += count * dtype.itemsize
    if offset != len(body):
        raise ValueError("the arrays take {} bytes, the body has {}".format(offset, len(body)))
    return tuple(arrays)
