"""The type of an array, for checkers that want its parameters and interpreters that lack them."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    DType = np.dtype[Any]
else:
    Array = np.ndarray
    DType = np.dtype
