"""Where the names of the classes come from."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from stores import store_of

from edgeflare.analysis import load_class_names
from edgeflare.errors import UsageError
from edgeflare.store import Store


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Store]:
    """A campaign of models with three classes."""
    scores = np.array([0.5, 0.3, 0.2])
    with store_of(tmp_path / "night", seeds=1, answers=(scores, scores)) as store:
        yield store


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("names.txt", "cat\ndog\neel\n", ("cat", "dog", "eel")),
        ("names.txt", "crane\ndog\ncrane\n", ("crane", "dog", "crane")),
        ("names.txt", "cat\ndog\neel\nfox\n", ("cat", "dog", "eel", "fox")),
        ("names.json", '["cat", "dog", "eel"]', ("cat", "dog", "eel")),
        ("names.json", '{"eel": 2, "dog": 1, "cat": 0, "kitten": 0}', ("cat", "dog", "eel")),
        ("names.json", '{"2": "eel", "0": "cat", "1": "dog"}', ("cat", "dog", "eel")),
        ("names.toml", '0 = "cat"\n1 = "dog"\n2 = "eel"\n', ("cat", "dog", "eel")),
        ("names.toml", "[labels]\neel = 2\ncat = 0\ndog = 1\n", ("cat", "dog", "eel")),
    ],
)
def test_a_file_names_them_in_the_order_of_their_numbers(tmp_path, campaign, name, content, names):
    (tmp_path / name).write_text(content)
    assert load_class_names(tmp_path / name, campaign) == names


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('["cat", "dog"]', "3 classes"),
        ('{"cat": 0, "eel": 2}', "class 1"),
        ('{"cat": 0, "dog": 1, "eel": 2, "fox": 4}', "class 3"),
        ("[1, 2, 3]", "classes"),
        ('{"cat": "0"}', "classes"),
        ('{"0": ["n01440764", "tench"]}', "classes"),
        ('{"cat": -1}', "classes"),
        ('{"cat": 1000000000000}', "class 1000000000000"),
        ('{"100000": "cat"}', "class 100000"),
        ("{}", "classes"),
        ('["cat", "", "eel"]', "class 1"),
        ("{", "valid"),
        (None, "class names .*names.json"),
    ],
)
def test_a_file_that_names_too_few_or_says_something_else_is_refused(
    tmp_path, campaign, content, words
):
    if content is not None:
        (tmp_path / "names.json").write_text(content)
    with pytest.raises(UsageError, match=words):
        load_class_names(tmp_path / "names.json", campaign)
