"""A corpus over three campaigns and replays, as a user drives it."""

import pytest
from command import DEMO, edgeflare, must_run

from edgeflare.analysis import add_to_corpus, corpus_summary

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a campaign "found" of six seeds, and a corpus "corpus" with its triggers."""
    folder = tmp_path_factory.mktemp("home")
    assert edgeflare("demo", "--seeds", 6, "--out", "found", home=folder).code == 0
    added = must_run("corpus", "add", "corpus", "found", "--json", home=folder)
    assert added.json["campaigns"][0]["new"] == added.json["entries"] > 3
    return folder


def replayed(home, name, *options):
    """Replay the corpus; return how many inputs are fixed, still there and new."""
    ran = edgeflare(
        "replay", "corpus", "--campaign", "found", "--out", name, "--json", *options, home=home
    )
    assert ran.code in (0, 1), ran.err
    return {state: ran.json["counts"][state] for state in ("fixed", "still", "new")}


def test_a_fixed_trigger_that_comes_back_is_new(home):
    entries = corpus_summary(home / "corpus").entries
    fixed = ("--deployed", DEMO / "original.onnx")
    assert replayed(home, "fixed", *fixed) == {"fixed": entries, "still": 0, "new": 0}
    noted = edgeflare("corpus", "add", "corpus", "fixed", "--json", home=home)
    assert noted.json["campaigns"][0]["noted"] == entries
    assert noted.json["entries"] == entries
    assert replayed(home, "back") == {"fixed": 0, "still": 0, "new": entries}
    shown = edgeflare("corpus", "show", "corpus", home=home)
    assert "original.onnx" in shown.out
    targets = edgeflare("corpus", "show", "corpus", "--json", home=home).json["targets"]
    assert {one["model"]: (one["deviating"], one["agreeing"]) for one in targets} == {
        "deployed.tflite": (entries, 0),
        "original.onnx": (0, entries),
    }


def test_the_same_again_changes_nothing_and_a_wrong_folder_leaves_what_was_added(home):
    before = corpus_summary(home / "corpus").entries
    ran = edgeflare("corpus", "add", "corpus", "found", "nowhere", "--json", home=home)
    assert ran.code == 2
    assert "campaign folder nowhere" in ran.sentence
    assert [(one["new"], one["known"]) for one in ran.json["campaigns"]] == [(0, before)]
    assert ran.json["entries"] == before


def test_what_is_removed_is_reported_before_and_gone_after(home):
    add_to_corpus(home / "shrinking", home / "found")
    pair = corpus_summary(home / "shrinking").pairs[0]
    option = ("--pair", f"{pair.original_label},{pair.deployed_label}")
    dry = edgeflare("corpus", "remove", "shrinking", *option, "--dry-run", "--json", home=home)
    assert dry.json["entries"] == pair.entries
    done = edgeflare("corpus", "remove", "shrinking", *option, home=home)
    assert f"removed {pair.entries} trigger" in done.out
    assert pair not in corpus_summary(home / "shrinking").pairs
    assert dry.json["dry_run"]


def test_what_to_remove_is_asked_for_in_one_sentence(home):
    ran = edgeflare("corpus", "remove", "corpus", "--pair", "4", home=home)
    assert ran.code == 2
    assert "two class indices" in ran.sentence
    assert ran.out == ""


def test_what_is_not_there_to_be_removed_is_reported(home):
    ran = edgeflare("corpus", "remove", "corpus", "--model", "nope", home=home)
    assert (ran.code, ran.out) == (2, "")
    assert "deployed model 'nope'" in ran.sentence
    assert "deployed.tflite" in ran.sentence
    ran = edgeflare("corpus", "remove", "corpus", "--pair", "77,78", home=home)
    assert (ran.code, ran.out.split(" and ")[0]) == (0, "removed 0 triggers")
    assert "pair 77,78" in ran.err
