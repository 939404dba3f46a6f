import json
from typing import Any

import numpy as np
import pytest

from edgeflare_mutators import (
    Mutation,
    MutationError,
    ParamsError,
    RecordError,
    SampleError,
    SampleSpec,
    UnknownOperatorError,
    default_pool,
    mutate,
    replay,
)

IMAGE = np.random.default_rng(0).integers(0, 256, (28, 28, 1), dtype=np.uint8)


def test_a_chain_replays_bit_for_bit_from_its_json() -> None:
    rng = np.random.default_rng(1)
    sample = IMAGE
    written = []
    for _ in range(5):
        for name, operator in default_pool().items():
            params = operator.draw(rng, SampleSpec.of(sample))
            sample = operator.apply(sample, params)
            written.append(json.dumps(Mutation(name, params).to_json()))
    mutations = [Mutation.from_json(json.loads(line)) for line in written]
    assert np.array_equal(replay(IMAGE, mutations), sample)
    assert not np.array_equal(replay(IMAGE, mutations[1:]), sample)


def test_the_record_does_not_change_with_what_it_was_made_from() -> None:
    params = {"kernel": 3}
    mutation = Mutation.from_json({"operator": "median-blur", "params": params})
    params["kernel"] = 5
    assert mutation == Mutation("median-blur", {"kernel": 3})


def test_no_mutations_give_a_copy() -> None:
    same = replay(IMAGE, [])
    assert np.array_equal(same, IMAGE)
    assert not np.shares_memory(same, IMAGE)
    with pytest.raises(SampleError, match="uint8"):
        replay(IMAGE / 255, [])


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"operator": "median-blur"},
        {"operator": 3, "params": {}},
        {"operator": "median-blur", "params": [3]},
        {"operator": "median-blur", "params": {}, "seed": 1},
    ],
)
def test_what_is_no_record_is_refused(data: Any) -> None:
    with pytest.raises(RecordError, match="'operator'"):
        Mutation.from_json(data)


def test_an_unknown_operator_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownOperatorError, match="'sharpen'"):
        mutate(IMAGE, Mutation("sharpen", {}))


def test_wrong_parameters_are_refused_and_every_error_is_a_mutation_error() -> None:
    with pytest.raises(ParamsError, match="median-blur: kernel"):
        mutate(IMAGE, Mutation("median-blur", {"kernel": 4}))
    for error in (ParamsError, RecordError, SampleError, UnknownOperatorError):
        assert issubclass(error, MutationError)
