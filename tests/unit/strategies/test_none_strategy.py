"""The strategy none: it asks nothing, so that only the seeds themselves are compared."""

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord
from edgeflare.strategies import build_strategy
from edgeflare.types import Status
from edgeflare_lab.testing import FakeModel, run_strategy

IMAGE = np.full((4, 4, 1), 100, np.uint8)
MODEL = FakeModel.random((4, 4, 1), classes=3)


@pytest.mark.parametrize("kept", [1, 0], ids=["the models agree", "they deviate on most inputs"])
def test_it_asks_nothing_and_its_seed_was_not_searched(kept: int) -> None:
    def deployed(sample: np.ndarray) -> np.ndarray:
        return MODEL(sample) if kept else MODEL(sample)[::-1]

    run = run_strategy(build_strategy("none", {}), IMAGE, original=MODEL, deployed=deployed)
    assert (run.asked, run.queries, run.host_only_queries) == ([], 0, 0)
    assert run.outcome.sample is None
    assert not OutcomeRecord("s", Status.GAVE_UP, 0, detail=run.outcome.reason).searched


def test_it_takes_no_options() -> None:
    with pytest.raises(UsageError, match=r"option 'effort'.*it"):
        build_strategy("none", {"effort": 64})
