"""How a model is fed where that isn't stated: what its file and the files beside it tell, with the reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.models.first_operators import (
    RAW,
    SIGNED,
    UNIT,
    FirstOperators,
    fed_by,
    first_operators,
)
from edgeflare.models.image_input import (
    InputOptions,
    options_in_file,
    scaling_between,
    scaling_of_range,
)
from edgeflare.models.input_metadata import InferredInput, UnusableSettings, written_inputs
from edgeflare_agent.image_spec import TensorInfo

_NEARLY = 0.02
"""Two scalings count as one where they differ by at most this share of the range."""
_OF_RANGE = 1.5 / 255
"""How far a calibrated range may end beside that of a scaling: one and a half steps of 8 bits."""


@dataclass(frozen=True)
class Inference:
    """How a file is fed as far as it tells: `known`, or `candidates` that contradict each other.

    `besides`: what the file's own entry states where that is no scaling. `behind`: what the integers
    right behind an input of floats were calibrated for; it counts where labels don't contradict it.
    `unusable`: settings that are left out.
    """

    known: InferredInput | None = None
    candidates: tuple[InferredInput, ...] = ()
    behind: InferredInput | None = None
    besides: InputOptions = field(default_factory=InputOptions)
    unusable: tuple[UnusableSettings, ...] = ()

    @property
    def options(self) -> InputOptions:
        """What is known; no scaling where that is contradictory."""
        return self.besides if self.known is None else self.known.options

    @property
    def in_file(self) -> InputOptions:
        """What the file's own metadata state."""
        return self.options if self.known and self.known.source in _OF_FILES else InputOptions()

    @property
    def of_both(self) -> InputOptions:
        """What holds for another file of the same model, too: not what this file's own operators tell."""
        is_own = self.known is not None and self.known.source in _OF_ONE_FILE
        return InputOptions() if is_own else self.options


_OF_ONE_FILE = ("first-operators", "integer-pixels")
_OF_FILES = ("edgeflare", "tflite-metadata", "ultralytics", "metadata")


@dataclass(frozen=True)
class InputFile:
    """A model's file as an inference is told of it: which of its inputs samples become.

    `place` is that of the input among all, `metadata` what the runtime reads in the file.
    """

    path: Path
    runtime: str
    tensor: TensorInfo
    metadata: Mapping[str, str]
    place: int = 0
    options: Mapping[str, Any] | None = None

    @property
    def channels(self) -> int:
        """The number of channels of an image; 0: its shape is none of an image with 1 or 3."""
        inner = self.tensor.shape[1:]
        if len(inner) < 3:
            return 0
        return next((count for count in (inner[-1], inner[-3]) if count in (1, 3)), 0) or 0


def read_apart(file: InputFile) -> FirstOperators | None:
    """Return what a file computes first, read in a process of its own."""
    return first_operators(
        file.path, file.runtime, file.options or {}, file.tensor.name, file.channels
    )


def infer_input(
    file: InputFile,
    stated: InputOptions,
    read: Callable[[InputFile], FirstOperators | None] = read_apart,
) -> Inference:
    """Return how a file is fed, where `stated` doesn't say that; only what is sure is known.

    `read` returns what the file computes first, None where that can't be read.

    First its own entry ``edgeflare.input`` tells, then the range of an integer input; then its metadata,
    the files beside it and its first operators, which must not contradict each other.
    """
    in_file = options_in_file(file.metadata, str(file.path))
    if in_file.has_scaling or in_file.is_audio:
        return Inference(InferredInput("edgeflare", in_file))
    if stated.is_audio:
        return Inference(besides=in_file)
    settings = list(written_inputs(file.path, file.metadata, file.place))
    written = [entry for entry in settings if isinstance(entry, InferredInput)]
    unusable = [entry for entry in settings if isinstance(entry, UnusableSettings)]
    of_range = scaling_of_range(file.tensor)
    if stated.has_scaling:
        inference = Inference(written[0]) if written else Inference()
    elif of_range.has_scaling:
        inference = Inference(InferredInput("quantisation", of_range))
    else:
        first = read(file) if file.channels else None
        fitting, others = _of_channels(written, file, stated)
        inference = replace(_agreed(fitting, first, file), unusable=(*unusable, *others))
    if inference.known is None:
        return replace(inference, besides=in_file)
    return replace(
        inference,
        known=replace(inference.known, options=_filled(in_file, inference.known, written, file)),
    )


def _of_channels(
    written: Sequence[InferredInput], file: InputFile, stated: InputOptions
) -> tuple[list[InferredInput], list[UnusableSettings]]:
    """Return what was written of an image with these channels, and of one with others.

    Numbers for each channel are in the order of RGB: of a model that is stated to take BGR they tell nothing.
    """
    fitting, others = [], []
    for feed in written:
        numbers = [values for values in (feed.options.mean, feed.options.std) if values]
        alike = all(len({*values}) == 1 for values in numbers)
        if not alike and not {len(values) for values in numbers} <= {1, file.channels}:
            others.append(UnusableSettings(feed.source, feed.names, "channels"))
        elif alike or stated.color != "BGR":
            fitting.append(feed)
    return fitting, others


def _agreed(
    written: Sequence[InferredInput], first: FirstOperators | None, file: InputFile
) -> Inference:
    """Return what was written and what the first operators tell, where they don't contradict."""
    behind = None
    if first is not None and first.integers is not None:
        low, high = first.integers
        of_integers = scaling_between(low, high, _OF_RANGE * (high - low))
        if of_integers.has_scaling:
            behind = InferredInput("integers-behind", of_integers)
    if file.tensor.dtype == "uint8" and file.tensor.quantization is None and file.channels:
        is_plain = first is None or first.integers is None or behind is not None
        return Inference(InferredInput("integer-pixels", RAW) if is_plain else None)
    told = [_inside(feed, first) for feed in written]
    if first is not None and (options := fed_by(first)) is not None:
        told.append(InferredInput("first-operators", options, first.names))
    told = [feed for feed in told if feed.options.has_scaling]
    if not told:
        return Inference(behind=behind)
    if all(alike(told[0].options, feed.options) for feed in told):
        return Inference(told[0], behind=behind)
    distinct: list[InferredInput] = []
    for feed in told:
        if not any(alike(feed.options, kept.options) for kept in distinct):
            distinct.append(feed)
    return Inference(candidates=tuple(distinct), behind=behind)


def _inside(feed: InferredInput, first: FirstOperators | None) -> InferredInput:
    """Return how the file itself is fed where its first operators make what was written.

    A settings file tells how images become what the network sees; a file that normalises is fed before.
    """
    if first is None or not first.is_normalising:
        return feed
    ends = np.array(feed.options.pixel_range())
    for options in (RAW, UNIT, SIGNED):
        made = first.made_of(options)
        if np.allclose(made, ends, rtol=0, atol=_NEARLY * np.ptp(ends)):
            size = feed.options.size
            return InferredInput(
                "first-operators", options.model_copy(update={"size": size}), first.names
            )
    return feed


def alike(first: InputOptions, second: InputOptions) -> bool:
    """Whether two statements make the same values of pixels, but for 2 % of the range."""
    ranges = np.array(first.pixel_range()), np.array(second.pixel_range())
    same_color = (first.color or second.color) == (second.color or first.color)
    near = _NEARLY * np.ptp(ranges[1], axis=1).min()
    return bool(same_color and np.allclose(*ranges, rtol=0, atol=near))


def _filled(
    in_file: InputOptions,
    feed: InferredInput,
    written: Sequence[InferredInput],
    file: InputFile,
) -> InputOptions:
    sizes = (entry.options.size for entry in (feed, *written) if entry.options.size)
    size = next(sizes, None) if None in file.tensor.shape[1:] else None
    stated = in_file.model_dump(exclude_none=True)
    return feed.options.model_copy(update={"size": size, **stated})
