"""A recorded query stream: what a search would ask, without the search and without an original model."""

import numpy as np
from numpy.typing import NDArray

from edgeflare.types import Sample
from edgeflare_mutators import SampleSpec, default_pool

_MUTATIONS = 3


def recorded_stream(images: NDArray[np.uint8], length: int, seed: int = 0) -> list[Sample]:
    """Return so many samples: real images, each after one to three small mutations, by the seed."""
    rng = np.random.default_rng(seed)
    pool = list(default_pool("image").values())
    stream = []
    for index in range(length):
        sample = images[index % len(images)]
        spec = SampleSpec.of(sample)
        for _ in range(rng.integers(1, _MUTATIONS + 1)):
            operator = pool[rng.integers(len(pool))]
            sample = operator.apply(sample, operator.draw(rng, spec))
        stream.append(sample)
    return stream
