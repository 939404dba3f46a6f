"""The strategy none: it asks nothing, so that only the seeds themselves are compared."""

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord
from edgeflare.strategies import build_strategy
from edgeflare.types import Decision, Outcome, Outputs, Seed, Status


def ending() -> Outcome:
    sample = np.zeros((4, 4, 1), np.uint8)
    seed = Seed("s", sample, Outputs(np.array([1.0, 0.0]), np.array([1.0, 0.0]), Decision.AGREE))
    search = build_strategy("none", {})(seed, np.random.default_rng(0))
    with pytest.raises(StopIteration) as stopped:
        next(search)
    outcome: Outcome = stopped.value.value
    return outcome


def test_it_ends_before_it_asks_anything_and_finds_nothing() -> None:
    assert ending().sample is None


def test_a_seed_that_it_gave_up_on_was_not_searched() -> None:
    given_up = OutcomeRecord("s", Status.GAVE_UP, 0, detail=ending().reason)
    assert not given_up.searched
    assert OutcomeRecord("s", Status.GAVE_UP, 0, detail="no other class is near").searched


def test_it_takes_no_options() -> None:
    with pytest.raises(UsageError, match=r"no option 'effort'.*it has no options"):
        build_strategy("none", {"effort": 64})
