"""Two transcripts side by side: which words differ, and the texts as they were written."""

import pytest
from example_answers import transcript

from edgeflare.answers.transcripts import transcript_diff
from edgeflare.types import Transcript


def told(original: str, deployed: str) -> tuple[list[tuple[str, str]], str, str]:
    """Return the changes, and both texts with brackets around the words that differ."""
    both = transcript_diff(transcript(original), transcript(deployed))
    texts = [
        "".join(f"[{text}]" if differs else text for text, differs in parts) for parts in both[:2]
    ]
    return [*both[2]], texts[0], texts[1]


@pytest.mark.parametrize(
    ("original", "deployed", "changes", "shown"),
    [
        ("He has no money.", "He has go money.", [("no", "go")], ("He has [no] money.", "He has [go] money.")),
        ("the end", "end", [("the", "")], ("[the] end", "end")),
        ("end", "The end!", [("", "the")], ("end", "[The] end!")),
        ("Stop, NOW.", "stop now", [], ("Stop, NOW.", "stop now")),
        ("Don’t go", "don't stay", [("go", "stay")], ("Don’t [go]", "don't [stay]")),
        ("", "hello", [("", "hello")], ("", "[hello]")),
    ],
)  # fmt: skip
def test_words_that_differ_are_marked_in_the_texts_as_they_were_written(
    original: str, deployed: str, changes: list[tuple[str, str]], shown: tuple[str, str]
) -> None:
    found, *texts = told(original, deployed)
    assert found == changes
    assert tuple(texts) == shown


def test_a_word_of_several_pieces_is_marked_whole_and_white_space_around_the_text_is_left_out() -> (
    None
):
    pieces = (" It", " is", " frei", "ght", ".", " ")
    original = Transcript(pieces, transcript("a b c d e f").scores)
    both = transcript_diff(original, transcript("It is fright."))
    assert both[0] == (("It is ", False), ("freight", True), (".", False))


def test_scores_have_no_words() -> None:
    assert transcript_diff(transcript("no").scores, transcript("no").scores) is None
    assert transcript_diff(transcript("no"), None) is None
