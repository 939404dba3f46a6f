"""Keeps the anchors of a detector's raw outputs that matter, so that fewer bytes travel.

Host and device run this same code.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError, RequestError
from edgeflare_agent.image_spec import TensorInfo


class Reduction(NamedTuple):
    """Which anchors of several outputs are kept: those with the highest scores.

    `most` is how many at most. The output at place `scores` holds the scores: of each anchor the
    highest decides, of all its values or of those from the first to the last of `rows` (both
    counted in) along the axes other than the anchors', laid flat. `axes` has the axis of the
    anchors of each output, None for an output that is returned whole. Scores are compared as they
    are stored; NaN counts as the largest, and of equal anchors the first are kept.
    """

    most: int
    scores: int
    axes: Tuple[Optional[int], ...]
    rows: Optional[Tuple[int, int]] = None

    @classmethod
    def from_json(cls, data: Any, outputs: Sequence[TensorInfo]) -> "Reduction":
        """Return what {"count", "scores", "axis", "rows"} states for these outputs.

        "axis" is a list with a number or null an output, "rows" may be left out. Raises
        RequestError, naming the field, for anything that makes no sense.
        """
        if not isinstance(data, dict) or not {"count", "scores", "axis"} <= set(data):
            raise RequestError("keep must be an object with count, scores and axis")
        unknown = sorted(set(data) - {"count", "scores", "axis", "rows"})
        if unknown:
            raise RequestError("keep has no {}".format(", ".join(map(repr, unknown))))
        count, scores, axes, rows = data["count"], data["scores"], data["axis"], data.get("rows")
        are_axes = isinstance(axes, (list, tuple)) and len(axes) == len(outputs)
        problems = (
            (not _is_number(count, 1), "count must be a whole number from 1"),
            (
                not _is_number(scores, 0) or scores >= len(outputs),
                "scores must be the place of one of the {} outputs, from 0".format(len(outputs)),
            ),
            (
                not are_axes or not all(axis is None or _is_number(axis, 0) for axis in axes),
                "axis must have a number from 0, or null, for each of the {} outputs".format(
                    len(outputs)
                ),
            ),
            (
                rows is not None
                and not (
                    isinstance(rows, (list, tuple))
                    and len(rows) == 2
                    and all(_is_number(row, 0) for row in rows)
                    and rows[0] <= rows[1]
                ),
                "rows must be the first and the last row of the scores, from 0",
            ),
        )
        for wrong, sentence in problems:
            if wrong:
                raise RequestError("keep: " + sentence)
        kept = cls(count, scores, tuple(axes), None if rows is None else (rows[0], rows[1]))
        kept._check_fits(outputs)
        return kept

    def to_json(self) -> Dict[str, Any]:
        """Return the JSON object that `from_json` reads."""
        rows = None if self.rows is None else list(self.rows)
        return {"count": self.most, "scores": self.scores, "axis": list(self.axes), "rows": rows}

    def announced(self, outputs: Sequence[TensorInfo]) -> List[TensorInfo]:
        """Return the outputs as they are once they are reduced; an open axis stays open."""
        found = []
        for info, axis in zip(outputs, self.axes):
            if axis is not None and axis < len(info.shape):
                shape = list(info.shape)
                size = shape[axis]
                shape[axis] = min(size, self.most) if size else None
                found.append(info._replace(shape=tuple(shape)))
            else:
                found.append(info)
        return found

    def apply(self, outputs: Sequence[Array]) -> List[Array]:
        """Return the outputs with the kept anchors alone, in their order.

        Raises ModelError where the outputs don't have the anchors' axes, or not as many anchors.
        """
        axes = self.axes
        if any(axis is not None and axis >= one.ndim for one, axis in zip(outputs, axes)):
            raise ModelError("an output has no axis of anchors as `keep` states it")
        sizes = {one.shape[axis] for one, axis in zip(outputs, axes) if axis is not None}
        if len(sizes) != 1:
            raise ModelError(
                "the outputs have different numbers of anchors ({}) along the axes that `keep` "
                "states".format(", ".join(map(str, sorted(sizes))))
            )
        if sizes.pop() <= self.most:
            return list(outputs)
        chosen = self._chosen(outputs[self.scores])
        return [
            one if axis is None else np.take(one, chosen, axis=axis)
            for one, axis in zip(outputs, axes)
        ]

    def _chosen(self, scores: Array) -> Array:
        """Return the ascending numbers of the anchors with the highest scores."""
        axis = self.axes[self.scores] or 0
        if int(np.prod(scores.shape[axis + 1 :])) == 1:  # as they lie: copying takes far longer
            rows = scores.reshape(-1, scores.shape[axis])
        else:
            rows = np.moveaxis(scores, axis, 0).reshape(scores.shape[axis], -1).T
        if self.rows is not None:
            first, last = self.rows
            if last >= len(rows):
                raise ModelError(
                    "`keep` states rows {} to {} of the scores, which have {}".format(
                        first, last, len(rows)
                    )
                )
            rows = rows[first : last + 1]
        best = rows.max(axis=0)
        is_nan = np.isnan(best)
        rank = -np.where(is_nan, 0, best.astype(np.float64))
        order = np.lexsort((rank, ~is_nan))  # stable: equal ones stay in their order
        return np.sort(order[: self.most])

    def _check_fits(self, outputs: Sequence[TensorInfo]) -> None:
        """Raise RequestError where the model's file says already that the outputs don't fit."""
        if self.axes[self.scores] is None:
            raise RequestError("keep: the output with the scores needs an axis of anchors")
        sizes = set()
        for info, axis in zip(outputs, self.axes):
            if axis is None or not info.shape:  # a shape without axes may not be known
                continue
            if axis >= len(info.shape):
                raise RequestError(
                    "keep: output {!r} has {} axes, so none is number {}".format(
                        info.name, len(info.shape), axis
                    )
                )
            sizes.add(info.shape[axis] or None)
        sizes.discard(None)
        if len(sizes) > 1:
            raise RequestError(
                "keep: the outputs have different numbers of anchors along these axes, {}".format(
                    " and ".join(map(str, sorted(size for size in sizes if size)))
                )
            )
        if self.rows is not None:
            info, place = outputs[self.scores], self.axes[self.scores]
            others = [size for axis, size in enumerate(info.shape) if axis != place]
            known = [size for size in others if size]
            rows = int(np.prod(known)) if len(known) == len(others) else None
            if info.shape and rows is not None and self.rows[1] >= rows:
                raise RequestError(
                    "keep: rows {} to {} are stated, and output {!r} has {} for an anchor".format(
                        self.rows[0], self.rows[1], info.name, rows
                    )
                )


def _is_number(value: Any, least: int) -> bool:
    return type(value) is int and value >= least
