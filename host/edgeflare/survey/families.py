"""Families of inputs far from a seed: what a survey asks both models about."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from edgeflare.errors import UsageError
from edgeflare.types import Sample

SEVERITIES = (1, 2, 3, 4, 5)
"""How far an input is from its seed: 1 the nearest, 5 the farthest, as ImageNet-C has them."""


class Drawn(NamedTuple):
    """How one input far from its seed is made; `params` is JSON and enough to make it again."""

    family: str
    severity: int
    params: dict[str, Any]


class Family(Protocol):
    """One way to make inputs that are far from a seed.

    `draw` chooses the parameters at random for a severity of `SEVERITIES`; `apply` is a function of
    its arguments alone and returns a sample of the seed's shape and dtype (of audio: any length).
    `partners` are other inputs, a fixed sequence which the parameters name by index. `words` says
    what the parameters do, such as "gain 0.42, offset -31".
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def draw(self, rng: np.random.Generator, seed: Sample, severity: int) -> dict[str, Any]: ...  # noqa: D102

    def apply(  # noqa: D102
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample]
    ) -> Sample: ...

    def words(self, params: Mapping[str, Any]) -> str: ...  # noqa: D102


class _Gain:
    """Pixels or audio multiplied by a gain; of pixels an offset is added."""

    name = "gain"

    def draw(self, rng: np.random.Generator, seed: Sample, severity: int) -> dict[str, Any]:
        step = severity / 5
        gain = 1 + step * float(rng.uniform(-0.9, 1.5))
        return {"gain": gain, "offset": step * float(rng.uniform(-128, 128))}

    def apply(self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample]) -> Sample:
        del partners
        if seed.dtype == np.float32:
            return np.clip(seed * params["gain"], -1, 1).astype(np.float32)
        changed = seed.astype(np.float64) * params["gain"] + params["offset"]
        return np.clip(np.rint(changed), 0, 255).astype(np.uint8)

    def words(self, params: Mapping[str, Any]) -> str:
        return f"gain {params['gain']:.2f}, offset {params['offset']:+.0f}"


class _Noise:
    """Uniform noise added to each pixel or audio sample."""

    name = "noise"

    def draw(self, rng: np.random.Generator, seed: Sample, severity: int) -> dict[str, Any]:
        del seed
        return {"level": severity / 5 * 0.4, "seed": int(rng.integers(1 << 32))}

    def apply(self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample]) -> Sample:
        del partners
        noise = np.random.default_rng(params["seed"]).uniform(-1, 1, seed.shape) * params["level"]
        if seed.dtype == np.float32:
            return np.clip(seed + noise, -1, 1).astype(np.float32)
        return np.clip(np.rint(seed + 255 * noise), 0, 255).astype(np.uint8)

    def words(self, params: Mapping[str, Any]) -> str:
        return f"uniform noise of {255 * params['level']:.0f} of 255"


def families_for(
    kind: Literal["image", "audio"], names: Sequence[str] = ()
) -> Mapping[str, Family]:
    """Return the families for this kind of input by name, or those named, in their order.

    Raises UsageError for a name that there is not.
    """
    del kind
    known: dict[str, Family] = {one.name: one for one in (_Gain(), _Noise())}
    for name in names:
        if name not in known:
            raise UsageError(f"there is no family {name!r}; choose from {', '.join(known)}")
    return {name: known[name] for name in names or known}
