"""The file of fixed inputs: what it may hold, and one sentence for what it may not."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.models import ONE_INPUT, TensorInfo, choose_input

INPUTS = [
    TensorInfo("image", (1, 4, 4, 3), "float32"),
    TensorInfo("mask", (1, None), "float32"),
    TensorInfo("state", (1, 3), "int8", (0.5, 10)),
]
FITTING = {"mask": np.ones((1, 7)), "state": np.zeros((1, 3))}
WHOSE = "the deployed model"


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_the_file_says_which_input_is_searched(tmp_path: Path) -> None:
    path = saved(tmp_path / "f.npz", **FITTING)
    found = choose_input(INPUTS, None, path, WHOSE)
    assert found.tensor is INPUTS[0]
    assert found.given.names == ()
    assert set(found.given.fixed) == {"mask", "state"}
    np.testing.assert_array_equal(found.given.fixed["mask"], FITTING["mask"])
    assert choose_input(INPUTS, "image", path, WHOSE).tensor is INPUTS[0]


def test_seeds_that_are_named_have_a_row_each(tmp_path: Path) -> None:
    masks = np.arange(21).reshape(3, 1, 7)
    path = saved(tmp_path / "f.npz", state=FITTING["state"], mask=masks, seeds=["b", "a", "c"])
    found = choose_input(INPUTS, None, path, WHOSE)
    assert found.rows == {"a": 0, "b": 1, "c": 2}
    np.testing.assert_array_equal(found.given.fixed["mask"], masks[[1, 0, 2]])
    assert (set(found.given.fixed), found.given.rows) == ({"mask", "state"}, 3)


def test_one_input_needs_no_file() -> None:
    assert choose_input(INPUTS[:1], None, None, WHOSE) == (INPUTS[0], ONE_INPUT, {})
    with pytest.raises(UsageError, match="input 'picture'"):
        choose_input(INPUTS[:1], "picture", None, WHOSE)


def test_several_inputs_without_a_file_are_refused_by_what_is_missing() -> None:
    with pytest.raises(UsageError, match=r"mask \(1"):
        choose_input(INPUTS, None, None, WHOSE)


def write_pickled(path: Path) -> None:
    np.savez(path, mask=np.array([{"a": 1}], object))


def write_text(path: Path) -> None:
    path.write_text("mask: 1")


def write_one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.ones(3))


def write_empty(path: Path) -> None:
    np.savez(path)


def write_large(path: Path) -> None:
    """A small file, which holds 129 MiB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mask.npy", bytes(129 << 20))


def write_vast(path: Path) -> None:
    """A header of 2 ** 60 numbers, and none of them."""
    header = np.lib.format.header_data_from_array_1_0(np.ones(1)) | {"shape": (1 << 60,)}
    with zipfile.ZipFile(path, "w") as archive, archive.open("mask.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, header)


def write_unknown_compression(path: Path) -> None:
    saved(path, mask=np.ones(1))
    content = bytearray(path.read_bytes())
    for start, place in ((b"PK\1\2", 10), (b"PK\3\4", 8)):
        content[content.index(start) + place] = 99
    path.write_bytes(content)


def write_encrypted(path: Path) -> None:
    saved(path, mask=np.ones(1))
    content = bytearray(path.read_bytes())
    for start, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        content[content.index(start) + place] |= 1
    path.write_bytes(content)


def write_cut(path: Path) -> None:
    saved(path, **FITTING)
    path.write_bytes(path.read_bytes()[:-30])


def write_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (write_pickled, "pickled objects"),
        (write_text, ".npz file"),
        (write_one_array, ".npz file"),
        (write_vast, "something else"),
        (write_unknown_compression, "something else"),
        (write_encrypted, "something else"),
        (write_cut, ".npz file"),
        (write_empty, "holds"),
        (write_large, "128 MiB"),
        (write_folder, "file"),
        (lambda path: None, "file"),
        (lambda path: saved(path, **FITTING, more=np.ones(3)), "input 'more'"),
        (lambda path: saved(path, **FITTING, seeds=["a", "b"]), "names 2"),
        (
            lambda path: saved(path, state=np.zeros((1, 3)), mask=np.ones((3, 1, 7))),
            "array `seeds`",
        ),
        (lambda path: saved(path, **{**FITTING, "mask": np.full((1, 7), np.nan)}), "holds NaN"),
        (lambda path: saved(path, **FITTING, seeds=["a", "b", "a"]), "names"),
        (lambda path: saved(path, **FITTING, seeds=[1, 2]), "seeds' names"),
        (
            lambda path: saved(
                path, state=np.zeros((1, 3)), mask=np.ones((3, 1, 7)), seeds=["a", "b"]
            ),
            "3, seeds",
        ),
        (lambda path: saved(path, mask=np.ones((1, 7))), "3, int8"),
        (lambda path: saved(path, **{**FITTING, "state": np.ones(4)}), "shape 4"),
        (lambda path: saved(path, **{**FITTING, "state": np.full((1, 3), np.inf)}), "float64"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, write: Any, words: str) -> None:
    path = tmp_path / "fixed.npz"
    write(path)
    with pytest.raises(UsageError, match=words) as caught:
        choose_input(INPUTS, None, path, WHOSE)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_inputs_of_no_picture_or_sound_are_named_as_such() -> None:
    tokens = [TensorInfo(name, (1, 24), "int64") for name in ("input_ids", "attention_mask")]
    with pytest.raises(UsageError, match=r"int64\), attention_mask"):
        choose_input(tokens, None, None, WHOSE)
