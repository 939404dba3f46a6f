"""The blurs against the same sums done another way, in numpy."""

import numpy as np
import pytest

from edgeflare_mutators import (
    AverageBlur,
    GaussianBlur,
    MedianBlur,
    RangeError,
    Sample,
    SampleSpec,
)

BLURS = [AverageBlur(), GaussianBlur(), MedianBlur()]
WEIGHTS = {3: (1, 2, 1), 5: (1, 4, 6, 4, 1), 7: (8, 28, 56, 72, 56, 28, 8)}


def image(shape: tuple[int, int, int], seed: int = 0) -> Sample:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def windows(sample: Sample, kernel: int, border: str) -> np.ndarray:
    """Every pixel's kernel: [height, width, channels, kernel, kernel]."""
    before, after = kernel // 2, kernel - 1 - kernel // 2
    mode = "edge" if border == "edge" or min(sample.shape[:2]) == 1 else "reflect"
    padded = np.pad(sample, ((before, after), (before, after), (0, 0)), mode=mode)
    return np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(0, 1))


def average(sample: Sample, kernel: int) -> np.ndarray:
    return np.rint(windows(sample, kernel, "reflect").mean(axis=(-1, -2)))


def gaussian(sample: Sample, kernel: int) -> np.ndarray:
    weights = np.outer(WEIGHTS[kernel], WEIGHTS[kernel])
    sums = (windows(sample, kernel, "reflect").astype(int) * weights).sum(axis=(-1, -2))
    total = weights.sum()
    return (2 * sums + total) // (2 * total)


def median(sample: Sample, kernel: int) -> np.ndarray:
    return np.median(windows(sample, kernel, "edge"), axis=(-1, -2))


@pytest.mark.parametrize(
    ("operator", "reference", "kernels"),
    [
        (AverageBlur(), average, (1, 2, 3, 4, 5, 8, 16, 33)),
        (GaussianBlur(), gaussian, (3, 5, 7)),
        (MedianBlur(), median, (1, 3, 5, 7, 21)),
    ],
    ids=["average", "gaussian", "median"],
)
@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 31, 3), (3, 2, 3), (1, 1, 3)])
def test_blurs_are_exact(operator, reference, kernels, shape) -> None:
    for kernel in kernels:
        for sample in (image(shape), image(shape) // 128 * 255):
            blurred = operator.apply(sample, {"kernel": kernel})
            assert np.array_equal(blurred, reference(sample, kernel)), kernel


def test_default_draws_cover_their_kernels_and_never_draw_the_identity() -> None:
    rng = np.random.default_rng(0)
    spec = SampleSpec("image", (28, 28, 1))
    drawn = [{op.draw(rng, spec)["kernel"] for _ in range(200)} for op in BLURS]
    assert drawn == [{2, 3, 4, 5}, {3, 5, 7}, {3, 5, 7}]


@pytest.mark.parametrize("operator", [GaussianBlur, MedianBlur])
def test_an_even_kernel_is_refused_where_the_filter_has_no_centre(operator) -> None:
    with pytest.raises(RangeError, match="range must"):
        operator(kernel=(2, 5))
