"""Files that say which class a folder's name means."""

import pytest

from edgeflare.errors import SeedError
from edgeflare.seeds import load_label_mapping


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"cat": 0, "dog": 1}'),
        ("a.json", '["cat", "dog"]'),
        ("a.toml", "cat = 0\ndog = 1\n"),
        ("a.toml", "[labels]\ncat = 0\ndog = 1\n"),
        ("a.txt", "cat\ndog\n\n"),
        ("names", "\ufeffcat\r\n dog \r\n"),
    ],
)
def test_every_form_says_the_same(tmp_path, name, text):
    (tmp_path / name).write_bytes(text.encode())
    assert load_label_mapping(tmp_path / name) == {"cat": 0, "dog": 1}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", "{", "valid"),
        ("a.json", '{"cat": "0"}', "class '0'"),
        ("a.json", '{"cat": true}', "class True"),
        ("a.json", '{"cat": -1}', "class -1"),
        ("a.json", '{"0": ["n01440764", "tench"]}', "whole number"),
        ("a.json", "[1, 2]", "folder names"),
        ("a.json", "{}", "is empty"),
        ("a.toml", "cat = ", "valid"),
        ("a.txt", " ", "is empty"),
        ("a.txt", "\ncat", "entry 1"),
        ("a.txt", "cat\n\ndog", "entry 2"),
        ("a.txt", "cat\ndog\ncat", "entry 3"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(SeedError, match=sentence):
        load_label_mapping(tmp_path / name)


def test_a_file_that_is_missing_or_no_text(tmp_path):
    with pytest.raises(SeedError, match="be read"):
        load_label_mapping(tmp_path / "missing.json")
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SeedError, match="be read"):
        load_label_mapping(tmp_path / "a.txt")
