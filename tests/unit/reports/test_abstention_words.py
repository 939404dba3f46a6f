"""What is said of an abstention that was set on few deviations, or that misses those of a fresh search."""

from dataclasses import replace

import pytest

from edgeflare.document import Text
from edgeflare.repair import Abstention, Caught, CurvePoint, RepairedCampaign
from edgeflare.reports import repaired_document

FOUND = Abstention(
    threshold=0.4,
    wanted=0.95,
    calibrated_on=30,
    bound=0.96,
    seeds=50,
    deferred=1,
    deferred_bound=0.09,
    caught=(Caught("the other half's triggering inputs", 30, 29),),
    curve=(CurvePoint(0.4, 0.97, 0.02),),
    size=10,
    kind="probabilities",
    others=(),
)


def texts(found: Abstention) -> str:
    made = RepairedCampaign("a.npz", "a.onnx", 300, "dflare", abstention=found)
    return "\n".join(one.text for one in repaired_document(made) if isinstance(one, Text))


def test_a_bound_is_told_or_how_many_deviations_it_needs() -> None:
    assert "average (conformal bound)" in texts(FOUND)
    few = texts(replace(FOUND, calibrated_on=15, bound=None))
    assert "conformal" not in few
    assert "19 deviations" in few
    assert "others for 100" in texts(replace(FOUND, wanted=1.0, bound=None))


@pytest.mark.parametrize(("caught", "is_told"), [(9, True), (14, False), (15, False), (0, True)])
def test_a_fresh_search_that_is_caught_clearly_less_is_told(caught: int, is_told: bool) -> None:
    """Of 15, 14 are no sign against 95 %, 9 are."""
    fresh = Caught("a fresh search by dflare", 15, caught)
    words = "Of a fresh search by dflare"
    assert (words in texts(replace(FOUND, caught=(*FOUND.caught, fresh)))) == is_told
