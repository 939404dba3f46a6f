"""Coverage of units: definitions, and what holds of all criteria."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.models.tensors import UnitActivations
from edgeflare_whitebox import (
    DSC,
    KMNC,
    LSC,
    NBC,
    NC,
    SNAC,
    TKNC,
    Activations,
    CoverageCriterion,
    UnitCriterion,
)

LAYERS = ("first", "second")
MODEL = "0123456789abcdef" * 4
MAKERS: dict[str, Callable[..., CoverageCriterion]] = {
    "NC": lambda model=MODEL, layers=LAYERS: NC(model, layers, threshold=0.6),
    "KMNC": lambda model=MODEL, layers=LAYERS: KMNC(model, layers, sections=7),
    "NBC": lambda model=MODEL, layers=LAYERS: NBC(model, layers),
    "SNAC": lambda model=MODEL, layers=LAYERS: SNAC(model, layers),
    "TKNC": lambda model=MODEL, layers=LAYERS: TKNC(model, layers, k=2),
    "LSC": lambda model=MODEL, layers=LAYERS: LSC(model, layers, upper=30.0, sections=20),
    "DSC": lambda model=MODEL, layers=LAYERS: DSC(model, layers, sections=20),
}
UNITS: dict[str, Callable[..., UnitCriterion]] = {
    "NC": NC, "KMNC": KMNC, "NBC": NBC, "SNAC": SNAC, "TKNC": TKNC,
}  # fmt: skip


def layer(units: Sequence[float], least: float | None = None, largest: float | None = None) -> Any:
    values = np.array(units, np.float32)
    return UnitActivations(
        values,
        float(values.min()) if least is None else least,
        float(values.max()) if largest is None else largest,
    )


def one(first: Sequence[float], second: Sequence[float] = (0.0,), label: int = 0) -> Activations:
    return Activations({"first": layer(first), "second": layer(second)}, label)


def drawn(number: int, seed: int, scale: float = 1.0) -> list[Activations]:
    """Activations of so many inputs: 8 and 5 units, of which the last of each is constant."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        label = int(rng.integers(3))
        first, second = (scale * rng.normal(label / 2, size=size) for size in (8, 5))
        first[-1] = second[-1] = 0.25
        layers = {"first": layer(first, first.min() - 1, first.max() + 1), "second": layer(second)}
        found.append(Activations(layers, label))
    return found


PROFILING = drawn(60, 0)
TEST = drawn(40, 1, 1.5)


def fitted(name: str, inputs: Sequence[Activations] = PROFILING) -> CoverageCriterion:
    made = MAKERS[name]()
    made.fit(inputs)
    return made


def state(criterion: CoverageCriterion) -> tuple[Any, ...]:
    profile = [one.tolist() for one in criterion._profile]
    return criterion.score, criterion.inputs, criterion._covered.tolist(), profile


# Of every criterion


@pytest.mark.parametrize("name", MAKERS)
def test_the_score_is_a_share_that_grows(name: str) -> None:
    criterion = fitted(name)
    assert criterion.score == 0
    scores = [0.0]
    for each in TEST:
        criterion.update([each])
        scores.append(criterion.score)
    assert scores == sorted(scores)
    assert 0 < scores[-1] <= 1
    assert criterion.inputs == len(TEST)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("cut", [1, 17, 40])
def test_merged_parts_are_one_pass(name: str, cut: int) -> None:
    whole, first, second = (fitted(name) for _ in range(3))
    whole.update(TEST)
    first.update(TEST[:cut])
    second.update(TEST[cut:])
    first.merge(second)
    assert state(first) == state(whole)


@pytest.mark.parametrize("name", MAKERS)
def test_one_that_saw_nothing_takes_what_it_is_merged_with(name: str) -> None:
    full = fitted(name)
    empty = full.emptied()
    full.update(TEST[:20])
    before = state(full)
    full.merge(empty)
    assert state(full) == before
    empty.merge(full)
    assert state(empty) == before
    empty.update(TEST[20:])
    assert state(full) == before
    full.update(TEST[20:])
    assert state(empty) == state(full)


@pytest.mark.parametrize("name", MAKERS)
def test_fitting_may_be_divided(name: str) -> None:
    whole, parts = fitted(name), fitted(name, PROFILING[:25])
    parts.fit(PROFILING[25:])
    for criterion in (whole, parts):
        criterion.update(TEST)
    assert state(whole) == state(parts)


@pytest.mark.parametrize("name", MAKERS)
def test_profiling_ends_where_testing_begins(name: str) -> None:
    criterion = fitted(name)
    criterion.update(TEST[:1])
    with pytest.raises(UsageError, match=f"{name}"):
        criterion.fit(PROFILING)


@pytest.mark.parametrize("name", ["KMNC", "NBC", "SNAC", "LSC", "DSC"])
def test_what_needs_a_profile_says_so(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} compares"):
        MAKERS[name]().update(TEST)


@pytest.mark.parametrize("name", MAKERS)
def test_other_layers_are_refused(name: str) -> None:
    criterion = fitted(name)
    with pytest.raises(UsageError, match="layer 'second'"):
        criterion.update([Activations({"first": layer([1.0])}, 0)])
    with pytest.raises(UsageError, match="13 units"):
        criterion.update([one([1.0])])
    assert criterion.inputs == 0
    with pytest.raises(UsageError, match="one layer"):
        MAKERS[name](layers=())


@pytest.mark.parametrize("name", MAKERS)
def test_values_that_are_not_finite_cover_nothing(name: str) -> None:
    sick = [
        Activations({"first": layer([value] * 8), "second": layer([value] * 5)}, 0)
        for value in (np.nan, np.inf, -np.inf)
    ]
    healthy, other = fitted(name), fitted(name)
    healthy.update(TEST)
    other.fit(sick)
    other.update([*sick, *TEST])
    assert state(other)[2:] == state(healthy)[2:]


# Of those over units


@pytest.mark.parametrize("name", UNITS)
def test_constant_units_are_counted_apart(name: str) -> None:
    made = UNITS[name](MODEL, LAYERS)
    assert made.dead is None
    made.fit(PROFILING)
    assert made.dead == 2
    far = one([9.0] * 7 + [0.5], [9.0] * 4 + [0.5])
    made.update([far])
    live = np.ones(made._covered.size // 13 * 13, bool).reshape(13, -1)
    live[[7, 12]] = False
    assert not made._covered.reshape(13, -1)[~live.any(axis=1)].any()
    assert made._total() == live.sum()


@pytest.mark.parametrize("name", ["NBC", "SNAC"])
def test_the_profiling_inputs_themselves_cover_no_boundary(name: str) -> None:
    criterion = fitted(name)
    criterion.update(PROFILING)
    assert criterion.score == 0


def test_boundaries_are_crossed_strictly() -> None:
    below, at, above = (one([value, 0.5], [0.5]) for value in (-0.1, 0.0, 1.1))
    profile = [one([0.0, 0.0], [0.0]), one([1.0, 1.0], [1.0])]
    for inputs, both_sides, upper in (([at], 0, 0), ([below], 1, 0), ([above], 1, 1)):
        nbc, snac = NBC(MODEL, LAYERS), SNAC(MODEL, LAYERS)
        for criterion in (nbc, snac):
            criterion.fit(profile)
            criterion.update(inputs)
        assert (nbc.score, snac.score) == (both_sides / 6, upper / 3)


def test_a_sections_borders() -> None:
    kmnc = KMNC(MODEL, ["first"], sections=4)
    kmnc.fit([one([1.0]), one([3.0])])
    expected = {1.0: 0, 1.49: 0, 1.5: 1, 2.75: 3, 3.0: 3, 0.99: None, 3.01: None}
    for value, section in expected.items():
        covered = kmnc.sections_of(one([value])).tolist()
        assert covered == ([] if section is None else [section]), value
    kmnc.update(one([value]) for value in np.linspace(1, 3, 50))
    assert kmnc.score == 1


def test_the_profiling_inputs_cover_a_share_of_their_sections() -> None:
    kmnc = KMNC(MODEL, LAYERS)
    kmnc.fit(PROFILING)
    kmnc.update(PROFILING)
    assert kmnc.settings == {"sections": 1000}
    assert 0 < kmnc.score <= len(PROFILING) / 1000


def test_activations_are_scaled_by_their_layer_on_each_input() -> None:
    nc = NC(MODEL, ["first"], threshold=0.5)
    values = UnitActivations(np.array([2.0, 4.0, 3.0], np.float32), 1.0, 5.0)
    nc.update([Activations({"first": values}, 0)])
    assert nc._covered.tolist() == [False, True, False]  # 0.25, 0.75, 0.5
    nc.update([one([7.0, 7.0, 7.0])])
    assert nc.score == pytest.approx(1 / 3)


def test_the_first_of_equal_units_are_the_most_active_ones() -> None:
    tknc = TKNC(MODEL, LAYERS, k=2)
    tknc.update([one([1.0, 3.0, 3.0, 3.0], [0.0, -1.0, 0.0])])
    assert tknc._covered.tolist() == [False, True, True, False, True, False, True]
    small = TKNC(MODEL, ["first"])
    small.update([one([1.0, 2.0])])
    assert small.score == 1


def test_defaults_are_those_of_the_papers() -> None:
    found = {
        made.name: made.settings
        for made in (one(MODEL, LAYERS) for one in (*UNITS.values(), LSC, DSC))
    }
    assert found == {
        "NC": {"threshold": 0.75},
        "KMNC": {"sections": 1000},
        "NBC": {},
        "SNAC": {},
        "TKNC": {"k": 3},
        "LSC": {"upper": 2000, "sections": 1000, "variance": 1e-5, "ridge": 1e-6},
        "DSC": {"upper": 2, "sections": 1000},
    }


@pytest.mark.parametrize(
    "make",
    [
        lambda: NC(MODEL, LAYERS, threshold=1.1),
        lambda: KMNC(MODEL, LAYERS, sections=0),
        lambda: TKNC(MODEL, LAYERS, k=0),
        lambda: LSC(MODEL, LAYERS, upper=0),
        lambda: LSC(MODEL, LAYERS, ridge=-1),
        lambda: DSC(MODEL, LAYERS, sections=0),
        lambda: NC(MODEL, LAYERS, k=3),
    ],
)
def test_settings_without_a_meaning_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=r"NC|LSC|DSC"):
        make()


@pytest.mark.parametrize(
    "other",
    [
        KMNC("f" * 64, LAYERS),
        KMNC(MODEL, ("second", "first")),
        KMNC(MODEL, LAYERS, sections=7),
        NBC(MODEL, LAYERS),
    ],
)
def test_of_anything_else_nothing_is_taken(other: CoverageCriterion) -> None:
    kmnc = KMNC(MODEL, LAYERS)
    kmnc.fit(PROFILING)
    kmnc.update(TEST)
    other.fit(PROFILING)
    with pytest.raises(UsageError, match=f"{other.name}"):
        other.merge(kmnc)
    assert (other.inputs, other.score) == (0, 0)


@pytest.mark.parametrize("name", MAKERS)
def test_profiles_of_other_inputs_are_not_merged(name: str) -> None:
    criterion, other = fitted(name), fitted(name, PROFILING[:-30])
    with pytest.raises(UsageError, match="same inputs"):
        criterion.merge(other)


def test_layers_of_other_sizes_are_not_merged() -> None:
    first, second = NC(MODEL, LAYERS), NC(MODEL, LAYERS)
    first.update(TEST)
    second.update([one([1.0])])
    with pytest.raises(UsageError, match="13 units"):
        first.merge(second)


@pytest.mark.parametrize("name", MAKERS)
def test_an_emptied_one_has_the_profile_alone(name: str) -> None:
    begun = fitted(name)
    begun.update(TEST[:20])
    score = begun.score
    other = begun.emptied()
    assert (other.inputs, other.score) == (0, 0)
    other.update(TEST[20:])
    again = fitted(name)
    again.update(TEST[20:])
    assert other.score == again.score
    assert begun.score == score
    more = begun.emptied()
    more.fit(drawn(5, 7, 3.0))
    unchanged = begun.emptied()
    unchanged.update(TEST[20:])
    assert unchanged.score == again.score
    begun.merge(other)
    whole = fitted(name)
    whole.update(TEST)
    assert begun.score == whole.score
