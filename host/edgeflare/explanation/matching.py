"""Which tensors of the deployed model hold what tensors of the original hold."""

import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tensors import ModelGraph
from edgeflare.models.tensors.graph import Values

_LEAST = 0.5
_OFFSET, _SAME = 0.02, 0.99
_BONUS = 1.0
_POSITIONS = 4096
_ENDINGS = re.compile(r"(_QuantizeLinear_Output|_DequantizeLinear_Output|_quantized|:\d+)+$")
"""What quantisers and converters put after a tensor's name."""


class Match(NamedTuple):
    """A deployed tensor and the original's; `axes` brings its values into the original's order.

    `axes` are those of `numpy.transpose`, over the axes that are longer than 1; `shape` is the
    original's.
    """

    deployed: str
    original: str
    axes: tuple[int, ...]
    shape: tuple[int, ...]

    def in_original(self, values: Values) -> Values:
        """Return a deployed tensor's values as the original's tensor has them."""
        turned: Values = np.squeeze(values).transpose(self.axes).reshape(self.shape)
        return turned


def _name_key(name: str) -> str:
    """Return a tensor's name without what quantisers and converters put to it."""
    return _ENDINGS.sub("", name.split(";", maxsplit=1)[0])


def matched(
    original: ModelGraph,
    deployed: ModelGraph,
    values: tuple[Mapping[str, Sequence[Values]], Mapping[str, Sequence[Values]]],
) -> dict[str, Match]:
    """Return the matches by the deployed tensors' names.

    `values` are both models' tensors on the same inputs, two or more. Tensors match whose names are
    the same, or whose values are: the power of the differences is at most half of the original's,
    and they rise and fall together from input to input (Pearson's correlation, 0.5 or more). Values
    that differ by a constant alone are another tensor's, before a bias is added. Both
    graphs are walked through side by side, in their order; of all ways to do so the one with the
    largest sum is taken.
    """
    first = [
        names
        for names in ([one for one in names if one in values[0]] for names in original.copies())
        if names
    ]
    second = [
        names
        for names in ([one for one in names if one in values[1]] for names in deployed.copies())
        if names
    ]
    ways = [[_way(names, others, values) for others in first] for names in second]
    best = np.zeros((len(second) + 1, len(first) + 1))
    for row, line in enumerate(ways, start=1):
        for column, way in enumerate(line, start=1):
            together = best[row - 1, column - 1] + way[0] if way else 0.0
            best[row, column] = max(best[row - 1, column], best[row, column - 1], together)
    found = {}
    row, column = len(second), len(first)
    while row and column:
        way = ways[row - 1][column - 1]
        if best[row, column] == best[row, column - 1]:
            column -= 1
        elif best[row, column] == best[row - 1, column] or way is None:
            row -= 1
        else:
            row, column = row - 1, column - 1
            other = first[column][-1]
            shape = np.shape(values[0][other][0])
            found.update({name: Match(name, other, way[1], shape) for name in second[row]})
    return found


def _way(
    names: Sequence[str],
    others: Sequence[str],
    values: tuple[Mapping[str, Sequence[Values]], Mapping[str, Sequence[Values]]],
) -> tuple[float, tuple[int, ...]] | None:
    """Return how well a deployed tensor's values fit the original's, and in what order of its axes.

    None where they don't.
    `names` and `others` are the tensor with its copies; the last one's values count.
    """
    given, references = values[1][names[-1]], values[0][others[-1]]
    sizes = [tuple(n for n in np.shape(some[0]) if n != 1) for some in (given, references)]
    if sorted(sizes[0]) != sorted(sizes[1]):
        return None
    same = any(_is_same(name, other) for name in names for other in others)
    size = int(np.prod(sizes[1], dtype=int))
    places = np.unravel_index(np.arange(0, size, max(1, size // _POSITIONS)), sizes[1] or (1,))
    wanted = _placed(references, places)
    ways = []
    for axes in permutations(range(len(sizes[0]))):
        if tuple(sizes[0][axis] for axis in axes) == sizes[1]:
            turned = [places[axes.index(axis)] for axis in range(len(axes))] or places
            ways.append((_likeness(_placed(given, turned), wanted), axes))
    score, axes = max(ways, key=lambda way: round(way[0], 6))
    if same:
        return _BONUS + max(score, 0.0), axes
    return (score, axes) if score >= _LEAST else None


def _is_same(name: str, other: str) -> bool:
    """Whether two names are the same, but for scopes before and what quantisers put behind."""
    one, two = _name_key(name), _name_key(other)
    return one == two or one.endswith("/" + two) or two.endswith("/" + one)


def _placed(values: Sequence[Values], places: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return some positions of each: [inputs, positions]."""
    flat = [np.squeeze(value) if value.size > 1 else value.reshape(1) for value in values]
    return np.array([one[tuple(places)] for one in flat], np.float64)


def _likeness(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the correlation of what changes from input to input, 0 where the values differ.

    Tensors that aren't finite, such as a logarithm of 0, are like none.
    """
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return 0.0
    offset = first.mean(axis=0) - second.mean(axis=0)
    one, other = first - first.mean(axis=0), second - second.mean(axis=0)
    power = float((second**2).sum())
    constant, noise = len(first) * float((offset**2).sum()), float(((one - other) ** 2).sum())
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    if constant + noise > _LEAST * power or not size:
        return 0.0
    correlation = float((one * other).sum() / size)
    before_bias = constant > _OFFSET * power and correlation > _SAME
    return 0.0 if before_bias else correlation
