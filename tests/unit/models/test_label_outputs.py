import numpy as np
import pytest

from edgeflare.answers.oracles import LabelOracle
from edgeflare.answers.outputs import check_index, is_index
from edgeflare.errors import ModelError
from edgeflare.models import OutputReader
from edgeflare.types import Decision
from edgeflare_agent.image_spec import TensorInfo

INT64 = TensorInfo("label", (1,), "int64")


def reader(tensor: TensorInfo = INT64, classes: int = 4) -> OutputReader:
    return OutputReader(tensor, "label", classes)


@pytest.mark.parametrize("shape", [(), (1,), (None,), (1, 1), (None, 1), (1, 1, 1)])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
def test_one_whole_number_is_a_class_index(shape: tuple[int | None, ...], dtype: str) -> None:
    assert is_index(TensorInfo("o", shape, dtype))
    assert is_index(TensorInfo("o", shape, dtype, (1.0, -128)))


@pytest.mark.parametrize(
    "tensor",
    [
        TensorInfo("scores", (1, 10), "int8", (1 / 256, -128)),
        TensorInfo("scores", (None, None), "int32"),
        TensorInfo("top five", (1, 5), "int64"),
        TensorInfo("five samples", (5,), "int64"),
        TensorInfo("five samples", (5, 1), "int64"),
        TensorInfo("sigmoid", (1, 1), "float32"),
        TensorInfo("quantised sigmoid", (1, 1), "uint8", (1 / 256, 0)),
        TensorInfo("yes or no", (1,), "bool"),
    ],
)
def test_what_may_be_scores_is_not_taken_for_an_index(tensor: TensorInfo) -> None:
    assert not is_index(tensor)


@pytest.mark.parametrize(
    ("tensor", "raw"),
    [
        (INT64, np.array([2])),
        (TensorInfo("label", (), "int64"), np.array(2)),
        (TensorInfo("label", (1, 1), "uint8"), np.array([[2]], np.uint8)),
        (TensorInfo("label", (1,), "int8", (1.0, -128)), np.array([-126], np.int8)),
        (TensorInfo("label", (1,), "uint8", (0.3, 0)), np.array([7], np.uint8)),  # 2.1
        (TensorInfo("label", (1,), "float32"), np.array([2.0], np.float32)),
        (TensorInfo("label", (1,), "float32"), np.array([1.9999999], np.float32)),
    ],
)
def test_an_index_becomes_scores_of_the_originals_classes(tensor, raw) -> None:
    scores = reader(tensor).read(raw)
    assert scores.dtype == np.float64
    assert scores.tolist() == [0, 0, 1, 0]


def test_the_floor_rests_on_the_original_alone() -> None:
    unsure, sure = np.array([0.5, 0.4995, 0.0005, 0]), np.array([0.6, 0.4, 0, 0])
    answered = reader().read(np.array([1]))
    oracle = LabelOracle(1e-3)
    assert oracle.decide(unsure, answered) is Decision.BELOW_FLOOR
    assert oracle.decide(sure, answered) is Decision.DEVIATION


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_index_that_is_no_number_is_kept_as_such(value: float) -> None:
    scores = reader(TensorInfo("label", (1,), "float32")).read(np.array([value], np.float32))
    assert np.isnan(scores).all()
    assert LabelOracle().decide(np.array([1.0, 0, 0, 0]), scores) is Decision.NONFINITE


@pytest.mark.parametrize("index", [-1, 4, 2**40])
def test_an_index_out_of_range_gets_one_sentence(index: int) -> None:
    with pytest.raises(ModelError, match=f"class {index}"):
        reader().read(np.array([index]))


def test_a_fraction_is_no_index() -> None:
    with pytest.raises(ModelError, match="'label'"):
        reader(TensorInfo("label", (1, 1), "float32")).read(np.array([[0.37]]))


def test_several_values_are_no_index() -> None:
    with pytest.raises(ModelError, match="3 values"):
        reader(TensorInfo("label", (None,), "int64")).read(np.array([1, 2, 3]))
    with pytest.raises(ModelError, match="shape 1"):
        check_index(TensorInfo("top", (1, 5), "int64"))


def test_a_step_of_several_classes_is_no_index() -> None:
    with pytest.raises(ModelError, match=r"3\.9.* neighbouring"):
        check_index(TensorInfo("label", (1,), "uint8", (3.9, 0)))
