"""Calibration data for int8 engines: seeds, prepared as the model wants its input."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from edgeflare._internal.text import first_problem
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import InputOptions, OriginalModel, audio_input, prepare, resolve_input
from edgeflare.models.image_input import input_size, options_in_file
from edgeflare.seeds import SeedSource, open_audio_seeds, open_seeds

_WHOSE = "the model"


def write_calibration(
    model: Path,
    seeds: Path,
    target: Path,
    *,
    stated: Mapping[str, Any] | None = None,
    resize: str | None = None,
    limit: int | None = 500,
) -> int:
    """Write prepared seeds to `target`, a ``.npy``; return how many.

    It holds float32 [N, ...model's input shape], each entry one input tensor: what a device takes
    as `calibration` to build an int8 engine of the ``.onnx`` file `model`. `seeds` are a folder of
    images, one image, or an ``.npz`` with `images`; `resize` brings them to the model's size,
    `limit` takes the first. Of a model of audio they are audio files; of longer ones the beginning
    is taken, other rates are resampled. `stated` is what a campaign's `[deployed.input]` says, such
    as {"scale": "1/255"}. Raises ModelError, SeedError, UsageError.
    """
    if target.suffix != ".npy":
        raise UsageError(f"{target}: calibration data is a .npy file")
    try:
        options = InputOptions.model_validate(stated or {})
    except ValidationError as error:
        raise UsageError(f"the input can't be as stated: {first_problem(error)}") from error
    loaded = OriginalModel(model, "onnx", {})
    try:
        tensor = loaded.input
        in_file = options_in_file(loaded.metadata, str(model))
    finally:
        loaded.close()
    if tensor.dtype != "float32":
        raise ModelError(
            f"{model} takes {tensor.dtype}; only a model of float32 is calibrated for int8"
        )
    spec = resolve_input(tensor, options, in_file, _WHOSE)
    audio = audio_input(tensor, options, in_file, _WHOSE)
    source: SeedSource
    if audio is None:
        size, channels = input_size(tensor, options, in_file, _WHOSE)
        source = open_seeds(seeds, size=size, channels=channels, resize=resize, limit=limit)
    else:
        rate, samples = audio
        if samples is None:
            raise UsageError(
                f"{model} takes audio of any length: state one for calibration, such as samples={rate}"
            )
        source = open_audio_seeds(
            seeds, rate=rate, samples=samples, cut="first", resample=True, limit=limit
        )
    tensors = np.stack([prepare(seed.sample, spec) for seed in source])
    try:
        np.save(target, tensors)
    except OSError as error:
        raise UsageError(f"can't write {target}: {error.strerror or error}") from error
    return len(tensors)
