import sys

import numpy as np
import pytest
from search_models import heard

from edgeflare.answers.oracles import TranscriptOracle, margin, margins
from edgeflare.errors import UsageError
from edgeflare.types import Decision, Transcript

SAID = "which your royal highness assumed is"


@pytest.mark.parametrize(
    ("original", "deployed", "decision"),
    [
        (SAID, SAID, Decision.AGREE),
        ("Well, I don't know.", "well i don’t KNOW", Decision.AGREE),
        (SAID, "which your royal highness summed is", Decision.DEVIATION),
        ("a b", "a b c", Decision.DEVIATION),
        ("", "", Decision.AGREE),
        ("", "a", Decision.DEVIATION),
        ("30 days", "thirty days", Decision.DEVIATION),
    ],
)
def test_sentences_are_compared_word_by_word(original, deployed, decision) -> None:
    assert TranscriptOracle().decide(heard(original), heard(deployed)) is decision
    assert TranscriptOracle().decide(heard(deployed), heard(original)) is decision


class TestMargins:
    def test_of_a_deviation_it_is_that_of_the_words_that_differ(self) -> None:
        original = heard("a b c d", {0: (0.5, 0.5), 2: (0.6, 0.35)})
        deployed = heard("a b e d", {2: (0.8, 0.1), 3: (0.3, 0.3)})
        assert margins(original, deployed) == pytest.approx((0.25, 0.7))
        assert TranscriptOracle(0.2).decide(original, deployed) is Decision.DEVIATION
        assert TranscriptOracle(0.3).decide(original, deployed) is Decision.BELOW_FLOOR

    def test_the_least_sure_of_several_words_counts(self) -> None:
        original = heard("a b c", {0: (0.51, 0.49)})
        assert margins(original, heard("x b y")).original == pytest.approx(0.02)
        assert TranscriptOracle(0.05).decide(original, heard("x b y")) is Decision.BELOW_FLOOR

    def test_a_word_that_one_model_alone_has_counts_with_that_ones(self) -> None:
        more = heard("a b c", {1: (0.6, 0.4)})
        assert margins(heard("a c"), more) == (None, pytest.approx(0.2))
        assert margins(more, heard("a c")) == (pytest.approx(0.2), None)
        assert TranscriptOracle(0.3).decide(heard("a c"), more) is Decision.BELOW_FLOOR
        assert TranscriptOracle(0.1).decide(heard("a c"), more) is Decision.DEVIATION

    def test_a_word_is_as_sure_as_its_least_sure_token(self) -> None:
        pieces = Transcript((" sum", "med"), np.array([[0.9, 0.1], [0.5, 0.25]]))
        assert margin(pieces) == 0.25


class TestTies:
    def test_two_equal_best_tokens_decide_nothing(self) -> None:
        tied = heard("a c", {1: (0.4, 0.4)})
        assert TranscriptOracle().decide(heard("a b"), tied) is Decision.TIE
        assert TranscriptOracle().decide(tied, heard("a b")) is Decision.TIE

    def test_among_several_words_one_is_enough(self) -> None:
        tied = heard("x c", {1: (0.4, 0.4)})
        assert TranscriptOracle().decide(heard("a b"), tied) is Decision.TIE

    def test_elsewhere_they_do_no_harm(self) -> None:
        tied = heard("a c", {0: (0.4, 0.4)})
        assert TranscriptOracle().decide(heard("a b"), tied) is Decision.DEVIATION

    def test_the_same_words_agree_all_the_same(self) -> None:
        tied = heard("a b", {0: (0.4, 0.4)})
        assert TranscriptOracle(0.1).decide(tied, heard("a b")) is Decision.AGREE


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(UsageError, match=r"install 'edgeflare\[text\]'"):
        TranscriptOracle()
