"""Anchors that are kept on the device: those with the highest scores, in their order."""

from typing import Any

import numpy as np
import pytest

from edgeflare_agent.configuration.reduction import Reduction
from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.image_spec import TensorInfo

HEAD = TensorInfo("head", (1, 9, 40), "float32")
BOXES = TensorInfo("boxes", (1, 40, 4), "float32")
PROTOS = TensorInfo("protos", (1, 2, 3), "float32")


def reduction(*outputs: TensorInfo, **keep: Any) -> Reduction:
    return Reduction.from_json({"scores": 0, "rows": None, **keep}, outputs)


def expected(scores: np.ndarray, count: int) -> list[int]:
    """The chosen anchors of scores [anchors, rows], one at a time."""
    order = sorted(
        range(len(scores)),
        key=lambda n: (
            0 if np.isnan(scores[n]).any() else 1,
            -scores[n].max() if not np.isnan(scores[n]).any() else 0.0,
            n,
        ),
    )
    return sorted(order[:count])


@pytest.mark.parametrize("seed", range(8))
def test_keeps_the_highest_of_the_stated_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    head = rng.integers(0, 6, (1, 9, 40)).astype(np.float32)  # with many ties
    head[0, 4, rng.integers(0, 40, 3)] = np.nan
    head[0, 5, rng.integers(0, 40, 2)] = [np.inf, -np.inf]
    boxes, protos = rng.random((1, 40, 4), np.float32), rng.random((1, 2, 3), np.float32)
    count = int(rng.integers(1, 40))
    keep = reduction(HEAD, BOXES, PROTOS, count=count, axis=[2, 1, None], rows=[4, 8])
    found = keep.apply([head, boxes, protos])
    chosen = expected(head[0, 4:9].T, count)
    np.testing.assert_array_equal(found[0], head[:, :, chosen])
    np.testing.assert_array_equal(found[1], boxes[:, chosen])
    assert found[2] is protos


def test_stored_integers_are_compared_as_they_are() -> None:
    scores = np.array([[200, 3, 255, 200]], np.uint8)
    keep = reduction(TensorInfo("scores", (1, 4), "uint8"), count=2, axis=[1])
    np.testing.assert_array_equal(keep.apply([scores])[0], [[200, 255]])
    signed = reduction(TensorInfo("scores", (1, 4), "int8"), count=1, axis=[1])
    np.testing.assert_array_equal(
        signed.apply([np.array([[-128, -3, -5, -3]], np.int8)])[0], [[-3]]
    )


def test_fewer_anchors_than_are_kept_return_all() -> None:
    keep = reduction(HEAD, count=300, axis=[2])
    head = np.zeros((1, 9, 40), np.float32)
    assert keep.apply([head])[0] is head
    assert keep.announced([HEAD])[0].shape == (1, 9, 40)


def test_announced_shapes_are_those_that_come() -> None:
    opened = TensorInfo("open", (1, None, 4), "float32")
    keep = reduction(HEAD, opened, PROTOS, count=7, axis=[2, 1, None])
    shapes = [one.shape for one in keep.announced([HEAD, opened, PROTOS])]
    assert shapes == [(1, 9, 7), (1, None, 4), (1, 2, 3)]
    assert Reduction.from_json(keep.to_json(), [HEAD, opened, PROTOS]) == keep


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ({"count": 0}, "from 1"), ({"count": True}, "from 1"), ({"scores": 2}, "2 outputs"),
        ({"axis": [2]}, "2 outputs"), ({"axis": [2, -1]}, "from 0"),
        ({"axis": [3, 1]}, "output 'head'"), ({"axis": [2, 2]}, "axes, 4"),
        ({"axis": [None, 1]}, "anchors"), ({"rows": [5, 4]}, "rows must"),
        ({"rows": [4, 9]}, "output 'head'"), ({"most": 3}, "'most'"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_its_field(keep: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        reduction(HEAD, BOXES, **{"count": 5, "axis": [2, 1], **keep})


def test_what_is_no_object_is_refused() -> None:
    nonsense: list[Any] = [5, [], {"count": 3}]
    for wrong in nonsense:
        with pytest.raises(RequestError, match="count, scores"):
            Reduction.from_json(wrong, [HEAD])


def test_outputs_that_are_not_as_stated_fail_the_inference() -> None:
    unknown = TensorInfo("head", (), "float32")
    keep = reduction(unknown, unknown, count=2, axis=[1, 1], rows=[0, 5])
    with pytest.raises(ModelError, match=r"anchors \(3"):
        keep.apply([np.zeros((1, 3)), np.zeros((1, 4))])
    with pytest.raises(ModelError, match="of anchors"):
        keep.apply([np.zeros(3), np.zeros(3)])
    with pytest.raises(ModelError, match="rows 0"):
        keep.apply([np.zeros((1, 3, 2)), np.zeros((1, 3, 2))])


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_the_stated_rows_are_those_of_all_other_axes_in_their_order(axis: int) -> None:
    rng = np.random.default_rng(axis)
    shape = [2, 3, 4, 5]
    shape[axis] = 30
    scores = rng.random(shape, np.float32)
    keep = reduction(
        TensorInfo("scores", tuple(shape), "float32"), count=7, axis=[axis], rows=[2, 5]
    )
    rows = np.moveaxis(scores, axis, 0).reshape(30, -1)[:, 2:6]
    np.testing.assert_array_equal(
        keep.apply([scores])[0], np.take(scores, expected(rows, 7), axis=axis)
    )
