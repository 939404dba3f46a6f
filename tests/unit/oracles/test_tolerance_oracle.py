import numpy as np
import pytest
from search_models import heard

from edgeflare.answers.oracles import ToleranceOracle
from edgeflare.types import Decision


@pytest.mark.parametrize(
    ("original", "deployed", "decision"),
    [
        ([0.75, 0.25], [0.75, 0.25], Decision.AGREE),
        ([0.75, 0.25], [0.5, 0.5], Decision.AGREE),  # just at it; a shared top is no tie
        ([0.875, 0.125], [0.5625, 0.4375], Decision.DEVIATION),  # of one label
        ([0.5625, 0.4375], [0.4375, 0.5625], Decision.AGREE),  # of two labels
        ([np.nan, 0.5], [0.5, 0.5], Decision.NONFINITE),
        ([0.5, 0.5], [np.inf, 0.5], Decision.NONFINITE),
    ],
)
def test_decision(original: list[float], deployed: list[float], decision: Decision) -> None:
    assert ToleranceOracle(0.25).decide(np.array(original), np.array(deployed)) is decision


def test_it_keeps_nothing_from_the_device() -> None:
    assert ToleranceOracle(0.25).floor == 0


def test_it_has_no_say_in_transcripts() -> None:
    with pytest.raises(TypeError):
        ToleranceOracle(0.25).decide(heard("a"), heard("b"))
