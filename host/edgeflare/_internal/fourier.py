"""Fourier transforms with the same bits on every processor, which numpy's have not."""

from functools import lru_cache

import numpy as np

from edgeflare._internal.exact import Floats, cos_of_turns, sin_of_turns


def transform(real: Floats, imaginary: Floats) -> tuple[Floats, Floats]:
    """Return the discrete Fourier transform along the last axis: its real and imaginary parts.

    Both float64 [..., n] with n a power of two. Stockham's method, radix 2. The inverse is n-th of
    this with real and imaginary parts exchanged, before and after.
    """
    size = real.shape[-1]
    lead = real.shape[:-1]
    groups, width = size // 2, 1
    while groups:
        halves = (*lead, 2, groups, width)
        re_halves, im_halves = real.reshape(halves), imaginary.reshape(halves)
        re = re_halves[..., 0, :, :] - re_halves[..., 1, :, :]
        im = im_halves[..., 0, :, :] - im_halves[..., 1, :, :]
        cosine, sine = _twiddles(groups)
        new_re, new_im = (np.empty((*lead, groups, 2, width)) for _ in range(2))
        new_re[..., 0, :] = re_halves[..., 0, :, :] + re_halves[..., 1, :, :]
        new_im[..., 0, :] = im_halves[..., 0, :, :] + im_halves[..., 1, :, :]
        new_re[..., 1, :] = re * cosine + im * sine
        new_im[..., 1, :] = im * cosine - re * sine
        real, imaginary = new_re.reshape(*lead, size), new_im.reshape(*lead, size)
        groups, width = groups // 2, 2 * width
    return real, imaginary


def filtered(values: Floats, gains: Floats) -> Floats:
    """Return copies of a signal, each with its frequencies weighted: float64 [m, samples].

    `gains`: float64 [m, n / 2 + 1], for frequencies evenly spaced from 0 to half the rate;
    n is `transform_size` of the signal, which is padded with zeros. Two real copies share a
    transform: as its real and its imaginary part.
    """
    size = 2 * (gains.shape[1] - 1)
    padded = np.zeros(size)
    padded[: len(values)] = values
    real, imaginary = transform(padded, np.zeros(size))
    both = np.concatenate((gains, gains[:, -2:0:-1]), axis=1)
    one, other = both[0::2], np.zeros((-(-len(gains) // 2), size))
    other[: len(gains) // 2] = both[1::2]
    spectrum = one * real - other * imaginary, one * imaginary + other * real
    second, first = transform(spectrum[1], spectrum[0])
    found = np.empty((len(gains), len(values)))
    found[0::2] = first[:, : len(values)]
    found[1::2] = second[: len(gains) // 2, : len(values)]
    return np.asarray(found / size)


def transform_size(length: int) -> int:
    """Return the least power of two that is at least `length`, and at least 2."""
    return 1 << max(1, (length - 1).bit_length())


@lru_cache(maxsize=64)
def _twiddles(groups: int) -> tuple[Floats, Floats]:
    """Return cos and sin of the multiples of half a turn's `groups`-th part, float64 [groups, 1]."""
    parts = np.arange(groups)[:, None]
    whole = 2 * groups
    return cos_of_turns(2 * parts, 2 * whole), sin_of_turns(2 * parts, 2 * whole)
