import numpy as np
import pytest

from edgeflare.strategies.dflare_fitness import Fitness, ObservedStates


def test_fitness_is_distance_over_delta_plus_novelty() -> None:
    fitness = Fitness(delta=1e-3, threshold=0.5)
    original, deployed = np.array([0.9, 0.1]), np.array([0.8, 0.2])
    assert fitness.of_new(original, deployed) == pytest.approx(0.1 / 1e-3 + 1)
    assert fitness.of_new(original, deployed) == pytest.approx(0.1 / 1e-3)  # observed by now
    assert fitness.of_observed(original, deployed) == pytest.approx(0.1 / 1e-3)


def test_distance_decides_unless_within_delta() -> None:
    fitness = Fitness(delta=1e-3, threshold=0.5)
    fitness.of_new(np.array([0.9, 0.1]), np.array([0.8, 0.2]))
    best = fitness.of_observed(np.array([0.9, 0.1]), np.array([0.8, 0.2]))
    new = fitness.of_new(np.array([0.1, 0.9]), np.array([0.1995, 0.8005]))  # D smaller by 0.0005
    same_state = fitness.of_new(np.array([0.9, 0.1]), np.array([0.8005, 0.1995]))
    far = fitness.of_new(np.array([0.9, 0.1]), np.array([0.79, 0.21]))  # D larger by 0.01
    assert new > best
    assert same_state < best
    assert far > new


def test_a_state_is_new_beyond_the_squared_distance() -> None:
    states = ObservedStates(threshold=0.5)
    base = np.array([1.0, 0.0])
    assert states.observe(base, base)
    shift = np.array([0.5, 0.0])  # squared distance 0.25 in each half
    assert not states.observe(base - shift, base - shift)  # exactly 0.5: observed
    assert states.observe(base - 1.01 * shift, base - shift)
