"""Calibration data for int8 engines: prepared input tensors, one after the other."""

from typing import Any, List, Optional, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.errors import ModelError
from edgeflare_agent.runtimes.cuda import Cuda, DeviceBuffer


def read_calibration(path: str, shape: Tuple[int, ...], dtype: str) -> Array:
    """Return the tensors of a ``.npy`` file: [N, ...] with N input tensors of this shape and dtype.

    They stay on disk until they are used. Raises ModelError for a file that holds anything else.
    """
    try:
        tensors: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        found = "{} {}".format(tensors.dtype, list(tensors.shape))
    except (OSError, ValueError, AttributeError, EOFError) as error:
        raise ModelError(
            "the calibration file {} is no .npy file: {}".format(path, error)
        ) from error
    if tensors.shape[1:] != shape or tensors.dtype != dtype or not len(tensors):
        raise ModelError(
            "the calibration file {} holds {}, and the model needs {} [N, {}]: N prepared input "
            "tensors".format(path, found, dtype, ", ".join(map(str, shape)))
        )
    return tensors


def make_calibrator(library: Any, cuda: Cuda, tensors: Array) -> Any:
    """Return TensorRT's entropy calibrator over these tensors, each a batch of its own.

    Its `problem` is the error that ended it, for TensorRT tells only that calibration failed; its
    `free` gives the GPU's memory back.
    """
    base = library.IInt8EntropyCalibrator2

    class Calibrator(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            base.__init__(self)  # TensorRT crashes without it
            self.problem: Optional[Exception] = None
            self._buffer = DeviceBuffer(cuda)
            self._stream = cuda.new_stream()
            self._next = 0

        def get_batch_size(self) -> int:
            return int(tensors.shape[1]) if tensors.ndim > 1 else 1

        def get_batch(self, _names: List[str]) -> Optional[List[int]]:
            if self._next == len(tensors):
                return None
            try:
                tensor = np.ascontiguousarray(tensors[self._next])
                address = self._buffer.holding(tensor.nbytes)
                cuda.upload(address, tensor, self._stream)
                cuda.synchronize(self._stream)
            except Exception as error:  # noqa: BLE001  must not reach TensorRT's C++
                self.problem = error
                return None
            self._next += 1
            return [address]

        def read_calibration_cache(self) -> None:
            return None

        def write_calibration_cache(self, cache: Any) -> None:
            pass

        def free(self) -> None:
            self._buffer.free()
            cuda.destroy_stream(self._stream)

    return Calibrator()
