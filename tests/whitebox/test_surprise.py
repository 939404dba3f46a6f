"""Surprise adequacy, against scipy's density and the plain formula of distances."""

from typing import Any

import numpy as np
import pytest
import scipy

from edgeflare.errors import UsageError
from edgeflare.models.tensors import UnitActivations
from edgeflare_whitebox import DSC, LSC, Activations, SurpriseCriterion, surprise

MODEL = "0" * 64
LAYERS = ("first", "second")
CLASSES, UNITS = 3, 6


def traces(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Float32 [number, 6] and their predicted classes; units of a class depend on each other."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=number)
    mixing = np.random.default_rng(99).normal(size=(CLASSES, UNITS, UNITS))
    values = np.einsum("nu,nuv->nv", rng.normal(size=(number, UNITS)), mixing[labels])
    return (values + labels[:, np.newaxis]).astype(np.float32), labels


def activations(values: np.ndarray, labels: Any) -> list[Activations]:
    return [
        Activations(
            {
                "first": UnitActivations(one[:4], float(one[:4].min()), float(one[:4].max())),
                "second": UnitActivations(one[4:], float(one[4:].min()), float(one[4:].max())),
            },
            int(label),
        )
        for one, label in zip(values, labels, strict=True)
    ]


KNOWN, KNOWN_LABELS = traces(120, 0)
NEW, NEW_LABELS = traces(30, 1)


def test_likelihood_is_that_of_scipys_density() -> None:
    lsc = LSC(MODEL, LAYERS, ridge=0)
    lsc.fit(activations(KNOWN, KNOWN_LABELS))
    near = LSC(MODEL, LAYERS)
    near.fit(activations(KNOWN, KNOWN_LABELS))
    for one, trace, label in zip(activations(NEW, NEW_LABELS), NEW, NEW_LABELS, strict=True):
        density = scipy.stats.gaussian_kde(KNOWN[label == KNOWN_LABELS].T.astype(np.float64))
        expected = -density.logpdf(trace.astype(np.float64))[0]
        assert lsc.surprise(one) == pytest.approx(expected, rel=1e-9)
        assert near.surprise(one) == pytest.approx(expected, rel=1e-3)


def test_units_of_low_variance_are_dropped_for_each_class() -> None:
    known = KNOWN.copy()
    known[KNOWN_LABELS == 1, 2] = 0.5
    known[KNOWN_LABELS == 2, 4] *= 1e-4
    lsc = LSC(MODEL, LAYERS, ridge=0)
    lsc.fit(activations(known, KNOWN_LABELS))
    kept = {0: range(6), 1: [0, 1, 3, 4, 5], 2: [0, 1, 2, 3, 5]}
    for one, trace, label in zip(activations(NEW, NEW_LABELS), NEW, NEW_LABELS, strict=True):
        units = list(kept[int(label)])
        density = scipy.stats.gaussian_kde(
            known[label == KNOWN_LABELS][:, units].T.astype(np.float64)
        )
        expected = -density.logpdf(trace[units].astype(np.float64))[0]
        assert lsc.surprise(one) == pytest.approx(expected, rel=1e-9)


def test_densities_are_let_go_of_and_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    new = activations(NEW, NEW_LABELS)
    found, computed = [], []
    density = surprise._density
    monkeypatch.setattr(surprise, "_density", lambda *of: computed.append(of) or density(*of))
    for most in (surprise._DENSITY_VALUES, 1):
        monkeypatch.setattr(surprise, "_DENSITY_VALUES", most)
        lsc = LSC(MODEL, LAYERS)
        lsc.fit(activations(KNOWN, KNOWN_LABELS))
        found.append([lsc.surprise(one) for one in new])
    assert found[0] == found[1]
    assert len(computed) > 2 * CLASSES


def test_far_inputs_are_more_surprising_than_any_density_can_tell() -> None:
    lsc = LSC(MODEL, LAYERS)
    lsc.fit(activations(KNOWN, KNOWN_LABELS))
    found = [lsc.surprise(activations(NEW[:1] + far, [0])[0]) for far in (0, 10, 100, 1000)]
    assert found == sorted(found)
    assert np.isfinite(found).all()
    assert found[-1] > 1000  # exp(-1000) is 0 in float64


def test_with_a_ridge_fewer_traces_than_units_do() -> None:
    few = activations(KNOWN[KNOWN_LABELS == 0][:4], [0] * 4)
    lsc, without = LSC(MODEL, LAYERS), LSC(MODEL, LAYERS, ridge=0)
    for criterion in (lsc, without):
        criterion.fit(few)
    assert lsc.surprise(few[0]) < lsc.surprise(activations(NEW[:1], [0])[0]) < np.inf
    with pytest.raises(UsageError, match="raise the"):
        without.surprise(few[0])


@pytest.mark.parametrize("kind", [LSC, DSC])
def test_an_input_of_a_class_without_profile_is_infinitely_surprising(kind: Any) -> None:
    criterion = kind(MODEL, LAYERS)
    criterion.fit(activations(KNOWN[:1], [0]))
    assert criterion.surprise(activations(NEW[:1], [1])[0]) == np.inf
    assert criterion.surprise(activations(NEW[:1], [0])[0]) == np.inf
    criterion.update(activations(NEW, NEW_LABELS))
    assert criterion.score == 0


def test_distances_are_those_of_the_definition() -> None:
    dsc = DSC(MODEL, LAYERS)
    dsc.fit(activations(KNOWN, KNOWN_LABELS))
    known = KNOWN.astype(np.float64)
    for one, trace, label in zip(activations(NEW, NEW_LABELS), NEW, NEW_LABELS, strict=True):
        same, others = known[label == KNOWN_LABELS], known[label != KNOWN_LABELS]
        to_same = np.linalg.norm(same - trace, axis=1)
        nearest = same[to_same.argmin()]
        expected = to_same.min() / np.linalg.norm(others - nearest, axis=1).min()
        assert dsc.surprise(one) == pytest.approx(expected, rel=1e-9)


def test_profiling_inputs_are_not_surprising_by_distance() -> None:
    dsc = DSC(MODEL, LAYERS)
    profiling = activations(KNOWN, KNOWN_LABELS)
    dsc.fit(profiling)
    assert {dsc.surprise(one) for one in profiling} == {0.0}
    dsc.update(profiling)
    assert dsc.score == 0  # sections begin above 0


def test_many_traces_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = DSC(MODEL, LAYERS), DSC(MODEL, LAYERS)
    for criterion in (whole, parts):
        criterion.fit(activations(KNOWN, KNOWN_LABELS))
    new = activations(NEW, NEW_LABELS)
    expected = [whole.surprise(one) for one in new]
    monkeypatch.setattr("edgeflare_whitebox.surprise._VALUES", 7 * UNITS)
    assert [parts.surprise(one) for one in new] == expected


def test_sections_are_open_below_and_closed_above(monkeypatch: pytest.MonkeyPatch) -> None:
    dsc = DSC(MODEL, LAYERS, upper=2.0, sections=4)
    found = {}
    for value in (-1.0, 0.0, 1e-9, 0.5, 0.51, 1.0, 2.0, 2.01, np.inf, np.nan):
        monkeypatch.setattr(dsc, "surprise", lambda _, value=value: value)
        found[value] = dsc.sections_of(activations(NEW[:1], [0])[0]).tolist()
    assert list(found.values()) == [[], [], [0], [0], [1], [1], [3], [], [], []]


def test_fitting_on_more_changes_what_is_near() -> None:
    criteria = [LSC(MODEL, LAYERS), DSC(MODEL, LAYERS)]
    new = activations(NEW[:1], NEW_LABELS[:1])[0]
    for criterion in criteria:
        criterion.fit(activations(KNOWN[:60], KNOWN_LABELS[:60]))
        criterion.surprise(new)
        criterion.fit(activations(KNOWN[60:], KNOWN_LABELS[60:]))
        whole = SurpriseCriterion(criterion.name, MODEL, LAYERS)
        whole.fit(activations(KNOWN, KNOWN_LABELS))
        assert criterion.surprise(new) == whole.surprise(new)


def test_copies_share_what_is_computed_of_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    density = surprise._density
    monkeypatch.setattr(surprise, "_density", lambda *of: computed.append(of) or density(*of))
    lsc = LSC(MODEL, LAYERS)
    lsc.fit(activations(KNOWN, KNOWN_LABELS))
    for part in (lsc.emptied(), lsc.emptied()):
        part.update(activations(NEW, NEW_LABELS))
    assert len(computed) == CLASSES
