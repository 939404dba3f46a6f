"""Archives as sources of seeds: any that numpy writes, read without holding them."""

import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib import format as npy

from edgeflare.errors import SeedError
from edgeflare.seeds import open_seeds


def load(source, **options):
    return list(open_seeds(source, **({"size": (4, 6), "channels": 1} | options)))


def test_an_archive_with_labels(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 6), np.uint8)
    np.savez(tmp_path / "digits.npz", images=images, labels=np.array([7, 2, 1], np.int32))
    seeds = load(tmp_path / "digits.npz")
    assert [(seed.id, seed.label) for seed in seeds] == [
        ("digits.npz:0", 7),
        ("digits.npz:1", 2),
        ("digits.npz:2", 1),
    ]
    assert np.array_equal(np.stack([seed.sample[:, :, 0] for seed in seeds]), images)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, make):
    make(tmp_path / "a.npz")
    with pytest.raises(SeedError, match=r"a\.npz"):
        load(tmp_path / "a.npz")


def test_an_archive_of_colour_with_alpha_is_rgb(tmp_path):
    images = np.tile(np.array([255, 100, 0, 128], np.uint8), (2, 4, 6, 1))
    np.savez(tmp_path / "a.npz", images=images)
    seeds = load(tmp_path / "a.npz", channels=3)
    assert seeds[0].sample[0, 0].tolist() == [128, 50, 0]
    assert seeds[0].label is None


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": np.zeros(3)}, "named 'images'"),
        ({"images": np.zeros((2, 4, 6), np.float32)}, "float32"),
        ({"images": np.zeros((4, 6), np.uint8)}, r"shape \[4"),
        ({"images": np.zeros((2, 3, 4, 6), np.uint8)}, r"shape \[2"),
        ({"images": np.zeros((0, 4, 6), np.uint8)}, "is empty"),
        ({"images": np.zeros((2, 4, 6), np.uint8), "labels": np.zeros(3, int)}, r"integers \[2\]"),
        ({"images": np.zeros((2, 4, 6), np.uint8), "labels": np.zeros(2)}, r"integers \[2\]"),
        ({"images": np.zeros((2, 4, 6), np.uint8), "labels": np.array([0, -1])}, "negative"),
        ({"images": np.array([object()])}, "uint8"),
    ],
)
def test_an_archive_of_something_else(tmp_path, arrays, sentence):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(SeedError, match=sentence):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 but no more"])
def test_a_damaged_archive(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(SeedError, match=r"a\.npz"):
        load(tmp_path / "a.npz")


def test_a_damaged_image_inside_an_archive(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, images=np.random.default_rng(0).integers(0, 9, (9, 4, 6), np.uint8))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(SeedError, match="be read"):
        load(path)


def test_a_plain_array_named_npz(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(SeedError, match="single array"):
        load(tmp_path / "a.npz")


def test_damage_behind_the_images_that_are_taken_is_noticed(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((500, 4, 6), np.uint8))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(SeedError, match="is damaged"):
        load(path, limit=1)


def member(shape, length, version=(1, 0)):
    """An array file whose header promises that shape, with so many bytes of pixels."""
    file = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    write = npy.write_array_header_1_0 if version == (1, 0) else npy.write_array_header_2_0
    write(file, header)
    data = bytearray(file.getvalue())
    data[6] = version[0]  # the third version's headers look like the second's
    return bytes(data) + bytes(length)


@pytest.mark.parametrize("length", [2 * 4 * 6 - 1, 2 * 4 * 6 + 1])
def test_a_shape_that_is_not_the_content_is_refused(tmp_path, length):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images.npy", member((2, 4, 6), length))
    with pytest.raises(SeedError, match=f"holds {length}"):
        load(tmp_path / "a.npz")


def test_the_second_version_of_the_format_is_read_and_the_third_refused(tmp_path):
    for version in ((2, 0), (3, 0)):
        with zipfile.ZipFile(tmp_path / f"{version[0]}.npz", "w") as archive:
            archive.writestr("images.npy", member((2, 4, 6), 48, version))
    assert len(load(tmp_path / "2.npz")) == 2
    with pytest.raises(SeedError, match=r"version \(3"):
        load(tmp_path / "3.npz")


def array_of(shape, descr="|u1"):
    """The header of an array file."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "header", "length", "sentence"),
    [
        ("images", array_of((1, 1 << 20, 1 << 10)), 1 << 30, "1,074 megapixels"),
        ("images", array_of((1 << 30, 1, 1)), 1 << 30, "1073741824 entries"),
        ("labels", array_of((1 << 27,), "<i8"), 1 << 30, r"integers \[2\]"),
        ("images", array_of((2, 4, 6)).replace(b", }", b", ("), 48, "header"),
        ("images", array_of((2, 4, 6)).replace(b"(2, 4, 6), ", b"(" * 11), 48, "header"),
        ("labels", array_of((1 << 60,), "<i8"), 8, "holds 8"),
    ],
)
def test_what_an_archive_declares_is_checked_before_it_is_read(
    tmp_path, name, header, length, sentence
):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        if name != "images":
            archive.writestr("images.npy", member((2, 4, 6), 48))
        archive.writestr(f"{name}.npy", header)
        archive.filelist[-1].file_size = len(header) + length  # as the directory has it
    with pytest.raises(SeedError, match=sentence):
        load(tmp_path / "a.npz")


def test_an_archive_exchanged_after_opening_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 4, 6), np.uint8))
    opened = open_seeds(tmp_path / "a.npz", size=(4, 6), channels=1)
    np.savez(tmp_path / "a.npz", images=np.zeros((3, 4, 6), np.uint8))
    with pytest.raises(SeedError, match="changed while"):
        list(opened)


def test_a_sample_of_an_archive_may_be_written_to(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 4, 6), np.uint8))
    first, second = load(tmp_path / "a.npz")
    first.sample[:] = 7
    assert (second.sample == 0).all()


@settings(max_examples=30)
@given(
    count=st.integers(1, 5),
    channels=st.sampled_from([None, 1, 3]),
    order=st.sampled_from("CF"),
    compressed=st.booleans(),
    seed=st.integers(0, 9),
)
def test_whatever_numpy_wrote_is_read_as_numpy_reads_it(
    tmp_path_factory, count, channels, order, compressed, seed
):
    shape = (count, 4, 6) if channels is None else (count, 4, 6, channels)
    images = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    path = tmp_path_factory.mktemp("archive") / "a.npz"
    (np.savez_compressed if compressed else np.savez)(path, images=np.array(images, order=order))
    read = [seed.sample for seed in load(path, channels=channels or 1)]
    assert np.array_equal(np.stack(read), images.reshape(count, 4, 6, -1))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", [pytest.param("C", marks=pytest.mark.extended), "F"])
def test_memory_is_a_fraction_of_the_archive(tmp_path, save, order):
    images = np.random.default_rng(0).integers(0, 4, (400, 100, 100, 3), np.uint8)
    save(tmp_path / "a.npz", images=np.asarray(images, order=order))
    size = images.nbytes
    del images
    tracemalloc.start()
    try:
        seeds = open_seeds(tmp_path / "a.npz", size=(100, 100), channels=3)
        assert sum(1 for _ in seeds) == 400
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 3
