"""Models with several inputs: which one the samples become, and what the others are given."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from edgeflare.errors import UsageError
from edgeflare.models.npz import read_npz
from edgeflare_agent import errors as agent_errors
from edgeflare_agent.configuration.fixed_inputs import FixedInputs
from edgeflare_agent.image_spec import TensorInfo

_MOST_BYTES = 64 << 20


class ChosenInput(NamedTuple):
    """The input of a model that samples become, and the arrays of the others.

    `name` and `fixed` are what `configure` of sessions and models takes: None and nothing for a
    model with one input. `fixed` has arrays by input name, in real units or as they are stored.
    """

    tensor: TensorInfo
    name: str | None
    fixed: Mapping[str, NDArray[Any]]


def choose_input(
    inputs: Sequence[TensorInfo], name: str | None, path: Path | None, whose: str
) -> ChosenInput:
    """Return which of a model's inputs the samples become.

    `name`: the input as stated, None: the only one for which the file `path`, an ``.npz`` with an
    array by input name, has no array; None: no file. Its arrays may have 64 MiB at most, packed and
    unpacked together. `whose` names the model in messages, such as "the deployed model". Raises
    UsageError where an input is missing or unknown, an array doesn't fit, or the file can't be read
    or has pickled objects.
    """
    fixed = {} if path is None else _arrays_in(path)
    if path is None and name is None and len(inputs) == 1:
        return ChosenInput(inputs[0], None, {})
    try:
        found = FixedInputs.of(inputs, name, fixed)
    except agent_errors.RequestError as error:
        where = whose if path is None else f"{path}: {whose}"
        raise UsageError(f"{where}: {error}") from error
    return ChosenInput(inputs[found.searched], name, fixed)


def _arrays_in(path: Path) -> Mapping[str, NDArray[Any]]:
    advice = "write it with numpy.savez, an array by input name"
    arrays = read_npz(path, "fixed inputs", advice, _MOST_BYTES)
    if not arrays:
        raise UsageError(f"{path} holds no array: write one by input name with numpy.savez")
    return arrays
