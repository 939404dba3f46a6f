"""The suite's faults: kinds, sizes and draws, fixed before any threshold was chosen.

Changing a kind's arithmetic, a strength or `SEED` makes another suite: figures of one can't be
compared with those of another.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from edgeflare.errors import UsageError
from edgeflare_bench.faults.activation_faults import ACTIVATION_FAULTS
from edgeflare_bench.faults.graph_edit import GraphEdit, Parameters
from edgeflare_bench.faults.input_faults import INPUT_FAULTS
from edgeflare_bench.faults.originals import Original

KINDS = {**ACTIVATION_FAULTS, **INPUT_FAULTS}
"""Kinds by name; each changes a graph in place by its parameters."""

Size: TypeAlias = Literal["large", "medium", "mild"]

SEED = 20_261_123
DRAWS = 6
"""Draws of each kind and size; every other one is reserved."""
STRENGTHS: dict[Size, tuple[float, ...]] = {
    "large": (1.0,),
    "medium": (0.5,),
    "mild": (0.0625, 0.125, 0.25),
}
"""Strengths of a size. Of several, the fault has the first at which it has a witness."""


def faulty_model(original: Original, kind: str, parameters: Parameters) -> Any:
    """Return a copy of the original's ONNX model with a fault planted; nothing else differs.

    Raises UsageError for an unknown kind, Inapplicable where the model has nothing that it could
    change (no padding, no recurrent layer, no colours).
    """
    if kind not in KINDS:
        raise UsageError(f"there is no kind of fault {kind!r}; there are {', '.join(KINDS)}")
    edit = GraphEdit(original.model)
    KINDS[kind](original, edit, parameters)
    return edit.finish()


@dataclass(frozen=True)
class Draw:
    """One fault of the suite: `index` counts the draws of a kind and size from 0.

    `parameters` are one for each strength of the size, in order; only the strength differs.
    """

    kind: str
    size: Size
    index: int
    parameters: tuple[Parameters, ...]


def draws() -> Iterator[Draw]:
    """Yield the suite's faults, the same whatever the original."""
    for number, kind in enumerate(KINDS):
        for place, (size, strengths) in enumerate(STRENGTHS.items()):
            for index in range(DRAWS):
                rng = np.random.default_rng([SEED, number, place, index])
                where = [float(one) for one in rng.random(3)]
                yield Draw(kind, size, index, tuple(Parameters(one, *where) for one in strengths))


def is_reserved(draw: Draw) -> bool:
    """Whether a draw is looked at only for the final table: every odd one is."""
    return draw.index % 2 == 1
