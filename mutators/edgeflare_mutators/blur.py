"""The operators that blur (DFLARE, table 3, "Blurring Image"), on square kernels of `kernel` pixels.

OpenCV does the work in integers, so that the vector extensions of a CPU don't change the bits. Kernels may be
larger than the image. Borders: the average and the Gaussian filter mirror the image about its outermost
pixel (OpenCV's BORDER_REFLECT_101, its default); the median filter repeats that pixel, the only
border OpenCV has for it.

Differences: the paper draws the size of the average filter from 1 to 5 (section 4.4); the authors'
code draws the other two from 1, 3, 5, 7. A kernel of 1 changes nothing and would spend a query on an
unchanged input: the default ranges begin one kernel later. kernel=(1, 5) and (1, 7) restore theirs.
"""

from typing import Any

import numpy as np

from edgeflare_mutators.base import Operator, Params
from edgeflare_mutators.ranges import Range
from edgeflare_mutators.sample import Sample


class AverageBlur(Operator):
    """Replace each value by the mean of the kernel around it, rounded half to even.

    The pixel at row and column kernel // 2 of the kernel is the one replaced.

    Differences: the sums are OpenCV's, the division is not: for kernels of 2, 4, 8 and 16 OpenCV's
    own is up to a level off.
    """

    name = "average-blur"
    limits = (Range("kernel", 1, 255, "int"),)

    def __init__(self, kernel: tuple[int, int] = (2, 5)) -> None:
        super().__init__(kernel=kernel)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        kernel = params["kernel"]
        sums: Any = cv2.boxFilter(
            sample, cv2.CV_32S, (kernel, kernel), normalize=False, borderType=cv2.BORDER_REFLECT_101
        )
        levels: Sample = np.rint(sums / kernel**2).astype(np.uint8)
        return levels.reshape(sample.shape)


class GaussianBlur(Operator):
    """Blur with a Gaussian whose standard deviation follows from the kernel.

    It is 0.3 * ((kernel - 1) / 2 - 1) + 0.8 pixels; up to 7 OpenCV has fixed weights.
    Halves are rounded up, by OpenCV.
    """

    name = "gaussian-blur"
    limits = (Range("kernel", 1, 255, "odd"),)

    def __init__(self, kernel: tuple[int, int] = (3, 7)) -> None:
        super().__init__(kernel=kernel)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        kernel = params["kernel"]
        blurred: Any = cv2.GaussianBlur(
            sample, (kernel, kernel), 0, borderType=cv2.BORDER_REFLECT_101
        )
        return np.reshape(blurred, sample.shape)


class MedianBlur(Operator):
    """Replace each value by the median of the kernel around it, channel by channel."""

    name = "median-blur"
    limits = (Range("kernel", 1, 255, "odd"),)

    def __init__(self, kernel: tuple[int, int] = (3, 7)) -> None:
        super().__init__(kernel=kernel)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        return np.reshape(cv2.medianBlur(sample, params["kernel"]), sample.shape)
