"""Where the names of the classes come from."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgeflare.analysis import load_class_names
from edgeflare.errors import UsageError
from edgeflare.store import SeedAnswer, SeedInput, Store
from edgeflare.types import Decision


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Store]:
    """A campaign of models with three classes."""
    scores = np.array([0.5, 0.3, 0.2])
    with Store.create(tmp_path / "night", {}) as store:
        store.add_seeds([SeedInput("s", np.zeros((4, 4, 1), np.uint8), 0)])
        store.add_seed_answers([SeedAnswer("s", scores, scores, Decision.AGREE)])
        yield store


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("names.txt", "cat\ndog\neel\n"),
        ("names.json", '["cat", "dog", "eel"]'),
        ("names.json", '{"eel": 2, "dog": 1, "cat": 0, "kitten": 0}'),
        ("names.json", '{"2": "eel", "0": "cat", "1": "dog"}'),
        ("names.toml", '0 = "cat"\n1 = "dog"\n2 = "eel"\n'),
        ("names.toml", "[labels]\neel = 2\ncat = 0\ndog = 1\n"),
    ],
)
def test_a_file_names_them_in_the_order_of_their_numbers(tmp_path, campaign, name, content):
    (tmp_path / name).write_text(content)
    assert load_class_names(tmp_path / name, campaign) == ("cat", "dog", "eel")


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
    ],
)
def test_a_file_that_names_too_few_or_says_something_else_is_refused(
    tmp_path, campaign, content, words
):
    (tmp_path / "names.json").write_text(content)
    with pytest.raises(UsageError, match=words):
        load_class_names(tmp_path / "names.json", campaign)


def test_a_file_that_is_not_there_is_reported_in_plain_words(tmp_path, campaign):
    with pytest.raises(UsageError) as told:
        load_class_names(tmp_path / "none.json", campaign)
    path = tmp_path / "none.json"
    assert f"class names {path}" in str(told.value)


def test_two_classes_may_have_one_name(tmp_path, campaign):
    (tmp_path / "names.txt").write_text("crane\ndog\ncrane\n")
    assert load_class_names(tmp_path / "names.txt", campaign) == ("crane", "dog", "crane")


def test_more_names_than_classes_do_no_harm(tmp_path, campaign):
    (tmp_path / "names.txt").write_text("cat\ndog\neel\nfox\n")
    assert len(load_class_names(tmp_path / "names.txt", campaign)) == 4
