"""Framed messages over a byte stream; the same module serves both ends.

A frame is a fixed binary prefix, a small JSON header and raw array bytes::

    magic 4s | version u8 | kind u8 | flags u16 | header length u32 | body length u64 | crc32 u32

all little-endian, 24 bytes. The checksum covers the prefix (with the checksum field zero), the
header and the body, as they travel. Arrays lie one after the other in the body; their dtypes and
shapes are in the header under ``arrays``. Flag 1: the body is compressed by zlib, and the header
holds its length without that under ``raw``. Both names belong to the wire.
"""

import json
import math
import struct
import zlib
from enum import IntEnum
from functools import lru_cache
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

import numpy as np

from edgeflare_agent.arrays import Array, DType
from edgeflare_agent.errors import ProtocolError

LEVEL = 1
_SHOWN = 60

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
        raise ValueError("raw = {}, expected a whole number from 1".format(repr(length)[:_SHOWN]))
    if length > limit:
        raise TooLargeError(
            "a compressed body of {} bytes is over the limit of {}".format(length, limit)
        )
    unpacker = zlib.decompressobj()
    try:
        body = unpacker.decompress(packed, length)
        if len(body) == length and not unpacker.eof:  # the checksum at its end was left to read
            body += unpacker.decompress(unpacker.unconsumed_tail, 1)
    except zlib.error as error:
        raise ValueError("its compressed body can't be unpacked") from error
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
MOST_AXES = 32
"""As many as numpy 1 has."""
_MOST_EMPTY = 1 << 27
"""The product of an empty array's other axes: numpy of 32 bits counts no further bytes."""
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


_KINDS = frozenset(map(int, Kind))


class Frame(NamedTuple):
    """One message: its kind, its JSON header (without ``arrays``) and its arrays."""

    kind: Kind
    header: Dict[str, Any]
    arrays: Tuple[Array, ...] = ()


class EndOfStreamError(ProtocolError):
    """The stream ended in the middle of a frame, or where one had to begin."""

    code = "eof"


class TooLargeError(ProtocolError):
    """A frame is longer than its reader allows, and no longer than one may be."""


class NonsenseError(ProtocolError):
    """A frame arrived as it was sent, by its checksum, and makes no sense all the same."""


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
    they were read already. Raises EndOfStreamError where the stream ends, NonsenseError on what makes
    no sense though its checksum is right, TooLargeError for a body over `max_body`, ProtocolError on
    anything else that is no frame, such as lengths that no reader allows.
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
        # Nobody sends such lengths: bytes of the prefix were changed, as its checksum would tell.
        is_damaged = header_length > MAX_HEADER or body_length > DEFAULT_MAX_BODY
        raise (ProtocolError if is_damaged else TooLargeError)(
            "a frame of {} + {} bytes, over the limit of {} + {}".format(
                header_length, body_length, MAX_HEADER, max_body
            )
        )
    rest = memoryview(_read_exactly(read, header_length + body_length))
    crc = zlib.crc32(rest, zlib.crc32(front + _NO_CHECKSUM))
    if crc != _CHECKSUM.unpack(prefix[_FRONT.size :])[0]:
        raise ProtocolError("a frame's checksum is wrong: the link changed its bytes")
    if kind not in _KINDS:
        raise _nonsense("there is no kind {}".format(kind))
    body: Bytes = rest[header_length:]
    try:
        header = json.loads(str(rest[:header_length], "utf-8"))
    except (ValueError, RecursionError) as error:
        raise _nonsense("its header is no JSON") from error
    if type(header) is not dict:
        raise _nonsense("its header is no JSON object")
    try:
        if flags & COMPRESSED:
            body = unpack(body, header.pop("raw", None), max_body)
    except ValueError as error:
        raise _nonsense(str(error)) from error
    return Frame(Kind(kind), header, _arrays_in(body, header.pop("arrays", ())))


def _arrays_in(body: Bytes, entries: Any) -> Tuple[Array, ...]:
    """Return the arrays of a frame's body. Raises NonsenseError for what describes none."""
    if not entries and not len(body):
        return ()
    if not isinstance(entries, list):
        raise _wrong("arrays", entries, "a list")
    arrays, offset = [], 0
    for entry in entries:
        if not isinstance(entry, dict):
            raise _wrong("arrays", entry, "an object for each array")
        dtype, shape = _plain(entry.get("dtype")), entry.get("shape")
        if not isinstance(shape, list) or len(shape) > MOST_AXES:
            raise _wrong("arrays.shape", shape, "a list of {} axes at most".format(MOST_AXES))
        count = 1
        for n in shape:
            if type(n) is not int or n < 0:
                raise _wrong("arrays.shape", n, "whole numbers from 0")
            count *= n
        end = offset + count * dtype.itemsize
        if end > len(body):
            raise _wrong(
                "arrays.shape", shape, "no more than the {} bytes of the body".format(len(body))
            )
        if count:
            array = np.frombuffer(body, dtype=dtype, count=count, offset=offset)
            arrays.append(array.reshape(shape))
        elif math.prod(n for n in shape if n) > _MOST_EMPTY:
            raise _wrong("arrays.shape", shape, "shorter axes")
        else:
            arrays.append(np.empty(shape, dtype))
        offset = end
    if offset != len(body):
        raise _wrong("arrays", offset, "the {} bytes of the body".format(len(body)))
    return tuple(arrays)


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


def _plain(dtype: Any) -> DType:
    """Return the dtype of plain numbers that this names. Raises NonsenseError for any other."""
    if not isinstance(dtype, str):
        raise _wrong("arrays.dtype", dtype, "a text")
    return _plain_named(dtype)


@lru_cache(maxsize=64)
def _plain_named(dtype: str) -> DType:
    if len(dtype) != 3 or dtype[0] not in "<>|" or dtype[1] not in "biuf" or dtype[2] not in "1248":
        raise _wrong("arrays.dtype", dtype, "a dtype of plain numbers")
    try:
        return np.dtype(dtype)
    except TypeError as error:  # such as <b8
        raise _wrong("arrays.dtype", dtype, "a dtype of plain numbers") from error


def _wrong(field: str, value: object, expected: str) -> NonsenseError:
    return _nonsense("{} = {}, expected {}".format(field, repr(value)[:_SHOWN], expected))


def _nonsense(why: str) -> NonsenseError:
    return NonsenseError("a frame that makes no sense: {}".format(why))
