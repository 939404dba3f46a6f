"""Models with several inputs: which one the samples become, and what the others are given."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare.models.image_input import image_layout
from edgeflare.models.npz import read_npz
from edgeflare_agent import errors as agent_errors
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT, FixedInputs, GivenInputs
from edgeflare_agent.image_spec import TensorInfo

SEED_NAMES = "seeds"
"""The array of a file of fixed inputs that names the seed of each row."""
_MOST_BYTES = 64 << 20


class ChosenInput(NamedTuple):
    """The input of a model that samples become, and what the others are given.

    `rows`: where inputs have a row for each seed, that of each by the seed's name; else empty.
    """

    tensor: TensorInfo
    given: GivenInputs
    rows: Mapping[str, int]


def choose_input(
    inputs: Sequence[TensorInfo],
    name: str | None,
    path: Path | None,
    whose: str,
    layout: str | None = None,
) -> ChosenInput:
    """Return which of a model's inputs the samples become.

    `name`: the input as stated, or several with commas, whose `layout` tells which axis is the
    width where their shape does not; None: the only one for which the file `path` has no array;
    None: no file. It is an ``.npz`` with an array by input name. With an array ``seeds`` of names, an array
    with one more axis, the first, has a row for each of these seeds. They may have 64 MiB at most,
    packed and unpacked together. `whose` names the model in messages, such as "the deployed model".
    Raises UsageError where an input is missing or unknown, an array doesn't fit, or the file can't
    be read or has pickled objects.
    """
    fixed = {} if path is None else _arrays_in(path)
    if path is None and name is None and len(inputs) == 1:
        return ChosenInput(inputs[0], ONE_INPUT, {})
    rows: dict[str, int] = {}
    if path is not None and not any(one.name == SEED_NAMES for one in inputs):
        rows = _rows(fixed.pop(SEED_NAMES, None), path)
    known = {one.name: one for one in inputs}
    names = () if name is None else (name,) if name in known else tuple(name.split(","))
    axis = -1
    if len(names) > 1 and names[0] in known:
        layout = layout or image_layout(known[names[0]], whose)
        axis = -2 if layout == "HWC" and len(known[names[0]].shape) > 3 else -1
    given = GivenInputs(names, fixed, len(rows), axis)
    try:
        found = FixedInputs.of(inputs, given)
    except agent_errors.RequestError as error:
        where = whose if path is None else f"{path}: {whose}"
        raise UsageError(f"{where}: {error}") from error
    if rows and all(len(arrays) == 1 for arrays in found.arrays.values()) and len(rows) > 1:
        raise UsageError(
            f"{path}: {SEED_NAMES} names {len(rows)} seeds, and no input has a row for each of them: "
            "give an array with one more axis, the first, of that length"
        )
    return ChosenInput(found.tensor, given, rows)


def _rows(names: NDArray[Any] | None, path: Path) -> dict[str, int]:
    """Return the row of each seed that a file names. Raises UsageError."""
    if names is None:
        return {}
    if names.ndim != 1 or names.dtype.kind != "U" or not names.size:
        raise UsageError(
            f"{path}: {SEED_NAMES} must be a list of the seeds' names, one for each row"
        )
    rows = {str(one): row for row, one in enumerate(names)}
    if len(rows) != names.size:
        twice = next(str(one) for row, one in enumerate(names) if rows[str(one)] != row)
        raise UsageError(
            f"{path}: {SEED_NAMES} names {twice} more than once: give one row for each"
        )
    return rows


def _arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    advice = "write it with numpy.savez, an array by input name"
    arrays = read_npz(path, "fixed inputs", advice, _MOST_BYTES)
    if not arrays:
        raise UsageError(f"{path} holds no array: write one by input name with numpy.savez")
    return arrays
