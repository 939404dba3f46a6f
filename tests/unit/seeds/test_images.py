"""Every colour type, depth and orientation a seed file may have."""

import resource
import struct
import zlib

import cv2
import numpy as np
import pytest

from edgeflare.seeds.images import UnreadableError, decode

RED, BLUE = (200, 30, 10), (10, 60, 220)
HALVES = np.array([[RED, RED, BLUE, BLUE]] * 2, np.uint8)
EXIF = b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0) + b"\0\0\0\0"


def encoded(suffix: str, image: np.ndarray, *options: int) -> bytes:
    if image.ndim == 3:
        image = image[:, :, [2, 1, 0, 3][: image.shape[2]]]
    return cv2.imencode(suffix, image, options)[1].tobytes()


def with_exif(jpeg: bytes, block: bytes) -> bytes:
    segment = b"Exif\0\0" + block
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]


def png_with_exif(png: bytes, block: bytes) -> bytes:
    chunk = b"eXIf" + block
    inserted = struct.pack(">I", len(block)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:33] + inserted + png[33:]


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".ppm", ".webp"])
def test_lossless_colour_comes_back_as_rgb(suffix):
    lossless = [cv2.IMWRITE_WEBP_QUALITY, 101] if suffix == ".webp" else []
    assert np.array_equal(decode(encoded(suffix, HALVES, *lossless)).sample, HALVES)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".pgm"])
def test_grey_keeps_one_channel(suffix):
    grey = np.arange(24, dtype=np.uint8).reshape(4, 6)
    assert np.array_equal(decode(encoded(suffix, grey)).sample, grey[:, :, None])


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits_are_rounded_to_eight(suffix):
    grey = np.array([[0, 128, 129, 257], [65535, 65406, 65407, 32768]], np.uint16)
    expected = [[0, 0, 1, 1], [255, 254, 255, 128]]
    assert decode(encoded(suffix, grey)).sample[:, :, 0].tolist() == expected


@pytest.mark.parametrize("depth", [np.uint8, np.uint16])
def test_transparent_pixels_are_laid_over_black(depth):
    alpha = np.array([[0, 128, 255, 255]] * 2, np.uint8)[:, :, None]
    image = np.concatenate([HALVES, alpha], axis=2).astype(depth)
    if depth is np.uint16:
        image *= 257
    decoded = decode(encoded(".png", image))
    assert decoded.transparent
    assert decoded.sample[0].tolist() == [[0, 0, 0], [100, 15, 5], list(BLUE), list(BLUE)]


def test_an_opaque_alpha_channel_is_not_called_transparent():
    opaque = np.concatenate([HALVES, np.full((2, 4, 1), 255, np.uint8)], axis=2)
    decoded = decode(encoded(".png", opaque))
    assert not decoded.transparent
    assert np.array_equal(decoded.sample, HALVES)


@pytest.mark.parametrize("name", ["palette.png"])
def test_palette(odd_files, name):
    assert np.array_equal(decode(odd_files[name]).sample, HALVES)


def test_transparent_palette_entry_turns_black(odd_files):
    decoded = decode(odd_files["palette_transparent.png"])
    assert decoded.transparent
    assert {tuple(pixel) for pixel in decoded.sample.reshape(-1, 3).tolist()} in (
        {(0, 0, 0), RED},
        {(0, 0, 0), BLUE},
    )


def test_grey_with_alpha(odd_files):
    assert (decode(odd_files["grey_alpha.png"]).sample == 100).all()


@pytest.mark.parametrize("name", ["bilevel.png", "bilevel.bmp"])
def test_one_bit(odd_files, name):
    sample = decode(odd_files[name]).sample
    assert sample[:, :, 0].tolist() == [[255, 0, 255, 0], [0, 0, 255, 255]]


@pytest.mark.parametrize("name", ["cmyk.jpg", "cmyk.tif"])
def test_cmyk_becomes_rgb(odd_files, name):
    decoded = decode(odd_files[name])
    assert not decoded.transparent
    assert np.abs(decoded.sample.astype(int) - RED).max() <= 3


def test_tiff_alpha_is_applied_once(odd_files):
    decoded = decode(odd_files["rgba.tif"])
    assert decoded.transparent
    assert decoded.sample[0, :2].tolist() == [[0, 0, 0], [100, 15, 5]]
    assert decoded.sample[1, 3].tolist() == list(BLUE)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_jpeg_orientation_is_as_opencv_shows_it(orientation):
    image = np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8)
    block = b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0)
    data = with_exif(encoded(".jpg", image), block + b"\0\0\0\0")
    shown = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    assert np.array_equal(decode(data).sample, shown)


def test_png_with_alpha_is_turned_too():
    image = np.zeros((2, 4, 4), np.uint8)
    image[0, 0] = (255, 0, 0, 128)
    sample = decode(png_with_exif(encoded(".png", image), EXIF)).sample
    assert sample.shape == (4, 2, 3)
    assert sample[0, 1].tolist() == [128, 0, 0]
    assert sample.sum() == 128


@pytest.mark.parametrize("name", ["turned.webp", "turned.tif"])
def test_other_formats_are_turned_once(odd_files, name):
    sample = decode(odd_files[name]).sample
    assert sample.shape == (4, 2, 3)
    assert sample[0, 1].tolist() == [255, 0, 0]


@pytest.mark.parametrize("block", [b"", b"II*\0", EXIF[:12], b"II*\0\xff\xff\xff\xff", b"junk" * 9])
def test_a_damaged_exif_block_turns_nothing(block):
    image = np.full((16, 24, 3), 90, np.uint8)
    assert decode(with_exif(encoded(".jpg", image), block)).sample.shape == (16, 24, 3)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"hello", "damaged"),
        (encoded(".png", HALVES)[:-30], "damaged"),
        (encoded(".bmp", HALVES)[:-30], "damaged"),
    ],
)
def test_what_is_no_image_is_refused(data, reason, capfd):
    with pytest.raises(UnreadableError, match=reason):
        decode(data)


def test_float_pixels_are_refused_by_name(odd_files):
    with pytest.raises(UnreadableError, match="float32"):
        decode(odd_files["float.tif"])


def test_sixteen_bit_tiff_with_alpha_is_refused_by_name():
    image = np.full((2, 4, 4), 1000, np.uint16)
    with pytest.raises(UnreadableError, match="16 bits"):
        decode(encoded(".tif", image))


def png_of(width: int, height: int) -> bytes:
    """A whole PNG of one bit a pixel, all black."""

    def chunk(name: bytes, content: bytes) -> bytes:
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes((1 + (width + 7) // 8) * height), 1)
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def stating(suffix: str, width: int, height: int) -> bytes:
    """A small file whose header states another size."""
    lossy = [cv2.IMWRITE_WEBP_QUALITY, 80] if suffix == ".webp" else []
    data = bytearray(encoded(suffix, np.zeros((13, 11, 3), np.uint8), *lossy))
    if suffix == ".bmp":
        struct.pack_into("<ii", data, 18, width, -height)
    elif suffix == ".jpg":
        frame = data.index(b"\xff\xc0")
        struct.pack_into(">HH", data, frame + 5, height, width)
    elif suffix == ".webp":
        struct.pack_into("<HH", data, 26, width, height)
    elif suffix == ".tif":
        for tag, size in ((256, width), (257, height)):
            start = data.index(struct.pack("<H", tag), int.from_bytes(data[4:8], "little"))
            struct.pack_into("<HHII", data, start, tag, 4, 1, size)
    else:
        return b"P6 # a comment\n%d %d\n255\n" % (width, height)
    return bytes(data)


@pytest.mark.parametrize("suffix", [".bmp", ".jpg", ".webp", ".tif", ".ppm"])
def test_a_header_that_states_too_many_pixels_is_refused_before_decoding(suffix):
    with pytest.raises(UnreadableError, match="164 megapixels"):
        decode(stating(suffix, 16_383, 10_000))


def test_an_extended_webp_and_a_big_tiff_that_state_too_many_pixels_are_refused(odd_files):
    webp = bytearray(odd_files["turned.webp"])
    webp[24:30] = b"\xff\xff\x00\xff\xff\x00"
    big_tiff = struct.pack("<2sHHHQQ", b"II", 43, 8, 0, 16, 2)
    big_tiff += b"".join(struct.pack("<HHQQ", tag, 16, 1, 1 << 16) for tag in (256, 257))
    for data in (webp, big_tiff):
        with pytest.raises(UnreadableError, match="4,295 megapixels"):
            decode(bytes(data))


def test_a_png_that_states_more_than_it_holds_takes_no_memory():
    png = bytearray(encoded(".png", HALVES))
    png[33:37] = b"\xff\xff\xff\xff"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnreadableError, match="damaged"):
        decode(bytes(png))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_an_image_bomb_is_never_decoded():
    with pytest.raises(UnreadableError, match="400 megapixels"):
        decode(png_of(20_000, 20_000))
    assert decode(png_of(3_000, 10)).sample.shape == (10, 3_000, 1)
