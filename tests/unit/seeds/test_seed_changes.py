"""Which seed files are no longer what a campaign was begun with."""

import cv2
import numpy as np
import pytest

from edgeflare.seeds import changed_files, open_seeds


@pytest.fixture
def folder(tmp_path):
    for name in ("a.png", "deep/b.png", "deep/c.png"):
        path = tmp_path / "seeds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(cv2.imencode(".png", np.full((4, 6), len(name), np.uint8))[1].tobytes())
    return tmp_path / "seeds"


def known(source):
    seeds = open_seeds(source, size=(4, 6), channels=1)
    return [(seed.id, seed.file_sha256) for seed in seeds]


def test_nothing_has_changed(folder):
    assert list(changed_files(folder, known(folder))) == []
    assert list(changed_files(folder / "a.png", known(folder / "a.png"))) == []


def test_files_with_other_bytes_and_missing_ones_are_named(folder):
    before = known(folder)
    with (folder / "a.png").open("ab") as file:
        file.write(b"x")
    (folder / "deep" / "c.png").unlink()
    (folder / "new.png").write_bytes((folder / "deep" / "b.png").read_bytes())
    assert list(changed_files(folder, before)) == ["a.png", "deep/c.png"]


def test_a_folder_that_is_missing_has_lost_every_file(folder):
    before = known(folder)
    assert list(changed_files(folder.with_name("elsewhere"), before)) == [
        "a.png",
        "deep/b.png",
        "deep/c.png",
    ]


def test_one_image_that_was_changed(folder):
    before = known(folder / "a.png")
    (folder / "a.png").write_bytes((folder / "deep" / "b.png").read_bytes())
    assert list(changed_files(folder / "a.png", before)) == ["a.png"]
    (folder / "a.png").unlink()
    assert list(changed_files(folder / "a.png", before)) == ["a.png"]


def test_an_archive_is_named_once(tmp_path):
    path = tmp_path / "digits.npz"
    np.savez(path, images=np.zeros((3, 4, 6), np.uint8))
    before = known(path)
    assert list(changed_files(path, before)) == []
    np.savez(path, images=np.ones((3, 4, 6), np.uint8))
    assert list(changed_files(path, before)) == ["digits.npz"]
    path.unlink()
    assert list(changed_files(path, before)) == ["digits.npz"]
