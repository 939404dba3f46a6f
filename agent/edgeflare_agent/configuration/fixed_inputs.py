"""Which of a model's inputs the samples become, and the arrays that the others are given.

Host and device run this same code.
"""

from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from edgeflare_agent.arrays import Array, DType
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import InputSpec, TensorInfo
from edgeflare_agent.preprocess import quantize
from edgeflare_agent.runtimes.base import names_text, shape_text


class GivenInputs(NamedTuple):
    """What a model with several inputs is given.

    `names`: the inputs that samples become; none: the only one that `fixed` lacks. Of several, which
    take images of one shape, a sample has the pictures beside each other, in the order of the names,
    and `axis` is that of their width, counted from the last (-1). `fixed` has an array for each other
    input, by name, in real units or as the model stores it. Without `rows` it is of the input's
    shape. Otherwise there are so many seeds with inputs of their own, and an array with one more
    axis, the first, of this length has a row for each of them.
    """

    names: Tuple[str, ...] = ()
    fixed: Mapping[str, Array] = {}
    rows: int = 0
    axis: int = -1

    @property
    def parts(self) -> int:
        """The number of inputs that samples become."""
        return max(1, len(self.names))

    def has_rows(self, info: TensorInfo) -> bool:
        """Whether the array of an input has a row for each seed."""
        return self.rows > 0 and len(self.fixed[info.name].shape) == len(info.shape) + 1


ONE_INPUT = GivenInputs()
"""What a model with a single input is given: the sample."""


class FixedInputs(NamedTuple):
    """The inputs of a model of which one is the sample, or some are parts of it.

    `searched`: the places of the inputs that samples become, `tensor` them as one. `arrays`: by the
    place of each other input, what it is given, with one more axis, the first: of length 1 where it
    is the same in every inference, else with a row for each seed.
    """

    searched: Sequence[int]
    tensor: TensorInfo
    axis: int
    arrays: Mapping[int, Array]

    @classmethod
    def of(cls, inputs: Sequence[TensorInfo], given: GivenInputs) -> "FixedInputs":
        """Resolve a model's inputs: which ones samples become, and the stored arrays of the others.

        Raises RequestError where an input is missing or unknown, an array doesn't fit its input, or
        inputs that samples become are not alike.
        """
        searched = searched_inputs(inputs, given.names, given.fixed)
        tensor = joined([inputs[place] for place in searched], given.axis)
        arrays: Dict[int, Array] = {}
        for place, info in enumerate(inputs):
            if place in searched:
                continue
            array, wanted = given.fixed[info.name], info
            if tensor.shape[:1] == info.shape[:1] == (None,):  # both batches, of one sample
                wanted = info._replace(shape=(1, *info.shape[1:]))
            extra = len(array.shape) == len(info.shape) + 1
            if extra and len(array) != given.rows:
                raise RequestError(
                    "rows of the input {}: {}, seeds that are named: {}; name the seed of each row "
                    "in an array `seeds`".format(info.name, len(array), given.rows)
                )
            if given.has_rows(info):
                wanted = wanted._replace(shape=(given.rows, *wanted.shape))
            stored = as_stored(array, wanted)
            arrays[place] = stored if given.has_rows(info) else stored[np.newaxis]
        return cls(searched, tensor, given.axis, arrays)

    def check_spec(self, spec: Spec) -> None:
        """Raise RequestError where a sample of this spec can't be cut into the inputs' pictures."""
        if len(self.searched) > 1 and (
            not isinstance(spec, InputSpec) or spec.resize or spec.orientation != "upright"
        ):
            raise RequestError(
                "inputs that are searched together take pictures beside each other, which are "
                "neither resized nor turned: give pictures of the model's size"
            )

    def tensors(self, tensor: Array, row: int = 0) -> List[Array]:
        """Return an array for each input, in the model's order; `tensor` is the sample's.

        `row`: that of the sample's seed, for inputs with a row for each seed.
        """
        tensors = [tensor] * (len(self.searched) + len(self.arrays))
        if len(self.searched) > 1:
            parts = np.split(tensor, len(self.searched), self.axis)
            for place, part in zip(self.searched, parts):
                tensors[place] = np.ascontiguousarray(part)
        for place, rows in self.arrays.items():
            tensors[place] = rows[row if len(rows) > 1 else 0, ...]  # an array without axes, too
        return tensors


def joined(inputs: Sequence[TensorInfo], axis: int) -> TensorInfo:
    """Return inputs beside each other along an axis, counted from the last, as one.

    Raises RequestError where they are not of one shape and type.
    """
    first = inputs[0]
    if len(inputs) == 1:
        return first
    names = ",".join(info.name for info in inputs)
    if any(info._replace(name=first.name) != first for info in inputs):
        raise RequestError(
            "inputs that are searched together must be of one shape and type, and {}: search one, "
            "and give the others by --fixed-inputs".format(
                " and ".join("{} is {}".format(info.name, _words(info)) for info in inputs)
            )
        )
    if len(first.shape) < 3 or None in first.shape[1:]:
        raise RequestError(
            "inputs that are searched together must take images of one size, and {} is {}: export the "
            "model with fixed shapes".format(first.name, _words(first))
        )
    place = len(first.shape) + axis
    size = (first.shape[place] or 1) * len(inputs)
    shape = tuple(size if at == place else known for at, known in enumerate(first.shape))
    return first._replace(name=names, shape=shape)


def configuration_of(
    spec: Spec,
    output: Any,
    decoder: Optional[Mapping[str, Any]] = None,
    keep: Optional[Mapping[str, Any]] = None,
    given: GivenInputs = ONE_INPUT,
) -> Tuple[Dict[str, Any], List[Array]]:
    """Return the header of a CONFIGURE that states these, and the arrays of the fixed inputs.

    `output`: a name, None, or a sequence of names.
    """
    several = not (output is None or isinstance(output, str))
    header = {"input": spec.to_json(), "output": list(output) if several else output}
    stated = (("decoder", decoder), ("keep", keep))
    header.update({key: dict(value) for key, value in stated if value is not None})
    if given.names:
        header["searched"] = list(given.names)
    if len(given.names) > 1:
        header["axis"] = given.axis
    if given.fixed:
        header["fixed"] = list(given.fixed)
    if given.rows:
        header["rows"] = given.rows
    return header, [np.asarray(one) for one in given.fixed.values()]


def searched_inputs(
    inputs: Sequence[TensorInfo], stated: Sequence[str], fixed: Collection[str]
) -> List[int]:
    """Return the places of the inputs that samples become; `fixed` are the names of the others.

    `stated` are their names; none: the only input that is not fixed. Raises RequestError with what
    is missing, and how it is given.
    """
    names = [info.name for info in inputs]
    for one in (*stated, *fixed):
        if one not in names:
            raise RequestError(
                "the model has no input {!r}; it has {}".format(one, names_text(names))
            )
    if len(set(stated)) != len(stated):
        raise RequestError("an input is named twice: {}".format(", ".join(stated)))
    for one in stated:
        if one in fixed:
            raise RequestError(
                "input {!r} is one that samples become, so it can't be fixed: take it out of the "
                "fixed inputs, or name another one (--input-name)".format(one)
            )
    free = [place for place, one in enumerate(names) if one not in fixed]
    if not free:
        raise RequestError(
            "all inputs of the model ({}) are fixed: leave out the one that samples become".format(
                names_text(names)
            )
        )
    if not stated and len(free) == 1:
        return free
    searched = [names.index(one) for one in stated]
    missing = [
        "{} ({})".format(names[place], _words(inputs[place]))
        for place in free
        if place not in searched
    ]
    if not missing:
        return searched
    if not stated:
        raise RequestError(
            "the model has {} inputs and samples become one of them: of {} all but one need a "
            "fixed array, --fixed-inputs FILE.npz with an array by input name; name several with "
            "--input-name to search them together, as pictures beside each other".format(
                len(names), names_text(missing)
            )
        )
    raise RequestError(
        "samples become the model's input {}, and nothing is given for {}: give --fixed-inputs "
        "FILE.npz with an array by input name".format(" and ".join(stated), names_text(missing))
    )


def as_stored(array: Array, info: TensorInfo) -> Array:
    """Return an array as the model's input takes it: of the input's dtype, contiguous, a copy.

    `array` is of the input's shape (an open axis has any size above 0). One of the input's own
    dtype is taken as it is. Any other is in real units: for a quantised input it is quantised by
    the input's parameters (rounded half to even, clipped), for an input of floats cast, and for one
    of integers it must be of integers or bool, in that range: floats are refused, whole ones too.
    Raises RequestError for what is neither.
    """
    fits = len(array.shape) == len(info.shape) and all(
        size > 0 and known in (None, size) for known, size in zip(info.shape, array.shape)
    )
    if not fits:
        raise RequestError(
            "the fixed input {} has shape {}, and {} is needed".format(
                info.name, shape_text(array.shape), shape_text(info.shape)
            )
        )
    if array.dtype.name == info.dtype:
        return np.array(array, array.dtype.newbyteorder("="), order="C")
    stored = _cast(array, info)
    if stored is None:
        raise RequestError(
            "the fixed input {} is {}, and the model's is {}: give an array of that type{}".format(
                info.name,
                array.dtype.name,
                info.dtype,
                ", whose range its values keep to" if array.dtype.kind in "iuf" else "",
            )
        )
    return np.array(stored, order="C")


def _cast(array: Array, info: TensorInfo) -> Optional[Array]:
    """Return the array in an input's dtype; None where it can't be said without a loss."""
    wanted = _dtype(info.dtype)
    if wanted is None or array.dtype.kind not in "biuf" or wanted.kind not in "iuf":
        return None
    if wanted.kind == "f":
        with np.errstate(over="ignore"):
            cast = array.astype(wanted)
        overflows = np.isfinite(array) & ~np.isfinite(cast)
        return None if overflows.any() else cast
    if info.quantization is not None:
        real = array.astype(np.float32)
        return quantize(real, info.quantization, wanted) if np.isfinite(real).all() else None
    if array.dtype.kind == "f":
        return None
    ends = np.iinfo(wanted)
    least, largest = int(array.min()), int(array.max())
    return array.astype(wanted) if ends.min <= least and largest <= ends.max else None


def _dtype(name: str) -> Optional[DType]:
    try:
        return np.dtype(name)
    except TypeError:  # a runtime's own, such as strings
        return None


def _words(info: TensorInfo) -> str:
    words = "{}, {}".format(shape_text(info.shape) or "one value", info.dtype)
    if info.quantization is None:
        return words
    return "{} of scale {:g} and zero point {}".format(words, *info.quantization)
