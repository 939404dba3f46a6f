"""The PyPI package dnn-tip (Weiss and Tonella) agrees where it has the same definitions.

Its sections are open above and its boundaries count as crossed where a value is equal: inputs here lie on none.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from edgeflare.models.tensors import UnitActivations
from edgeflare_whitebox import DSC, KMNC, LSC, NBC, NC, SNAC, TKNC, Activations, UnitCriterion

pytestmark = pytest.mark.skipif(find_spec("dnn_tip") is None, reason="dnn-tip is in the extra dev")

MODEL = "0" * 64
LAYERS = ("first", "second")
SIZES = (7, 4)


def traces(number: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=number)
    layers = [
        (rng.normal(size=(number, size)) + labels[:, np.newaxis] / 3).astype(np.float32)
        for size in SIZES
    ]
    return layers, labels


def activations(layers: list[np.ndarray], labels: np.ndarray) -> list[Activations]:
    """As activations of layers whose least value is 0 and largest 1, so that no scaling is done."""
    return [
        Activations(
            {
                name: UnitActivations(units, 0.0, 1.0)
                for name, units in zip(LAYERS, rows, strict=True)
            },
            int(label),
        )
        for *rows, label in zip(*layers, labels, strict=True)
    ]


PROFILE, PROFILE_LABELS = traces(80, 0)
NEW, NEW_LABELS = traces(50, 1)
LEAST = [one.min(axis=0) for one in PROFILE]
LARGEST = [one.max(axis=0) for one in PROFILE]
NO_STD = [np.zeros(size) for size in SIZES]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (NC(MODEL, LAYERS), lambda library: library.NAC(0.75)),
        (
            KMNC(MODEL, LAYERS, sections=10),
            lambda library: library.KMNC([one.astype(float) for one in LEAST], LARGEST, 10),
        ),
        (NBC(MODEL, LAYERS), lambda library: library.NBC(LEAST, LARGEST, NO_STD, 0)),
        (SNAC(MODEL, LAYERS), lambda library: library.SNAC(LARGEST, NO_STD, 0)),
        (TKNC(MODEL, LAYERS, k=2), lambda library: library.TKNC(2)),
    ],
)
def test_of_units(ours: UnitCriterion, theirs: Callable[[Any], Any]) -> None:
    from dnn_tip import neuron_coverage

    ours.fit(activations(PROFILE, PROFILE_LABELS))
    _, profiles = theirs(neuron_coverage)(NEW)
    for one, expected in zip(activations(NEW, NEW_LABELS), profiles, strict=True):
        covered = np.zeros(expected.size, bool)
        covered[ours.sections_of(one)] = True
        np.testing.assert_array_equal(covered, expected.reshape(-1))
    ours.update(activations(NEW, NEW_LABELS))
    assert ours.score == profiles.any(axis=0).mean()


def test_of_distances() -> None:
    from dnn_tip import surprise

    ours = DSC(MODEL, LAYERS, sections=25)
    ours.fit(activations(PROFILE, PROFILE_LABELS))
    values = surprise.DSA(PROFILE, PROFILE_LABELS)(NEW, NEW_LABELS)
    new = activations(NEW, NEW_LABELS)
    np.testing.assert_allclose([ours.surprise(one) for one in new], values, rtol=1e-5)
    ours.update(new)
    theirs = surprise.SurpriseCoverageMapper(25, 2.0).get_coverage_profile(values)
    assert ours.score == theirs.any(axis=0).mean()


@pytest.mark.filterwarnings("ignore:.*scipy:UserWarning")
def test_of_likelihoods() -> None:
    from dnn_tip import surprise

    ours = LSC(MODEL, LAYERS, ridge=0)
    ours.fit(activations(PROFILE, PROFILE_LABELS))
    theirs = surprise.MultiModalSA.build_by_class(
        PROFILE, PROFILE_LABELS, lambda traces, _: surprise.LSA(traces)
    )
    values = theirs(NEW, NEW_LABELS)
    new = activations(NEW, NEW_LABELS)
    np.testing.assert_allclose([ours.surprise(one) for one in new], values, rtol=1e-4)
