"""What kinds of answers say of their own answers in reports: words, keys of cards, pictures."""

from typing import Any

import numpy as np
import pytest
from example_answers import depth_maps, label_maps, of_kind, transcript, values

from edgeflare.answers import DETECTIONS, LABELS, SCORES, TAGS, TRANSCRIPTS, VALUES, AnswerKind

SCORED = np.array([0.25, 0.05, 0.7]), np.array([0.0, 0.0, 1.0])


def name(label: int) -> str:
    return {0: "cat", 2: "dog"}.get(label, str(label))


@pytest.mark.parametrize(
    ("kind", "answers", "words"),
    [
        (SCORES, SCORED, ("dog (70.0 %), cat (25.0 %), 1 (5.0 %)", "dog (100 %)")),
        (LABELS, SCORED, ("dog (70.0 %), cat (25.0 %), 1 (5.0 %)", "dog")),
        (SCORES, (np.array([np.nan, 1]), None), ("NaN or infinity among its scores", "no answer")),
        (TRANSCRIPTS, (transcript("so it goes"), None), ('"so it goes"', "no answer")),
        (
            TRANSCRIPTS,
            (transcript("one two three four no"), transcript("one two three four go")),
            ('"... three four no"', '"... three four go"'),
        ),
        (VALUES, (values(1, 2, 3), None), ("values of shape [3]", "no answer")),
    ],
)
def test_answers_in_words(
    kind: AnswerKind[Any], answers: tuple[Any, Any], words: tuple[str, str]
) -> None:
    assert kind.answers_words(*answers, name) == words


@pytest.mark.parametrize(
    ("kind", "key", "words"),
    [
        (SCORES, "0-2", "cat → dog"),
        (SCORES, "1-1", "1 by both"),
        (TRANSCRIPTS, "no→", "no → (nothing)"),
        (DETECTIONS, "lost:2", "lost dog"),
        (TAGS, "ghost:3", "ghost class 3"),
    ],
)
def test_keys_of_cards_in_words(kind: AnswerKind[Any], key: str, words: str) -> None:
    assert kind.pair_words(key, name) == words


def test_top_scores_are_told_of_one_model_alone() -> None:
    assert SCORES.top_scores(None, SCORED[0]) == [[2, None, 0.7], [0, None, 0.25], [1, None, 0.05]]
    assert DETECTIONS.top_scores(None, of_kind("lost")[1]) == []


def test_words_that_differ_are_counted_once_for_a_trigger() -> None:
    pairs = [(transcript("no no"), transcript("go go")), (transcript("no"), transcript("go"))]
    figures = TRANSCRIPTS.figures([], pairs, {})
    assert [(pair.original, pair.deployed, pair.count) for pair in figures.pairs] == [
        ("no", "go", 2)
    ]
    [figure] = TRANSCRIPTS.key_figures(figures)
    assert figure.text.startswith("no -> go")


def test_values_without_an_answered_seed_have_no_figures() -> None:
    assert VALUES.figures([], [], {}) is None


@pytest.mark.parametrize("pair", [label_maps(40), depth_maps(0.3)])
def test_maps_are_pictures_of_both_models_and_of_their_difference(pair: tuple[Any, Any]) -> None:
    maps = VALUES.card(*pair).maps
    assert len(maps) == 3
    assert all(one.pixels.dtype == np.uint8 and one.pixels.ndim == 2 for one in maps)
    assert maps[2].palette is not None


def test_boxes_are_drawn_on_copies_of_the_picture_and_labels_are_not() -> None:
    picture = np.zeros((60, 80, 3), np.uint8)
    drawn = DETECTIONS.panel(picture, *of_kind("lost"))
    assert [one.shape for one in drawn] == [picture.shape] * 2
    assert drawn[0].any()
    assert not picture.any()
    assert TAGS.panel(picture, *of_kind("lost", located=False)) is None
