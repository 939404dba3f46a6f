"""Models with several inputs: which one the samples become, and what the others are given."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.npz import read_npz
from edgeflare._internal.text import OTHER_INPUTS, counted, names_text, shape_text
from edgeflare.answers.interface import ChosenInput
from edgeflare.errors import UsageError
from edgeflare.models.image_input import image_layout
from edgeflare_agent import errors as agent_errors
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT, FixedInputs, GivenInputs
from edgeflare_agent.image_spec import TensorInfo

SEED_NAMES = "seeds"
"""The array of a file of fixed inputs that names the seed of each row."""
_MOST_BYTES = 128 << 20


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
    None: no file. It is an ``.npz`` with an array by input name. With an array ``seeds`` of names,
    an array with one more axis, the first, has a row for each of these seeds. They may have 128 MiB
    at most, packed and unpacked together. `whose` names the model in messages, such as "the
    deployed model". Raises UsageError where an input is missing or unknown, an array doesn't fit,
    or the file can't be read or has pickled objects.
    """
    fixed = {} if path is None else _arrays_in(path)
    if path is None and name is None and len(inputs) == 1:
        return ChosenInput(inputs[0], ONE_INPUT, {})
    for one, array in fixed.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise UsageError(f"{path}: the array {one} holds NaN: give numbers")
    known = {one.name: one for one in inputs}
    seeds: list[str] = []
    if path is not None and SEED_NAMES not in known:
        seeds = _seeds(fixed.pop(SEED_NAMES, None), path)
    names = (name,) if name in known else tuple(one.strip() for one in (name or "").split(","))
    axis = -1
    if len(names) > 1 and names[0] in known:
        layout = layout or image_layout(known[names[0]], whose)
        axis = -2 if layout == "HWC" and len(known[names[0]].shape) > 3 else -1
    given = GivenInputs(() if name is None else names, fixed, len(seeds), axis)
    free = [one for one in inputs if one.name not in fixed]
    if name is None and len(free) > 1 and all(map(_holds_tokens, free)):
        taken = names_text([f"{one.name} ({shape_text(one.shape)}, {one.dtype})" for one in free])
        raise UsageError(
            f"{whose} takes whole numbers, {taken}, and no picture or sound: {OTHER_INPUTS}"
        )
    try:
        found = FixedInputs.of(inputs, given)
    except agent_errors.RequestError as error:
        where = whose if path is None else f"{path}: {whose}"
        raise UsageError(f"{where}: {error}") from error
    has_rows = [one for one in known.values() if one.name in fixed and given.has_rows(one)]
    if seeds and not has_rows:
        raise UsageError(
            f"{path}: {SEED_NAMES} names {counted(len(seeds), 'seed')}, and no input has a row for "
            "each: give an array with one more axis, the first, of that length"
        )
    order = np.argsort(np.array(seeds))  # so that files in any order have the same rows
    sorted_rows = {tensor.name: fixed[tensor.name][order] for tensor in has_rows}
    rows = {seeds[place]: row for row, place in enumerate(order)}
    return ChosenInput(found.tensor, given._replace(fixed=fixed | sorted_rows), rows)


def _holds_tokens(tensor: TensorInfo) -> bool:
    """Whether an input is a list of whole numbers, as token ids and their masks are."""
    return tensor.dtype in ("int32", "int64", "bool") and len(tensor.shape) < 3


def _seeds(names: NDArray[Any] | None, path: Path) -> list[str]:
    """Return the names of the seeds in a file's order; none where it has none. Raises UsageError."""
    if names is None:
        return []
    if names.ndim != 1 or names.dtype.kind != "U" or not names.size:
        raise UsageError(
            f"{path}: {SEED_NAMES} must be a list of the seeds' names, one for each row"
        )
    seeds: list[str] = names.tolist()
    twice = next((one for one, count in Counter(seeds).items() if count > 1), None)
    if twice is not None:
        raise UsageError(
            f"{path}: {SEED_NAMES} names {twice} more than once: give one row for each"
        )
    return seeds


def _arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    arrays = read_npz(path, "fixed inputs", "INPUT=...", _MOST_BYTES)
    if not arrays:
        raise UsageError(f"{path} holds no array: write one by input name with numpy.savez")
    return arrays
