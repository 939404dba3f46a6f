"""Frames survive the trip whole, or are refused; nothing in between."""

import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edgeflare_agent.errors import ProtocolError
from edgeflare_agent.wire import (
    MAGIC,
    MAX_HEADER,
    PREFIX_SIZE,
    SCAN_LIMIT,
    VERSION,
    EndOfStreamError,
    Frame,
    Kind,
    encode,
    find_first_frame,
    read_frame,
)

dtypes = st.sampled_from(
    ["b1", "u1", "i1", "<u2", "<i2", "<f2", "<i4", "<f4", "<i8", "<f8", ">i4", ">f8"]
).map(np.dtype)
arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
headers = st.dictionaries(
    st.text(max_size=8).filter(lambda key: key not in ("arrays", "raw")), values
)
frames = st.builds(Frame, st.sampled_from(Kind), headers, st.lists(arrays, max_size=3).map(tuple))


def reader(data: bytes, chunk: int = 1 << 20) -> Callable[[int], bytes]:
    """A stream that gives at most `chunk` bytes at a time."""
    left = memoryview(data)

    def read(n: int) -> bytes:
        nonlocal left
        taken, left = left[: min(n, chunk)], left[min(n, chunk) :]
        return bytes(taken)

    return read


def packed(
    header: bytes, body: bytes = b"", kind: int = 7, version: int = VERSION, flags: int = 0
) -> bytes:
    """A frame with a right checksum and whatever header and body."""
    layout = struct.Struct("<4sBBHIQI")
    front = (MAGIC, version, kind, flags, len(header), len(body))
    crc = zlib.crc32(body, zlib.crc32(header, zlib.crc32(layout.pack(*front, 0))))
    return layout.pack(*front, crc) + header + body


def same(first: Frame, second: Frame) -> bool:
    return (
        first[:2] == second[:2]
        and len(first.arrays) == len(second.arrays)
        and all(
            a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
            for a, b in zip(first.arrays, second.arrays, strict=True)
        )
    )


@given(st.lists(frames, min_size=1, max_size=3), st.integers(1, 64), st.booleans())
def test_frames_arrive_as_they_were_sent_however_the_stream_is_cut(sent, chunk, compress) -> None:
    read = reader(b"".join(block for frame in sent for block in encode(*frame, compress)), chunk)
    assert all(same(read_frame(read), frame) for frame in sent)
    with pytest.raises(EndOfStreamError):
        read_frame(read)


@settings(max_examples=40)
@given(frames, st.data())
def test_a_truncated_frame_is_the_end_of_the_stream(frame: Frame, data: st.DataObject) -> None:
    whole = b"".join(encode(*frame))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(EndOfStreamError):
        read_frame(reader(whole[:cut]))


@settings(max_examples=40)
@given(frames, st.data())
def test_a_corrupted_frame_is_never_taken_for_a_good_one(frame: Frame, data: st.DataObject) -> None:
    whole = bytearray(b"".join(encode(*frame)))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ProtocolError):
        read_frame(reader(bytes(whole)))


@given(st.binary(max_size=200).filter(lambda banner: MAGIC not in banner), frames)
def test_the_first_frame_is_found_behind_a_banner(banner: bytes, frame: Frame) -> None:
    before, found = find_first_frame(reader(banner + b"".join(encode(*frame))))
    assert before == banner
    assert same(found, frame)


def test_a_banner_without_a_frame_behind_it_is_kept_for_the_message() -> None:
    with pytest.raises(EndOfStreamError) as caught:
        find_first_frame(reader(b"Permission denied\n"))
    assert caught.value.seen == b"Permission denied\n"  # type: ignore[attr-defined]


def test_the_search_for_the_first_frame_ends_somewhere() -> None:
    with pytest.raises(ProtocolError, match="first 65536") as caught:
        find_first_frame(reader(b"x" * (SCAN_LIMIT + 1)))
    assert len(caught.value.seen) == SCAN_LIMIT  # type: ignore[attr-defined]


@pytest.mark.parametrize(("header_length", "body_length"), [(MAX_HEADER + 1, 0), (2, 1001)])
def test_lengths_over_the_limits_are_refused_before_anything_is_read(
    header_length: int, body_length: int
) -> None:
    prefix = struct.pack("<4sBBHIQI", MAGIC, VERSION, 7, 0, header_length, body_length, 0)
    asked = []
    stream = reader(prefix)

    def read(n: int) -> bytes:
        asked.append(n)
        return stream(n)

    with pytest.raises(ProtocolError, match="the limit"):
        read_frame(read, max_body=1000)
    assert asked == [PREFIX_SIZE]


def test_a_header_over_the_limit_is_not_sent() -> None:
    with pytest.raises(ProtocolError, match="the limit"):
        encode(Kind.ERROR, {"message": "x" * MAX_HEADER})


def test_another_version_is_named() -> None:
    with pytest.raises(ProtocolError, match="version 9"):
        read_frame(reader(packed(b"{}", version=9)))


def one_array(dtype: Any, shape: Any) -> bytes:
    return json.dumps({"arrays": [{"dtype": dtype, "shape": shape}]}).encode()


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (b"", b""), (b"\xff\xfe", b""), (b"[]", b""), (b"7", b""), (b"[" * 200_000, b""),
        (b'{"arrays": 3}', b""), (b'{"arrays": [3]}', b""),
        (b'{"arrays": [{"dtype": "|u1"}]}', b""), (b"{}", b"left over"),
        (one_array("|u1", [4]), b"abc"), (one_array("|u1", [2]), b"abc"),
        (one_array("|u1", [-1]), b"abc"), (one_array("|u1", [1e400]), b"abc"),
        (one_array("|u1", [2**70]), b"abc"), (one_array("|u1", [0, 2**70]), b""),
        (one_array("|u1", "abc"), b"abc"), (one_array("|O8", [1]), b"12345678"),
        (one_array("<U2", [1]), b"12345678"), (one_array("u1,u1", [1]), b"12"),
        (one_array("(2,)u1", [1]), b"12"), (one_array("<f1", [1]), b"1"),
        (one_array(None, [1]), b"1"),
    ],
)  # fmt: skip
def test_a_header_that_makes_no_sense_is_a_protocol_error(header: bytes, body: bytes) -> None:
    with pytest.raises(ProtocolError, match="makes no"):
        read_frame(reader(packed(header, body)))


def test_an_unknown_kind_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="200"):
        read_frame(reader(packed(b"{}", kind=200)))


def test_arrays_that_are_not_contiguous_arrive_in_order() -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)[:, ::-1].transpose(2, 0, 1)
    blocks = encode(Kind.INFER, {"id": 1}, (array,))
    [arrived] = read_frame(reader(b"".join(blocks))).arrays
    np.testing.assert_array_equal(arrived, array)


def test_large_contiguous_arrays_are_not_copied() -> None:
    array = np.zeros(100_000, np.uint8)
    blocks = encode(Kind.INFER, {"id": 1}, (array,))
    assert np.shares_memory(np.frombuffer(blocks[1], np.uint8), array)


def test_what_comes_in_one_piece_is_not_copied() -> None:
    array = np.arange(100_000, dtype=np.uint32)
    whole = b"".join(encode(Kind.INFER, {"id": 1}, (array,)))
    pieces = [whole[:PREFIX_SIZE], whole[PREFIX_SIZE:]]
    given = list(pieces)
    [arrived] = read_frame(lambda _: given.pop(0)).arrays
    np.testing.assert_array_equal(arrived, array)
    assert np.shares_memory(arrived, np.frombuffer(pieces[1], np.uint8))


def test_a_small_frame_is_one_block() -> None:
    arrays = (np.zeros((28, 28, 1), np.uint8), np.ones(10, np.float32))
    assert len(encode(Kind.INFER, {"id": 1}, arrays)) == 1


@pytest.mark.parametrize("flags", [2, 3, 1 << 15])
def test_flags_that_nobody_knows_are_refused(flags: int) -> None:
    with pytest.raises(ProtocolError, match=f"knows: 0x{flags:04x}"):
        read_frame(reader(packed(b"{}", flags=flags)))


PICTURE = np.repeat(np.arange(50, dtype=np.uint8), 2000).reshape(100, 1000)


def test_a_compressed_frame_is_shorter_and_arrives_whole() -> None:
    frame = Frame(Kind.INFER, {"id": 1}, (PICTURE, PICTURE[:, ::3], np.float32(1.5).reshape(())))
    plain, short = (b"".join(encode(*frame, compress)) for compress in (False, True))
    assert len(short) < len(plain) / 10
    arrived = read_frame(reader(short), max_body=PICTURE.nbytes * 2)
    assert same(arrived, frame)


def test_what_does_not_get_shorter_is_sent_as_it_is() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8)
    for arrays in ((noise,), ()):
        frame = Frame(Kind.INFER, {"id": 1}, arrays)
        assert encode(*frame, compress=True) == encode(*frame)


def bomb(length: int, says: object, more: bytes = b"") -> bytes:
    """A frame whose body unpacks to `length` zeros, and says that it is `says`."""
    header = {"raw": says, "arrays": [{"dtype": "|u1", "shape": [1000]}]}
    return packed(json.dumps(header).encode(), zlib.compress(bytes(length)) + more, flags=1)


def test_more_than_the_limit_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(ProtocolError, match="1001 bytes"):
        read_frame(reader(bomb(1001, 1001)), max_body=1000)


def test_a_bomb_is_never_unpacked_beyond_what_it_says() -> None:
    huge = bomb(64 << 20, 1000)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="1000 bytes"):
            read_frame(reader(huge), max_body=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        *(bomb(1000, says) for says in (999, 1001, 0, -1, None, True, 1000.0, "1000", [])),
        bomb(0, 1000),
        bomb(1000, 1000, more=b"left over"),
        packed(one_array("|u1", [4]), zlib.compress(b"abcd"), flags=1),
        packed(b'{"raw": 4}', b"abcd", flags=1),
        packed(b'{"raw": 4}', zlib.compress(b"abcd")[:-1], flags=1),
        packed(b'{"raw": 4}', zlib.compress(b"abcd"), flags=1),
        packed(b'{"raw": 4}', b"", flags=1),
    ],
)
def test_a_compressed_body_that_is_not_what_it_says_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="makes no"):
        read_frame(reader(data))
    assert read_frame(reader(bomb(1000, 1000))).arrays[0].shape == (1000,)
