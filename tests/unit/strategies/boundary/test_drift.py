"""What the boundary search expects of the deployed model before the device is asked."""

import numpy as np
import pytest
from search_models import Pair, Shape, affine, agreed, images, moved

from edgeflare.strategies.boundary.first_trigger import DriftModel

SHAPE: Shape = (10, 10, 1)
ORIGINAL = affine(SHAPE, 5)


def test_a_drift_that_is_the_same_everywhere_is_expected_everywhere() -> None:
    pair = Pair(ORIGINAL, moved(ORIGINAL, 0.3))
    (seed,) = agreed(pair, SHAPE)
    model = DriftModel(pair.seed(seed))
    for sample in images(SHAPE, 20, 8):
        drift = np.log(pair.deployed(sample)) - np.log(pair.original(sample))
        rival, label = (int(one) for one in np.argsort(drift)[[0, -1]])
        assert model.predict(label, rival) == pytest.approx(drift[label] - drift[rival])
        assert model.predict(rival, label) == pytest.approx(drift[rival] - drift[label])


def test_labels_tell_no_drift() -> None:
    pair = Pair(ORIGINAL, moved(ORIGINAL, 0.3), labels_only=True)
    assert DriftModel(pair.seed(agreed(pair, SHAPE)[0])).predict(0, 1) is None


def test_probabilities_of_0_give_a_finite_expectation() -> None:
    pair = Pair(ORIGINAL, lambda sample: np.round(ORIGINAL(sample) * 256) / 256)
    model = DriftModel(pair.seed(agreed(pair, SHAPE, surely=0.9)[0]))
    drift = [model.predict(0, rival) for rival in range(5)]
    assert all(one is not None and abs(one) <= 6 for one in drift)
