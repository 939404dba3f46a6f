"""What a user's operator may get wrong is caught where it happens."""

import numpy as np
import pytest

from edgeflare_mutators import Operator, OperatorOutputError, Sample
from edgeflare_mutators.base import Params

IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


class Floats(Operator):
    name = "floats"
    limits = ()

    def _apply(self, sample: Sample, params: Params) -> Sample:
        return sample / 2


class Flat(Floats):
    name = "flat"

    def _apply(self, sample: Sample, params: Params) -> Sample:
        return sample.ravel()


class Nothing(Floats):
    name = "nothing"

    def _apply(self, sample: Sample, params: Params) -> Sample:
        return None  # type: ignore[return-value]


class InPlace(Floats):
    name = "in-place"

    def _apply(self, sample: Sample, params: Params) -> Sample:
        sample[0] = 0
        return sample


class Identity(Floats):
    name = "identity"

    def _apply(self, sample: Sample, params: Params) -> Sample:
        return sample


@pytest.mark.parametrize(
    ("operator", "words"),
    [(Floats(), "returned float64"), (Flat(), r"shape \(2"), (Nothing(), "returned NoneType")],
)
def test_invalid_output_is_refused(operator: Operator, words: str) -> None:
    with pytest.raises(OperatorOutputError, match=words):
        operator.apply(IMAGE, {})


def test_writing_to_the_input_fails_and_leaves_it_as_it_was() -> None:
    before = IMAGE.copy()
    with pytest.raises(ValueError, match="read-only"):
        InPlace().apply(IMAGE, {})
    assert np.array_equal(IMAGE, before)
    assert IMAGE.flags.writeable


def test_the_input_returned_is_copied() -> None:
    same = Identity().apply(IMAGE, {})
    assert np.array_equal(same, IMAGE)
    same[0] = 9
    assert IMAGE[0, 0, 0] == 0
