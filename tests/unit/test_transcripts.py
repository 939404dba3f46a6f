"""Words of transcripts, side by side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_models import heard

from edgeflare.answers.metrics import decides_equally, disagreement
from edgeflare.answers.transcripts import aligned, excerpts, spoken, word_distance, words
from edgeflare.types import Transcript

WORDS = st.lists(st.sampled_from(["a", "b", "c", "don't"]), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" Well, I don’t know ... ", ("well", "i", "don't", "know")),
        ("STRASSE Straße", ("strasse", "strasse")),
        ("cafe\u0301 café", ("café", "café")),  # two ways to write one letter
        ("well-known snake_case", ("well", "known", "snake", "case")),
        ("rock 'n' roll dogs'", ("rock", "n", "roll", "dogs")),
        ("नमस्ते दुनिया", ("नमस्ते", "दुनिया")),  # vowel signs are no letters, yet part of words
        ("ﬁve x² 3.5", ("five", "x2", "3", "5")),
        ("?! -- '", ()),
    ],
)
def test_words_as_they_are_spoken(text: str, expected: tuple[str, ...]) -> None:
    assert spoken(text) == expected


def test_a_word_is_made_of_all_tokens_that_are_part_of_it() -> None:
    scores = np.array([[0.9, 0.1], [0.5, 0.25], [0.75, 0.25], [1.0, 0.0]])
    said = Transcript((" The", " sum", "med.", " Up"), scores)
    assert said.text == "The summed. Up"
    the, summed, up = words(said)
    assert (the.text, summed.text, up.text) == ("the", "summed", "up")
    assert (summed.probability, summed.margin) == (0.375, 0.25)
    assert up.margin == 1.0


def test_a_token_within_two_words_counts_for_both() -> None:
    one, other = words(Transcript((" a", " b c"), np.array([[1.0, 0.0], [0.5, 0.25]])))[1:]
    assert one.margin == other.margin == 0.25


def test_side_by_side_with_the_fewest_steps() -> None:
    pairs = aligned(words(heard("a b c d x")), words(heard("a c d e y")))
    told = [(one and one.text, other and other.text) for one, other in pairs]
    assert told[:4] == [("a", "a"), ("b", None), ("c", "c"), ("d", "d")]
    assert sorted(told[4:], key=str) in ([("x", "e"), (None, "y")], [("x", "y"), (None, "e")])
    assert word_distance(heard("a b c d x"), heard("a c d e y")) == 0.6


def test_distances_by_hand() -> None:
    assert word_distance(heard("a b c d"), heard("a b c x")) == 0.25
    assert word_distance(heard("a b c d"), heard("")) == 1
    assert word_distance(heard(""), heard("")) == 0
    assert word_distance(heard("yes"), heard("no")) == 1


@given(WORDS, WORDS)
def test_the_distance_is_a_share_and_none_for_the_same_words_only(one: str, other: str) -> None:
    apart = word_distance(heard(one), heard(other))
    assert 0 <= apart <= 1
    assert (
        apart == word_distance(heard(other), heard(one)) == disagreement(heard(one), heard(other))
    )
    assert (apart == 0) == (one == other) == decides_equally(heard(one), heard(other))


@given(WORDS, WORDS)
def test_every_word_is_in_one_pair(one: str, other: str) -> None:
    pairs = aligned(words(heard(one)), words(heard(other)))
    assert [mine for mine, _ in pairs if mine is not None] == list(words(heard(one)))
    assert [yours for _, yours in pairs if yours is not None] == list(words(heard(other)))


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("Go.", "No.", ("Go.", "No.")),
        (
            "one two three four five, six",
            "one two three four nine, six",
            ("... three four five, six", "... three four nine, six"),
        ),
        (
            "a b c d e f g h i j k",
            "a b c x e f g h i j k",
            ("... b c d e f g h i ...", "... b c x e f g h i ..."),
        ),
        ("a b c", "a b c d", ("... b c", "... b c d")),
        ("", "a", ("", "a")),
    ],
)
def test_excerpts_show_where_texts_begin_to_differ(
    one: str, other: str, shown: tuple[str, str]
) -> None:
    assert excerpts(one, other) == shown


def test_a_word_is_as_sure_as_what_parts_it_from_the_one_before() -> None:
    pieces = (" ", "a", "b", ".", " ", "c", " d")
    margins = (0.1, 0.9, 0.8, 0.2, 0.3, 0.9, 0.6)
    scores = np.array([[0.95, 0.95 - margin] for margin in margins])
    found = words(Transcript(pieces, scores))
    assert [word.text for word in found] == ["ab", "c", "d"]
    assert [word.margin for word in found] == pytest.approx([0.8, 0.3, 0.6])
    assert found[1].probability == pytest.approx(0.95)
