"""The scaling of a model's input values, as the user or the file states it."""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator


class ScalingOptions(BaseModel):
    """value = (value * scale - mean) / std; what is left out changes nothing.

    `scale` is a number or a fraction such as "1/255" (then the value is divided, as training code
    does); `mean` and `std` have one entry, or one a channel (of audio: one a band).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scale: str | float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    @field_validator("mean", "std", mode="before")
    @classmethod
    def _number_to_tuple(cls, value: Any) -> Any:
        return (value,) if isinstance(value, int | float) else value

    @field_validator("scale")
    @classmethod
    def _check_scale(cls, value: str | float | None) -> str | float | None:
        if isinstance(value, str) and (parse_scale(value)[0] == 0):
            raise ValueError("scale must not be 0")
        return value

    @property
    def has_scaling(self) -> bool:
        """Whether anything about the values is stated."""
        return not (self.scale is None and self.mean is None and self.std is None)

    def shown(self) -> str:
        """Return the options as for `--input`, such as "mean=127.5, std=127.5"."""
        listed = {"mean": self.mean, "std": self.std}
        texts = [f"scale={self.scale}"] if self.scale is not None else []
        texts += [f"{name}={','.join(f'{n:g}' for n in of)}" for name, of in listed.items() if of]
        return ", ".join(texts)

    @property
    def factors(self) -> tuple[tuple[float, float], tuple[float, ...], tuple[float, ...]]:
        """(numerator, denominator) of the scale; mean; std. By default they change nothing."""
        scale = parse_scale(1.0 if self.scale is None else self.scale)
        return scale, self.mean or (0.0,), self.std or (1.0,)

    def pixel_range(self) -> tuple[tuple[float, float], ...]:
        """Return the scaled pixels 0 and 255 of three channels; `std` must not contain 0."""
        (numerator, denominator), mean, std = self.factors
        return tuple(
            (
                (0.0 - mean[channel % len(mean)]) / std[channel % len(std)],
                (255 * numerator / denominator - mean[channel % len(mean)])
                / std[channel % len(std)],
            )
            for channel in range(3)
        )


def parse_scale(value: str | float) -> tuple[float, float]:
    """Return (numerator, denominator); "1/255" stays a division."""
    if not isinstance(value, str):
        return float(value), 1.0
    numerator, slash, denominator = value.partition("/")
    try:
        scale = float(numerator), float(denominator) if slash else 1.0
    except ValueError:
        scale = math.nan, 1.0
    if not (math.isfinite(scale[0]) and math.isfinite(scale[1]) and scale[1]):
        raise ValueError(f"scale {value!r} is neither a number nor a fraction like 1/255")
    return scale
