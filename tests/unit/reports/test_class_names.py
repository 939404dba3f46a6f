"""Where the names of the classes come from."""

import json

import pytest

from edgeflare.analysis import load_class_names
from edgeflare.errors import UsageError
from edgeflare.reports import report_text


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
def test_a_file_names_them_in_the_order_of_their_numbers(tmp_path, every_status, name, content):
    (tmp_path / name).write_text(content)
    with every_status() as store:
        assert load_class_names(tmp_path / name, store) == ("cat", "dog", "eel")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('["cat", "dog"]', "no name for class 2: it names 2 of 3 classes"),
        ('{"cat": 0, "eel": 2}', "no name for class 1"),
        ('{"cat": 0, "dog": 1, "eel": 2, "fox": 4}', "no name for class 3: it names 4 of 5"),
        ("[1, 2, 3]", "names no classes"),
        ('{"cat": "0"}', "names no classes"),
        ('{"0": ["n01440764", "tench"]}', "names no classes"),
        ('{"cat": -1}', "names no classes"),
        ("{}", "names no classes"),
        ('["cat", "", "eel"]', "no name for class 1"),
        ("{", "is not valid"),
    ],
)
def test_a_file_that_names_too_few_or_says_something_else_is_refused(
    tmp_path, every_status, content, words
):
    (tmp_path / "names.json").write_text(content)
    with every_status() as store, pytest.raises(UsageError, match=words):
        load_class_names(tmp_path / "names.json", store)


def test_a_file_that_is_not_there_is_reported_in_plain_words(tmp_path, every_status):
    with every_status() as store, pytest.raises(UsageError) as told:
        load_class_names(tmp_path / "none.json", store)
    path = tmp_path / "none.json"
    assert (
        str(told.value)
        == f"The file of class names {path} can't be read: No such file or directory"
    )


def test_two_classes_may_have_one_name(tmp_path, every_status):
    (tmp_path / "names.txt").write_text("crane\ndog\ncrane\n")
    with every_status() as store:
        assert load_class_names(tmp_path / "names.txt", store) == ("crane", "dog", "crane")


def test_more_names_than_classes_do_no_harm(tmp_path, every_status):
    (tmp_path / "names.txt").write_text("cat\ndog\neel\nfox\n")
    with every_status() as store:
        assert len(load_class_names(tmp_path / "names.txt", store)) == 4


def test_given_names_must_be_enough(every_status):
    with every_status() as store, pytest.raises(UsageError, match="2 class names for 3 classes"):
        report_text(store, "csv", class_names=["cat", "dog"])


def test_by_default_the_campaigns_own_label_mapping_is_used_while_it_is_there(
    tmp_path, every_status
):
    mapping = tmp_path / "labels.json"
    mapping.write_text('{"cat": 0, "dog": 1, "eel": 2}')
    with every_status(seeds={"labels": str(mapping)}) as store:
        named = json.loads(report_text(store, "json"))
        mapping.write_text('{"cat": 0}')  # no longer one for these models
        partly = json.loads(report_text(store, "json"))
        mapping.unlink()
        gone = json.loads(report_text(store, "json"))
    assert named["findings"][0]["deployed_class"] == "dog"
    assert (partly["class_names"], gone["class_names"]) == (None, None)
