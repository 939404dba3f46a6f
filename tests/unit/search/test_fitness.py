import numpy as np
import pytest

from edgeflare.search.fitness import Fitness, ObservedStates


def test_fitness_is_distance_over_delta_plus_novelty() -> None:
    fitness = Fitness(delta=1e-3, threshold=0.5)
    original, deployed = np.array([0.9, 0.1]), np.array([0.8, 0.2])
    assert fitness(original, deployed) == pytest.approx(0.1 / 1e-3 + 1)
    assert fitness(original, deployed) == pytest.approx(0.1 / 1e-3)  # observed by now


def test_distance_decides_unless_within_delta() -> None:
    fitness = Fitness(delta=1e-3, threshold=0.5)
    fitness(np.array([0.9, 0.1]), np.array([0.8, 0.2]))
    nearly = fitness(
        np.array([0.1, 0.9]), np.array([0.1995, 0.8005])
    )  # new state, D smaller by .0005
    same_state = fitness(np.array([0.9, 0.1]), np.array([0.8, 0.2]))
    far = fitness(np.array([0.9, 0.1]), np.array([0.79, 0.21]))  # observed, D larger by .01
    assert nearly > same_state
    assert far > nearly


def test_a_state_is_new_beyond_the_squared_distance() -> None:
    states = ObservedStates(threshold=0.5)
    base = np.array([1.0, 0.0])
    assert states.observe(base, base)
    shift = np.array([0.5, 0.0])  # squared distance 0.25 in each half
    assert not states.observe(base - shift, base - shift)  # exactly 0.5: observed
    assert states.observe(base - 1.01 * shift, base - shift)
