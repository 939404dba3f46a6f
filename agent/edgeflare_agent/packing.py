"""Bodies of frames, compressed by zlib and back, never to more bytes than were announced."""

import zlib
from typing import Sequence, Union

from edgeflare_agent.errors import ProtocolError

LEVEL = 1

Bytes = Union[bytes, bytearray, memoryview]


def pack(blocks: Sequence[Bytes]) -> bytes:
    """Return the bytes of these blocks, one after the other, compressed."""
    packer = zlib.compressobj(LEVEL)
    return b"".join([*map(packer.compress, blocks), packer.flush()])


def unpack(packed: Bytes, length: int, limit: int) -> bytes:
    """Return the `length` bytes that were packed; whatever was packed, no more are ever made.

    Raises ProtocolError for a length over the limit, before anything is unpacked, and ValueError where
    other than `length` bytes were packed.
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
