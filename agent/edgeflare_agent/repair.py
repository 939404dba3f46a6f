"""What is made of a classifier's answer before it counts, deployed beside the model.

Host and device run this same code.
"""

import io
import json
import os
import stat
import zipfile
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import RequestError
from edgeflare_agent.front_ends.elementary import exp
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

KINDS = ("probabilities", "logits")
_ABOUT = "about"
_MOST_BYTES = 16 << 20
_LARGEST = 1e9
"""What no trained weight comes near to; far larger ones make answers infinite."""


class Repair(NamedTuple):
    """A post-processing stage of a classifier with `size` classes.

    `kind`: what the model's output holds; logits go through a softmax first. Answers whose margin
    (top-1 minus top-2 probability) is below `below`, all where that is None, are replaced: by what
    `layers` make of them, or without any by the same probability for each class, so that there is
    no top-1 class (the model abstains). What the layers make counts only where it gives its class
    a probability more than `sure` above that of the model's own class; None: always.

    The first layer is given (probabilities - `mean`) / `std`, float64 [size]. `layers` are (weights float64
    [in, out], bias float64 [out]) with a ReLU between them and a softmax at the end; `classes`,
    int64 [out of the last], are the classes that its outputs stand for.
    """

    size: int
    kind: str
    below: Optional[float] = None
    sure: Optional[float] = None
    mean: Array = np.zeros(0)
    std: Array = np.ones(0)
    classes: Array = np.zeros(0, np.int64)
    layers: Tuple[Tuple[Array, Array], ...] = ()

    @property
    def about(self) -> Dict[str, Any]:
        """What isn't an array, as a JSON object."""
        names = ("size", "kind", "below", "sure")
        return {name: getattr(self, name) for name in names}

    @property
    def arrays(self) -> List[Array]:
        """The arrays in the order in which they are sent; none where the model abstains."""
        if not self.layers:
            return []
        return [self.mean, self.std, self.classes, *(one for layer in self.layers for one in layer)]

    @classmethod
    def from_parts(cls, about: Any, arrays: Sequence[Array]) -> "Repair":
        """Return what `about` and `arrays` describe, as the properties of these names give them.

        Raises RequestError for anything else.
        """
        try:
            below, sure = about["below"], about["sure"]
            repair = cls(
                int(about["size"]),
                str(about["kind"]),
                None if below is None else float(below),
                None if sure is None else float(sure),
            )
            if arrays:
                mean, std, classes, *rest = arrays
                layers = tuple((rest.pop(0), rest.pop(0)) for _ in range((len(rest) + 1) // 2))
                repair = repair._replace(mean=mean, std=std, classes=classes, layers=layers)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise RequestError("not a repair: its parts aren't those of one") from error
        repair.check()
        return repair

    def check(self) -> None:
        """Raise RequestError unless the repair makes sense in itself."""
        wrong = _problem(self)
        if wrong:
            raise RequestError("repair: " + wrong)

    def check_fits(self, tensor: TensorInfo) -> None:
        """Raise RequestError for an output that has another number of values."""
        known = [size for size in tensor.shape if size not in (None, 1)]
        if known != [self.size]:
            raise RequestError(
                "the repair is for {} classes, and output {!r} has the shape {}".format(
                    self.size, tensor.name, list(tensor.shape)
                )
            )

    def announced(self, name: str) -> TensorInfo:
        """Return the output of this name once it is repaired."""
        return TensorInfo(name, (1, self.size), "float64")

    def apply(self, raw: Array, quantization: Optional[Tuple[float, int]]) -> Array:
        """Return the repaired probabilities, float64 [size], for one raw output of the model.

        Answers with NaN or infinity give NaN throughout.
        """
        scores = dequantize(raw, quantization).reshape(-1)
        if not np.isfinite(scores).all():
            return np.full(self.size, np.nan)
        return self.of_scores(_softmax(scores) if self.kind == "logits" else scores)

    def of_scores(self, scores: Array) -> Array:
        """Return the repaired probabilities for finite ones, both float64 [size]."""
        if self.below is not None:
            second, first = np.partition(scores, -2)[-2:]
            if first - second >= self.below:
                return scores
        if not self.layers:
            return np.full(self.size, 1.0 / self.size)
        made = self.made_of(scores)
        if self.sure is None or made.max() - made[scores.argmax()] > self.sure:
            return made
        return scores

    def made_of(self, scores: Array) -> Array:
        """Return what the layers make of probabilities, float64 [..., size]."""
        values = np.asarray((scores - self.mean) / self.std)
        for place, (weights, bias) in enumerate(self.layers):
            values = np.matmul(values if place == 0 else np.maximum(values, 0.0), weights) + bias
        found = np.zeros((*values.shape[:-1], self.size))
        found[..., self.classes] = _softmax(values)
        return found


def write_repair(repair: Repair, file: Any) -> None:
    """Write a repair to a file, an ``.npz``."""
    about = np.frombuffer(json.dumps(repair.about).encode(), np.uint8)
    parts: Dict[str, Any] = {str(place): one for place, one in enumerate(repair.arrays)}
    parts[_ABOUT] = about
    np.savez(file, **parts)


def read_repair(file: Any) -> Repair:
    """Return the repair in an ``.npz`` file, of 16 MiB at most, packed and unpacked together.

    Raises RequestError, and OSError where it can't be read.
    """
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise RequestError("it is no regular file")
    with open(file, "rb") as opened:
        content = opened.read(_MOST_BYTES + 1)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = len(content) + sum(one.file_size for one in archive.infolist())
        about, arrays = None, []
        if size <= _MOST_BYTES:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                about = json.loads(stored[_ABOUT].tobytes())
                arrays = [stored[str(place)] for place in range(len(stored.files) - 1)]
    except Exception as error:
        raise RequestError("it is damaged, or another kind of file") from error
    if size > _MOST_BYTES:
        raise RequestError("it holds more than 16 MiB")
    return Repair.from_parts(about, arrays)


def _problem(repair: Repair) -> str:
    """Return what is wrong with a repair, "" for nothing."""
    if repair.size < 2:
        return "there are two classes at least"
    if repair.kind not in KINDS:
        return "kind must be one of " + ", ".join(KINDS)
    for share in (repair.below, repair.sure):
        if share is not None and not 0 <= share <= 1:
            return "a margin lies in 0 to 1, not at {}".format(share)
    if not repair.layers:
        return "" if repair.below is not None else "it has neither layers nor a margin"
    floats = [repair.mean, repair.std, *(one for layer in repair.layers for one in layer)]
    if not all(one.dtype == np.float64 and (np.abs(one) <= _LARGEST).all() for one in floats):
        return "its numbers must be float64, and of 1e9 at most"
    width = repair.size
    if (
        repair.mean.shape != (width,)
        or repair.std.shape != (width,)
        or (np.abs(repair.std) < 1 / _LARGEST).any()
    ):
        return "mean and std need a number for each class, of std 1e-9 at least"
    for weights, bias in repair.layers:
        if weights.ndim != 2 or weights.shape[0] != width or bias.shape != weights.shape[1:]:
            return "its layers don't follow one another"
        width = weights.shape[1]
    names = repair.classes
    fits = names.dtype == np.int64 and names.shape == (width,) and len(np.unique(names)) == width
    if not fits or width < 1 or names.min() < 0 or names.max() >= repair.size:
        return "classes need a class for each output of its last layer"
    return ""


def _softmax(values: Array) -> Array:
    """Return exp(x) / sum(exp(x)) along the last axis."""
    powers = exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
