"""Natural corruptions by what falls between the scene and the lens: snow, and spatter on the lens.

Both are made procedurally, after those of ImageNet-C (Hendrycks and Dietterich, Benchmarking Neural
Network Robustness to Common Corruptions and Perturbations, ICLR 2019); `photo.Haze` is its fog. Its
frost lays photographs of ice over the image and has no counterpart here. Sums are exact, so the
bits don't depend on the CPU.
"""

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import SEED, Params, Range, Sample
from edgeflare_mutators.camera import line_weights, weighted_sums
from edgeflare_mutators.dflare import generator
from edgeflare_mutators.natural import Corruption, percent
from edgeflare_mutators.photo import to_levels

_FLAKES_A_SIDE = 96
_STREAK = 4
_MOST_FLAKES = 0.06
_WHITENING = 0.3
_MUD = (63, 42, 20)
_GREY_MUD = (45,)
_DROP = 1 / 12
_SOFTNESS = 1 / 16


class Snow(Corruption):
    """Lay falling snow over the image: white streaks, and a whitening of what lies behind them.

    `amount` is the share of the heaviest snow, where flakes start at 6 % of all places.
    Flakes and their common direction, within 45 degrees of the vertical, come from `seed`.

    Differences from ImageNet-C: flakes of one size; the whitening is the same everywhere.
    """

    name = "snow"
    limits = (Range("amount", 0.0, 1.0), SEED)
    moving = ("amount",)

    def __init__(self, amount: tuple[float, float] = (0.0, 1.0)) -> None:
        super().__init__(amount=amount)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        height, width, _ = sample.shape
        rng = generator(params)
        degrees = int(rng.integers(45, 135, endpoint=True))
        size = max(1, round(min(height, width) / _FLAKES_A_SIDE))
        places = rng.integers(0, 2**16, (-(-height // size), -(-width // size)))
        flakes = (places < params["amount"] * _MOST_FLAKES * 2**16).astype(np.uint8)
        flakes = flakes.repeat(size, axis=0).repeat(size, axis=1)[:height, :width]
        weights = line_weights(_STREAK * size, degrees)
        streaks = weighted_sums(flakes, weights) * _STREAK / weights.sum()
        whitened = sample + (255.0 - sample) * (params["amount"] * _WHITENING)
        return _covered(whitened, np.minimum(streaks, 1), (255,) * sample.shape[2])

    def _words(self, params: Params) -> str:
        return f"snow of {percent(params['amount'])}"


class Spatter(Corruption):
    """Cover about `amount` of the image with drops of mud, a twelfth of the shorter side wide.

    Where they lie comes from `seed`. A larger amount covers what a smaller one does.

    Differences from ImageNet-C: mud at every severity (there water at the first three), without
    the light at the edges of drops.
    """

    name = "spatter"
    limits = (Range("amount", 0.0, 1.0), SEED)
    moving = ("amount",)

    def __init__(self, amount: tuple[float, float] = (0.0, 0.35)) -> None:
        super().__init__(amount=amount)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        height, width, channels = sample.shape
        drops = _blobs(height, width, generator(params))
        ranked = np.sort(drops, axis=None)
        limit = ranked[round((1 - params["amount"]) * (ranked.size - 1))]
        soft = max((ranked[-1] - ranked[0]) * _SOFTNESS, 1)
        opacity = np.clip((drops - limit) / soft, 0, 1)
        return _covered(sample.astype(np.float64), opacity, _MUD if channels == 3 else _GREY_MUD)

    def _words(self, params: Params) -> str:
        return f"mud on {percent(params['amount'])} of the lens"


def _blobs(height: int, width: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return noise without details smaller than a drop: whole numbers, float64 [height, width]."""
    import cv2

    noise: NDArray[np.float64] = rng.integers(0, 256, (height, width)).astype(np.float64)
    reach = round(min(height, width) * _DROP / 2)
    box = (2 * reach + 1, 2 * reach + 1)
    for _ in range(2):
        noise = cv2.boxFilter(  # type: ignore[assignment]
            noise, cv2.CV_64F, box, normalize=False, borderType=cv2.BORDER_REFLECT_101
        )
    return noise


def _covered(
    image: NDArray[np.float64], opacity: NDArray[np.float64], colour: tuple[int, ...]
) -> Sample:
    """Return the image under a colour of this opacity, [height, width] from 0 to 1."""
    return to_levels(image + (np.array(colour) - image) * opacity[..., np.newaxis])
