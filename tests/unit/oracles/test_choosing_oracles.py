from typing import Any

import pytest

from edgeflare.errors import UsageError
from edgeflare.oracles import LabelOracle, ToleranceOracle, TranscriptOracle, oracle_for


def test_it_goes_by_the_models_unless_stated() -> None:
    label = oracle_for("auto", transcribes=False, floor=0.25)
    words = oracle_for("auto", transcribes=True, floor=0.25)
    assert isinstance(label, LabelOracle)
    assert isinstance(words, TranscriptOracle)
    assert (label.floor, words.floor) == (0.25, 0.25)


def test_what_is_stated_is_taken() -> None:
    assert isinstance(oracle_for("label", transcribes=False), LabelOracle)
    assert isinstance(oracle_for("transcript", transcribes=True), TranscriptOracle)
    chosen = oracle_for("tolerance", transcribes=False, tolerance=0.2)
    assert isinstance(chosen, ToleranceOracle)
    assert chosen.tolerance == 0.2


@pytest.mark.parametrize(
    ("name", "about", "problem"),
    [
        ("label", {"transcribes": True}, "label oracle .* speech recognisers: use --oracle trans"),
        ("tolerance", {"transcribes": True, "tolerance": 0.1}, "tolerance oracle .* recognisers"),
        ("transcript", {"transcribes": False}, "these models give scores of classes"),
        ("tolerance", {"transcribes": False}, "--tolerance"),
        (
            "tolerance",
            {"transcribes": False, "tolerance": 0.1, "labels_only": True},
            "the deployed model returns a label alone",
        ),
    ],
)
def test_one_that_does_not_fit_is_refused(name: Any, about: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        oracle_for(name, **about)
