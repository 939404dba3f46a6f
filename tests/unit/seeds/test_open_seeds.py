"""Folders, archives and single images as sources of seeds."""

import hashlib
import os
import sys
from typing import NamedTuple

import cv2
import numpy as np
import pytest

from edgeflare.errors import SeedError
from edgeflare.seeds import RESIZE_RULES, SeedInput, Skipped, open_seeds


def write(path, value=0, shape=(4, 6)):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.full(shape, value, np.uint8)
    path.write_bytes(cv2.imencode(".png", image)[1].tobytes())
    return path


class Loaded(NamedTuple):
    seeds: list[SeedInput]
    skipped: list[Skipped]
    notices: list[str]
    total: int


def load(source, **options):
    defaults = {"size": (4, 6), "channels": 1, "resize": None, "labels": None, "limit": None}
    opened = open_seeds(source, **(defaults | options))
    return Loaded(list(opened), opened.skipped, opened.notices, opened.total)


def test_a_flat_folder_in_natural_order(tmp_path):
    for number in (10, 9, 1):
        write(tmp_path / f"digit{number}.png", number)
    loaded = load(tmp_path)
    assert [seed.id for seed in loaded.seeds] == ["digit1.png", "digit9.png", "digit10.png"]
    assert [int(seed.sample[0, 0, 0]) for seed in loaded.seeds] == [1, 9, 10]
    assert loaded.skipped == []
    assert loaded.notices == []


def test_class_folders_without_a_mapping_give_no_labels_and_a_notice(tmp_path):
    write(tmp_path / "cat" / "1.png")
    loaded = load(tmp_path)
    assert [(seed.id, seed.label) for seed in loaded.seeds] == [("cat/1.png", None)]
    assert "no label mapping" in loaded.notices[0]


def test_class_folders_with_a_mapping(tmp_path):
    write(tmp_path / "cat" / "deep" / "1.png", 1)
    write(tmp_path / "dog" / "2.png", 2)
    write(tmp_path / "emu" / "3.png", 3)
    loaded = load(tmp_path, labels={"cat": 5, "dog": 0})
    assert [seed.label for seed in loaded.seeds] == [5, 0, None]
    assert "no label" in "\n".join(loaded.notices)


def test_a_mapping_that_fits_no_folder_is_refused(tmp_path):
    write(tmp_path / "cat" / "1.png")
    with pytest.raises(SeedError, match="names kitten"):
        load(tmp_path, labels={"kitten": 0})


def test_damaged_files_are_skipped_and_named_and_the_rest_is_kept(tmp_path):
    good = write(tmp_path / "a.png", 3)
    (tmp_path / "b.png").write_bytes(good.read_bytes()[:-20])
    (tmp_path / "c.jpg").write_bytes(b"")
    (tmp_path / "d.png").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "e.png")
    loaded = load(tmp_path)
    assert [seed.id for seed in loaded.seeds] == ["a.png"]
    reasons = {entry.name: entry.reason for entry in loaded.skipped}
    assert list(reasons) == ["b.png", "c.jpg", "d.png", "e.png"]
    assert "damaged" in reasons["b.png"]
    assert "empty" in reasons["c.jpg"]
    assert "No such file" in reasons["d.png"]
    assert "no ordinary file" in reasons["e.png"]


def test_a_file_too_large_to_be_an_image_is_skipped_unread(tmp_path):
    write(tmp_path / "a.png")
    with (tmp_path / "b.png").open("wb") as file:
        file.truncate(50 << 30)
    loaded = load(tmp_path)
    assert [entry.name for entry in loaded.skipped] == ["b.png"]
    assert "53,687 MB" in loaded.skipped[0].reason


def test_an_image_too_narrow_to_be_cropped_is_skipped(tmp_path):
    write(tmp_path / "a.png")
    cv2.imwrite(str(tmp_path / "b.png"), np.zeros((1, 60_000), np.uint8))
    loaded = load(tmp_path, size=(224, 224), resize="crop")
    assert [entry.name for entry in loaded.skipped] == ["b.png"]
    assert "too narrow" in loaded.skipped[0].reason


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names that are not UTF-8")
def test_a_name_that_is_not_utf8_is_skipped(tmp_path):
    write(tmp_path / "a.png")
    write(tmp_path / "b.png").rename(tmp_path / os.fsdecode(b"b\xff.png"))
    loaded = load(tmp_path)
    assert [seed.id for seed in loaded.seeds] == ["a.png"]
    assert loaded.skipped[0].name.encode().isascii()


def test_hidden_files_are_ignored_and_others_counted(tmp_path):
    write(tmp_path / "a.PNG")
    write(tmp_path / ".hidden.png")
    write(tmp_path / ".cache" / "b.png")
    (tmp_path / "readme.txt").write_text("hello")
    (tmp_path / "Thumbs.db").write_text("hello")
    loaded = load(tmp_path)
    assert [seed.id for seed in loaded.seeds] == ["a.PNG"]
    assert loaded.notices == [f"2 files (1 .db, 1 .txt) in {tmp_path} ignored: no image by name."]


def test_files_of_other_kinds_are_recognised_by_their_suffix(tmp_path):
    write(tmp_path / "a.png")
    for name in ("b.HEIC", "c.heic", "d.mp4", "e", "f.x\ny", *(f"g.k{n}" for n in range(4))):
        (tmp_path / name).write_bytes(b"")
    kinds = "2 .heic, 1 .k0, 1 .k1, 1 .k2, 1 .k3, ..."
    assert load(tmp_path).notices == [f"9 files ({kinds}) in {tmp_path} ignored: no image by name."]


def test_links_are_followed_and_loops_end(tmp_path):
    outside = write(tmp_path / "outside" / "x.png", 7).parent
    folder = write(tmp_path / "seeds" / "a.png", 1).parent
    (folder / "loop").symlink_to(folder)
    (folder / "other").symlink_to(outside)
    (outside / "back").symlink_to(folder)
    loaded = load(folder)
    assert [seed.id for seed in loaded.seeds] == ["a.png", "other/x.png"]


def test_equal_images_are_kept_and_noticed(tmp_path):
    for name in "abc":
        write(tmp_path / f"{name}.png", 1)
    loaded = load(tmp_path)
    assert len(loaded.seeds) == 3
    assert "2 images" in "\n".join(loaded.notices)


def test_limit_counts_usable_images_only(tmp_path):
    (tmp_path / "0.png").write_bytes(b"damaged")
    for number in (1, 2, 3):
        write(tmp_path / f"{number}.png", number)
    loaded = load(tmp_path, limit=2)
    assert [seed.id for seed in loaded.seeds] == ["1.png", "2.png"]
    assert [entry.name for entry in loaded.skipped] == ["0.png"]
    assert loaded.total == 4


def test_an_image_is_read_when_it_is_asked_for(tmp_path):
    for name in "abc":
        write(tmp_path / f"{name}.png", 1)
    seeds = iter(open_seeds(tmp_path, size=(4, 6), channels=1))
    assert next(seeds).id == "a.png"
    write(tmp_path / "b.png", 2)
    (tmp_path / "c.png").unlink()
    assert [(seed.id, int(seed.sample[0, 0, 0])) for seed in seeds] == [("b.png", 2)]


def test_iterating_again_begins_anew(tmp_path):
    write(tmp_path / "a.png")
    write(tmp_path / "b.png")
    (tmp_path / "c.png").write_bytes(b"damaged")
    opened = open_seeds(tmp_path, size=(4, 6), channels=1)
    next(iter(opened))
    for _ in range(2):
        assert [seed.id for seed in opened] == ["a.png", "b.png"]
        assert [entry.name for entry in opened.skipped] == ["c.png"]
        assert "same pixels" in "\n".join(opened.notices)


def test_a_seed_reports_the_digest_of_its_file(tmp_path):
    image = write(tmp_path / "deep" / "a.png")
    (seed,) = load(tmp_path).seeds
    assert seed.file_sha256 == hashlib.sha256(image.read_bytes()).hexdigest()
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 4, 6), np.uint8))
    archive = hashlib.sha256((tmp_path / "a.npz").read_bytes()).hexdigest()
    assert [seed.file_sha256 for seed in load(tmp_path / "a.npz").seeds] == [archive] * 2


def test_colour_becomes_grey_by_bt601_and_grey_becomes_colour(tmp_path):
    pixels = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]], np.uint8)
    (tmp_path / "a.png").write_bytes(cv2.imencode(".png", pixels[:, :, ::-1])[1].tobytes())
    (grey,) = load(tmp_path, size=(1, 4), channels=1).seeds
    assert grey.sample[0, :, 0].tolist() == [76, 150, 29, 255]
    write(tmp_path / "a.png", 9)
    (colour,) = load(tmp_path, channels=3).seeds
    assert colour.sample.shape == (4, 6, 3)
    assert (colour.sample == 9).all()


def test_another_size_without_a_rule_names_image_sizes_and_option(tmp_path):
    write(tmp_path / "a.png")
    write(tmp_path / "b.png", shape=(5, 7))
    with pytest.raises(SeedError, match=r"6; .*--resize"):
        load(tmp_path)


def test_without_a_size_every_image_keeps_its_own(tmp_path):
    write(tmp_path / "a.png")
    write(tmp_path / "b.png", shape=(5, 7))
    assert [seed.sample.shape for seed in load(tmp_path, size=None).seeds] == [(4, 6, 1), (5, 7, 1)]


@pytest.mark.parametrize("rule", RESIZE_RULES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", [(9, 31), (31, 9), (2, 3)])
def test_every_rule_gives_the_size_and_keeps_a_flat_colour(tmp_path, rule, channels, shape):
    colour = 114 if rule == "letterbox" else 77  # that of its borders
    write(tmp_path / "a.png", colour, shape)
    (seed,) = load(tmp_path, size=(5, 8), channels=channels, resize=rule).seeds
    assert seed.sample.shape == (5, 8, channels)
    assert seed.sample.dtype == np.uint8
    assert (seed.sample == colour).all()


def test_nearest_takes_pixels_and_area_takes_means(tmp_path):
    image = np.kron([[10, 20], [30, 40]], np.ones((3, 3))).astype(np.uint8)
    image[1, 1] += 90
    (tmp_path / "a.png").write_bytes(cv2.imencode(".png", image)[1].tobytes())
    (nearest,) = load(tmp_path, size=(2, 2), resize="nearest").seeds
    (area,) = load(tmp_path, size=(2, 2), resize="area").seeds
    assert nearest.sample[:, :, 0].tolist() == [[100, 20], [30, 40]]
    assert area.sample[:, :, 0].tolist() == [[20, 20], [30, 40]]


def test_crop_keeps_proportions_and_the_centre(tmp_path):
    image = np.zeros((4, 12), np.uint8)
    image[:, 4:8] = 200
    (tmp_path / "a.png").write_bytes(cv2.imencode(".png", image)[1].tobytes())
    (seed,) = load(tmp_path, size=(4, 4), resize="crop").seeds
    assert (seed.sample == 200).all()


@pytest.mark.parametrize(
    ("shape", "size", "inner"),
    [  # inner: first and last row, first and last column of the image within the borders
        ((10, 20), (12, 12), (3, 9, 0, 12)),
        ((20, 10), (12, 12), (0, 12, 3, 9)),
        ((6, 12), (13, 10), (4, 9, 0, 10)),
        ((4, 3), (8, 9), (0, 8, 1, 7)),
        ((9, 31), (32, 32), (11, 20, 0, 32)),
        ((7, 14), (5, 10), (0, 5, 0, 10)),
        ((1, 400), (6, 20), (2, 3, 0, 20)),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_letterbox_has_the_image_scaled_in_its_middle_and_grey_borders(
    tmp_path, shape, size, inner, channels
):
    pixels = np.random.default_rng(5).integers(0, 256, (*shape, channels), dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(cv2.imencode(".png", pixels[:, :, ::-1])[1].tobytes())
    (seed,) = load(tmp_path, size=size, channels=channels, resize="letterbox").seeds
    top, bottom, left, right = inner

    expected = pixels.astype(float)
    for axis, (old, new) in enumerate(zip(shape, (bottom - top, right - left), strict=True)):
        places = (np.arange(new) + 0.5) * old / new - 0.5

        def interpolated(line, places=places):
            return np.interp(places, np.arange(len(line)), line)

        expected = np.apply_along_axis(interpolated, axis, expected)
    assert seed.sample.shape == (*size, channels)
    np.testing.assert_allclose(seed.sample[top:bottom, left:right], expected, atol=1)
    border = np.ones(size, bool)
    border[top:bottom, left:right] = False
    assert (seed.sample[border] == 114).all()


def test_transparency_is_noticed(tmp_path):
    image = np.full((4, 6, 4), 100, np.uint8)
    (tmp_path / "a.png").write_bytes(cv2.imencode(".png", image)[1].tobytes())
    assert "transparent pixels" in "\n".join(load(tmp_path).notices)


def test_one_image_file(tmp_path):
    assert [seed.id for seed in load(write(tmp_path / "a.png")).seeds] == ["a.png"]


def test_sources_that_are_none(tmp_path):
    with pytest.raises(SeedError, match="such file"):
        load(tmp_path / "missing")
    with pytest.raises(SeedError, match=r"can't be read|no such file"):
        load(tmp_path / ("x" * 300))
    with pytest.raises(SeedError, match="no image"):
        load(tmp_path)
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(SeedError, match="holds 1"):
        load(tmp_path)
    with pytest.raises(SeedError, match="folder, image"):
        load(tmp_path / "a.txt")
    (tmp_path / "b.png").write_text("hello")
    with pytest.raises(SeedError, match=r"used; b\.png"):
        load(tmp_path)


def test_options_that_make_no_sense(tmp_path):
    write(tmp_path / "a.png")
    with pytest.raises(SeedError, match="'lanczos'; known"):
        load(tmp_path, resize="lanczos")
    with pytest.raises(SeedError, match="least 1"):
        load(tmp_path, limit=0)


@pytest.mark.shared_data
def test_real_digits(shared_data):
    loaded = load(shared_data / "images" / "mnist_test_0_499.npz", size=(28, 28), limit=50)
    first = loaded.seeds[0]
    assert isinstance(first, SeedInput)
    assert (first.id, first.label, first.sample.shape) == ("mnist_test_0_499.npz:0", 7, (28, 28, 1))
    assert len(loaded.seeds) == 50
