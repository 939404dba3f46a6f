"""No search at all: only the seed inputs themselves are compared."""

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgeflare.types import NOTHING_SEARCHED, Outcome, Search, Seed, Strategy


class NoneOptions(BaseModel):
    """The strategy "none" has no options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def none(options: NoneOptions, pool: object = None) -> Strategy:
    """Return the strategy that asks nothing and ends: what deviates is what deviates at the seed."""
    del options, pool
    return _none


def _none(seed: Seed, rng: np.random.Generator) -> Search:
    del seed, rng
    yield from ()
    return Outcome(None, reason=NOTHING_SEARCHED)
