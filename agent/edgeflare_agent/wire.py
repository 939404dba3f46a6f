"""Framed messages over a byte stream; the same module serves both ends.

A frame is a fixed binary prefix, a small JSON header and raw array bytes::

    magic 4s | version u8 | kind u8 | flags u16 | header length u32 | body length u64 | crc32 u32

all little-endian, 24 bytes. The checksum covers the prefix (with the checksum field zero), the
header and the body, as they travel. Arrays lie one after the other in the body; their dtypes and
shapes are in the header under ``arrays``. Flag 1: the body is compressed by zlib, and the header
holds its length without that under ``raw``. Both names belong to the wire.
"""

import json
import struct
import zlib
from enum import IntEnum
from functools import lru_cache
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

import numpy as np

from edgeflare_agent.arrays import Array, DType
from edgeflare_agent.errors import ProtocolError

LEVEL = 1

Bytes = Union[bytes, bytearray, memoryview]


def pack(blocks: Sequence[Bytes]) -> bytes:
    """Return the bytes of these blocks, one after the other, compressed."""
    packer = zlib.compressobj(LEVEL)
    packed = [packer.compress(block) for block in blocks]
    return b"".join([*packed, packer.flush()])


def unpack(packed: Bytes, length: int, limit: int) -> bytes:
    """Return the `length` bytes that were packed; whatever was packed, no more are ever made.

    Raises ProtocolError for a length over the limit, before anything is unpacked, and ValueError
    where other than `length` bytes were packed.
    """
    if type(length) is not int or length < 1:
        raise ValueError("{!r} bytes were compressed".format(length))
    if length > limit:
        raise ProtocolError(
            "a compressed body of {} bytes is over the limit of {}".format(length, limit)
        )
    unpacker = zlib.decompressobj()
    try:
        body = unpacker.decompress(packed, length)
        if len(body) == length and not unpacker.eof:  # the checksum at its end was left to read
            body += unpacker.decompress(unpacker.unconsumed_tail, 1)
    except zlib.error as error:
        raise ValueError("its compressed body is damaged: {}".format(error)) from error
    if len(body) != length or not unpacker.eof or unpacker.unused_data:
        raise ValueError("its compressed body doesn't hold the {} bytes it says".format(length))
    return body


MAGIC = b"\x93EFW"
VERSION = 2
COMPRESSED = 1
MAX_HEADER = 1 << 20
DEFAULT_MAX_BODY = 256 << 20
SCAN_LIMIT = 64 << 10

_FRONT = struct.Struct("<4sBBHIQ")
_CHECKSUM = struct.Struct("<I")
PREFIX_SIZE = _FRONT.size + _CHECKSUM.size
_NO_CHECKSUM = bytes(_CHECKSUM.size)
_JOINED = 16 << 10
_NONSENSE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
_to_json = json.JSONEncoder(separators=(",", ":")).encode

Read = Callable[[int], bytes]
"""Reads at most n bytes, at least one; ``b""`` at the end of the stream."""


class Kind(IntEnum):
    """The type of a frame. Requests carry an ``id`` in the header; their reply carries the same.

    CONFIGURE has ``input`` (a spec) and ``output``: a name, null for the only one, or a list of
    names. It may have ``decoder``; ``repair``, whose arrays come first; ``keep`` {count, scores,
    axis, rows}, for anchors of which some return (`configuration.reduction`); ``searched``, the
    names of the inputs that samples become, with ``axis``, along which they are cut for several;
    and ``fixed``, the names of the others, whose arrays come last, with ``rows``, the number of
    seeds that have a row in them (`configuration.fixed_inputs`); INFER then has ``rows``, the row of
    each sample. Where ``output`` is a list of k names, RESULT has k arrays a
    sample, in that order, and the header ``outputs``: k.
    """

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
    LEASE = 13  # host -> agent: who uses this device from now on
    LEASED = 14
    STATUS = 15  # host -> agent: who uses it, and how it is
    STATE = 16


class Frame(NamedTuple):
    """One message: its kind, its JSON header (without ``arrays``) and its arrays."""

    kind: Kind
    header: Dict[str, Any]
    arrays: Tuple[Array, ...] = ()


class EndOfStreamError(ProtocolError):
    """The stream ended in the middle of a frame, or where one had to begin."""

    code = "eof"


def encode(
    kind: int, header: Mapping[str, Any], arrays: Sequence[Array] = (), compress: bool = False
) -> List[bytes]:
    """Return a frame as byte blocks to be written one after the other.

    Large arrays are passed through as memory, not copied, where they are contiguous; a small frame
    is one block. `compress`: the body goes compressed where that makes it shorter. Raises
    ProtocolError for a header over MAX_HEADER bytes.
    """
    header, flags = dict(header), 0
    body: List[Any] = []
    length = 0
    if len(arrays) > 0:
        header["arrays"] = described = []
        for array in arrays:
            described.append({"dtype": array.dtype.str, "shape": array.shape})
            in_place = array.nbytes > _JOINED and array.flags.c_contiguous
            body.append(array.reshape(-1).view(np.uint8).data if in_place else array.tobytes())
            length += array.nbytes
    if compress and length:
        packed = pack(body)
        if len(packed) < length:
            header["raw"] = length
            body, length, flags = [packed], len(packed), COMPRESSED
    text = _to_json(header).encode()
    if len(text) > MAX_HEADER:
        raise ProtocolError(
            "a header of {} bytes is over the limit of {}".format(len(text), MAX_HEADER)
        )
    blocks = [text, *body]
    if length <= _JOINED:
        blocks = [b"".join(blocks)]
    front = _FRONT.pack(MAGIC, VERSION, kind, flags, len(text), length)
    crc = zlib.crc32(front + _NO_CHECKSUM)
    for block in blocks:
        crc = zlib.crc32(block, crc)
    return [front + _CHECKSUM.pack(crc) + blocks[0], *blocks[1:]]


def read_frame(read: Read, max_body: int = DEFAULT_MAX_BODY, begun: bytes = b"") -> Frame:
    """Read one frame; lengths are checked against the limits before anything is allocated.

    `max_body` (bytes) holds for the body as it travels and as it is without compression. Arrays
    share the memory of what was read: they may be read-only. `begun`: the frame's first bytes where
    they were read already. Raises EndOfStreamError where the stream ends, ProtocolError on anything
    else that is no frame.
    """
    prefix = begun + _read_exactly(read, PREFIX_SIZE - len(begun))
    front = bytes(prefix[: _FRONT.size])
    magic, version, kind, flags, header_length, body_length = _FRONT.unpack(front)
    if magic != MAGIC:
        raise ProtocolError("the stream lost step: {!r} where a frame had to begin".format(magic))
    if version != VERSION:
        raise ProtocolError(
            "the other end speaks protocol version {}, this one {}".format(version, VERSION)
        )
    if flags & ~COMPRESSED:
        raise ProtocolError("a frame has flags that nobody knows: {:#06x}".format(flags))
    if header_length > MAX_HEADER or body_length > max_body:
        raise ProtocolError(
            "a frame of {} + {} bytes is over the limit of {} + {}".format(
                header_length, body_length, MAX_HEADER, max_body
            )
        )
    rest = memoryview(_read_exactly(read, header_length + body_length))
    crc = zlib.crc32(rest, zlib.crc32(front + _NO_CHECKSUM))
    if crc != _CHECKSUM.unpack(prefix[_FRONT.size :])[0]:
        raise ProtocolError("a frame's checksum is wrong: the link changed its bytes")
    body: Bytes = rest[header_length:]
    try:
        header = json.loads(str(rest[:header_length], "utf-8"))
        if flags & COMPRESSED:
            body = unpack(body, header.pop("raw"), max_body)
        arrays, offset = [], 0
        for entry in header.pop("arrays", ()):
            dtype, shape = _plain(entry["dtype"]), tuple([int(n) for n in entry["shape"]])
            count = 1
            for n in shape:
                if n < 0:
                    raise ValueError("a shape is negative")
                count *= n
            if count:
                array = np.frombuffer(body, dtype=dtype, count=count, offset=offset)
            else:
                array = np.empty(shape, dtype)
            arrays.append(array.reshape(shape))
            offset += count * dtype.itemsize
        if offset != len(body):
            raise ValueError("the arrays take {} bytes, the body has {}".format(offset, len(body)))
        return Frame(Kind(kind), header, tuple(arrays))
    except _NONSENSE as error:
        raise ProtocolError("a frame's header makes no sense: {}".format(error)) from error


def find_first_frame(read: Read, max_body: int = DEFAULT_MAX_BODY) -> Tuple[bytes, Frame]:
    """Read up to the first frame; return what came before it (a shell's banner) and the frame.

    Raises EndOfStreamError or ProtocolError if no frame begins in the first SCAN_LIMIT bytes; the
    bytes read so far are in its attribute ``seen``.
    """
    seen = bytearray()
    try:
        while not seen.endswith(MAGIC):
            seen += _next_scanned(read, len(seen))
    except ProtocolError as error:
        error.seen = bytes(seen)  # type: ignore[attr-defined]
        raise
    return bytes(seen[: -len(MAGIC)]), read_frame(read, max_body, MAGIC)


def _read_exactly(read: Read, n: int) -> Bytes:
    """Read exactly n bytes or raise EndOfStreamError; what comes in one piece is not copied."""
    chunk = read(n) if n else b""
    if len(chunk) == n:
        return chunk
    data = bytearray(chunk)
    while len(data) < n:
        if not chunk:
            raise EndOfStreamError("the stream ended {} bytes short".format(n - len(data)))
        chunk = read(n - len(data))
        data += chunk
    return data


def _next_scanned(read: Read, scanned: int) -> Bytes:
    if scanned >= SCAN_LIMIT:
        raise ProtocolError("no handshake in the first {} bytes of the stream".format(SCAN_LIMIT))
    return _read_exactly(read, 1)


@lru_cache(maxsize=64)
def _plain(dtype: str) -> DType:
    """Return the dtype of plain numbers that this names. Raises ValueError for any other."""
    if len(dtype) != 3 or dtype[0] not in "<>|" or dtype[1] not in "biuf" or dtype[2] not in "1248":
        raise ValueError("arrays of {!r} do not travel".format(dtype))
    return np.dtype(dtype)
