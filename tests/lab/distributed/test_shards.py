"""Shards of seeds: all of them, once, smaller towards the end."""

from hypothesis import given
from hypothesis import strategies as st

from edgeflare_lab.distributed.shards import Shards


@given(st.integers(1, 3000), st.integers(1, 5), st.integers(1, 4), st.floats(0, 5))
def test_every_seed_is_given_out_once_and_shards_never_grow(
    count: int, workers: int, boards: int, seconds: float
) -> None:
    seeds = [str(number) for number in range(count)]
    shards, taken, sizes = Shards(seeds), [], []
    while shards.are_left:
        ids = shards.take(workers, workers * boards)
        assert ids
        taken += ids
        sizes.append(len(ids))
        shards.end(ids, len(ids), seconds * len(ids))
    assert taken == seeds
    assert shards.finished == sum(shards.values) == count
    assert sizes[1:] == sorted(sizes[1:], reverse=True)


def test_a_shard_that_is_given_back_comes_again_before_others() -> None:
    shards = Shards([str(number) for number in range(100)])
    first = shards.take(2, 2)
    shards.give_back(first)
    assert shards.take(2, 2) == first


def test_a_part_without_seeds_is_one_shard() -> None:
    shards = Shards(None)
    assert shards.take(2, 2) is None
    assert not shards.are_left
    shards.give_back(None)
    assert shards.are_left
    assert not Shards([]).are_left
