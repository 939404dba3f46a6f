"""How a model is fed by what its maker wrote: metadata in the file, or a settings file beside it."""

import ast
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import ValidationError

from edgeflare.models.image_input import InputOptions

InputSource: TypeAlias = Literal[
    "edgeflare",
    "tflite-metadata",
    "ultralytics",
    "metadata",
    "preprocessor-config",
    "timm-config",
    "quantisation",
    "integer-pixels",
    "first-operators",
    "other-model",
    "integers-behind",
    "labels",
]
"""What tells how a model is fed, where that is not stated."""
_BESIDE: Mapping[str, InputSource] = {
    "preprocessor_config.json": "preprocessor-config",
    "config.json": "timm-config",
}
BESIDE = tuple(_BESIDE.values())
"""Those that stand in files beside a model's: they may be meant of another file in the folder."""
_EXPORT_FOLDERS = ("onnx", "tflite")
"""Folders of models whose settings lie one folder above, as Hugging Face has them."""
_MOST_BYTES, _MOST_ENTRIES = 1 << 20, 64
"""Of a settings file: larger ones are none."""
_LARGEST = 16384
"""Sides of images are no longer."""
_DAMAGED = (struct.error, IndexError, ValueError, UnicodeDecodeError, RecursionError, MemoryError)


@dataclass(frozen=True)
class InferredInput:
    """How a model is fed, and what tells it: `names` of operators, files or entries of metadata."""

    source: InputSource
    options: InputOptions
    names: tuple[str, ...] = ()

    def told_by(self) -> dict[str, Any]:
        """Return what tells it, as JSON."""
        return {"source": self.source, "names": list(self.names)}


@dataclass(frozen=True)
class UnusableSettings:
    """Settings of an input that tell nothing: they can't be parsed, or no input has such numbers, or channels."""

    source: InputSource
    names: tuple[str, ...]
    problem: Literal["syntax", "values", "channels"]


class _NonsenseError(ValueError):
    """Settings are of an input, and no input has them."""


def written_inputs(
    path: Path, metadata: Mapping[str, str], place: int = 0
) -> Iterator[InferredInput | UnusableSettings]:
    """Yield how the input in a place is fed by the file's metadata, then by files beside it.

    `metadata`: what the runtime reads in the file.
    """
    settings: list[_Settings] = []
    if path.suffix.lower() == ".tflite":
        packed = packed_metadata(path)
        settings += [
            ("tflite-metadata", (), partial(_checked, values))
            for values in packed.inputs[place : place + 1]
            if values is not None
        ]
        metadata = {**packed.entries, **metadata}
    settings += _in_entries(metadata)
    folders = [path.parent]
    if path.parent.name.lower() in _EXPORT_FOLDERS:
        folders.append(path.parent.parent)
    for folder in folders:
        settings += _beside(folder)
    for source, names, read in settings:
        try:
            options = read()
        except json.JSONDecodeError:
            yield UnusableSettings(source, names, "syntax")
        except _NonsenseError:
            yield UnusableSettings(source, names, "values")
        else:
            if options is not None:
                yield InferredInput(source, options, names)


def written_size(path: Path, metadata: Mapping[str, str]) -> tuple[int, int] | None:
    """Return (height, width) of images by the file's metadata or files beside it; None: nothing tells."""
    feeds = (feed for feed in written_inputs(path, metadata) if isinstance(feed, InferredInput))
    return next((feed.options.size for feed in feeds if feed.options.size), None)


_Settings: TypeAlias = tuple[InputSource, tuple[str, ...], Callable[[], InputOptions | None]]
"""What tells it, its names, and what reads the options: None where they aren't of an input."""


def _beside(folder: Path) -> Iterator[_Settings]:
    """Yield the settings in a folder."""
    for name, source in _BESIDE.items():
        file = folder / name
        try:
            if not file.is_file() or file.stat().st_size > _MOST_BYTES:
                continue
            text = file.read_text("utf-8-sig", errors="replace")
        except OSError:
            continue
        yield source, (name,), partial(_of_file, source, text)


def _of_file(source: InputSource, text: str) -> InputOptions | None:
    try:
        settings = json.loads(text)
    except RecursionError:
        return None
    except ValueError:
        if source == "timm-config":
            return None  # other programs call their files so, too
        raise
    if source == "timm-config" and isinstance(settings, dict):
        settings = settings.get("pretrained_cfg", settings)
    return _of_settings(settings)


def _table(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _in_entries(metadata: Mapping[str, str]) -> Iterator[_Settings]:
    """Yield what entries of a file's metadata tell, by whose they are."""
    about = f"{metadata.get('description', '')} {metadata.get('author', '')}"
    if "Ultralytics" in about and "stride" in metadata:
        size = _pair(_literal(metadata.get("imgsz", "")))
        yield "ultralytics", ("description",), partial(_checked, {"scale": "1/255", "size": size})
    for name in ("pretrained_cfg", "preprocessor_config", "preprocessor_config.json"):
        if name in metadata:
            yield "metadata", (name,), partial(_of_settings, _table(metadata[name]))
    for names in (("mean", "std"), ("image_mean", "image_std"), ("norm_mean", "norm_std")):
        if names[0] in metadata and names[1] in metadata:
            means, deviations = (_literal(metadata[name]) for name in names)
            yield "metadata", names, partial(_of_unit_range, means, deviations)


def _of_settings(settings: Any) -> InputOptions | None:
    """Return the options of `preprocessor_config.json`, or of timm's `pretrained_cfg`; None: it has none."""
    if not isinstance(settings, dict):
        return None
    if "image_mean" not in settings and "do_rescale" not in settings:
        if not {"input_size", "mean", "std"} <= settings.keys():
            return None  # `mean` and `std` of something else
        options = _of_unit_range(settings["mean"], settings["std"])
        shape = _numbers(settings["input_size"])
        size = _pair(shape[1:]) if len(shape) == 3 else None
        return None if options is None else options.model_copy(update={"size": size})
    stated: dict[str, Any] = {"scale": 1.0}
    if settings.get("do_rescale", True):
        factor = _numbers(settings.get("rescale_factor", 1 / 255))
        if len(factor) != 1 or not 1e-6 <= factor[0] <= 1e6:
            raise _NonsenseError
        stated["scale"] = f"1/{1 / factor[0]:.9g}"
    if settings.get("do_normalize", "image_mean" in settings):
        if not {"image_mean", "image_std"} <= settings.keys():
            return None  # its class has defaults
        stated["mean"] = _numbers(settings.get("image_mean"))
        stated["std"] = _numbers(settings.get("image_std"))
    name = "crop_size" if settings.get("do_center_crop") else "size"
    return _checked({**stated, "size": _pair(settings.get(name))})


def _of_unit_range(means: Any, deviations: Any) -> InputOptions | None:
    """Return the options of a mean and a deviation of pixels from 0 to 1; None where they may be others.

    A mean of 0 with a deviation of 1 is said of pixels in any range.
    """
    options = _checked({"scale": "1/255", "mean": _numbers(means), "std": _numbers(deviations)})
    _, mean, std = options.factors
    is_of_unit = any(mean) and max(mean) <= 1 and min(mean) >= 0 and max(std) <= 1
    return options if is_of_unit else None


def _checked(values: Mapping[str, Any]) -> InputOptions:
    """Return options; raise _NonsenseError where numbers are missing, or no deviations of pixels."""
    numbers = [values[name] for name in ("mean", "std") if name in values]
    if any(len(of) not in (1, 3) or not np.isfinite(of).all() for of in numbers):
        raise _NonsenseError
    if min(values.get("std", (1,))) <= 0:
        raise _NonsenseError
    try:
        return InputOptions.model_validate(values)
    except ValidationError as error:
        raise _NonsenseError from error


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return None


def _numbers(value: Any) -> tuple[float, ...]:
    """Return a number, or several, as such; none where one isn't finite."""
    values = value if isinstance(value, list | tuple) else (value,)
    try:
        numbers = tuple(float(number) for number in values if isinstance(number, int | float))
    except OverflowError:
        return ()
    return numbers if len(numbers) == len(values) and np.isfinite(numbers).all() else ()


def _pair(value: Any) -> tuple[int, int] | None:
    """Return (height, width) where a setting states both."""
    if isinstance(value, dict):
        value = (value.get("height"), value.get("width"))
    numbers = _numbers(value)
    numbers = numbers * 2 if len(numbers) == 1 else numbers
    is_size = len(numbers) == 2 and min(numbers) >= 1 and max(numbers) <= _LARGEST
    return (int(numbers[0]), int(numbers[1])) if is_size else None


@dataclass(frozen=True)
class PackedMetadata:
    """What a TFLite file carries of itself.

    `inputs`: for each input its mean and std, None where it has none. `entries`: texts that a tool packed
    with the file, as Ultralytics does.
    """

    inputs: tuple[Mapping[str, tuple[float, ...]] | None, ...] = ()
    entries: Mapping[str, str] = field(default_factory=dict)


def packed_metadata(path: Path) -> PackedMetadata:
    """Return what a ``.tflite`` file carries of itself; nothing where that can't be read."""
    try:
        table = _metadata_table(path.read_bytes())
        inputs = () if table is None else _inputs(table)
    except (OSError, *_DAMAGED):
        inputs = ()
    entries: dict[str, str] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            small = [entry for entry in archive.infolist() if entry.file_size <= _MOST_BYTES]
            for entry in small[:_MOST_ENTRIES]:
                text = archive.read(entry).decode(errors="replace")
                packed = _table(text) or _literal(text)
                # the entry's name differs between versions: the stride of a detector tells it
                if isinstance(packed, dict) and "stride" in packed:
                    entries = {str(key): str(value) for key, value in packed.items()}
    except (
        *(OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError),
        *(zlib.error, lzma.LZMAError),
    ):
        entries = {}
    return PackedMetadata(inputs, entries)


# The flatbuffers that are read here: the places of fields in their tables, of TFLite's schema.fbs and of
# metadata_schema.fbs (tensorflow/tflite-support). The latter has no generated reader in ai-edge-litert.
_MODEL_BUFFERS, _MODEL_METADATA = 4, 6
_ABOUT_SUBGRAPHS, _ABOUT_INPUTS = 3, 2
_CONTENT, _UNITS = 3, 4
_IMAGE, _NORMALISATION = 2, 1


class _Table:
    """One table of a flatbuffer. Raises struct.error beyond its end."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _field(self, place: int) -> int:
        """Return where a field is; 0: it has none."""
        (back,) = struct.unpack_from("<i", self._data, self._at)
        size: int
        (size,) = struct.unpack_from("<H", self._data, self._at - back)
        if 4 + 2 * place >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self._data, self._at - back + 4 + 2 * place)
        return self._at + int(offset) if offset else 0

    def number(self, place: int, form: str = "<I") -> int:
        at = self._field(place)
        return int(struct.unpack_from(form, self._data, at)[0]) if at else 0

    def _vector(self, place: int) -> tuple[int, int]:
        """Return where a vector's elements begin, and their number, bounded by the data."""
        at = self._field(place)
        if not at:
            return 0, 0
        start = at + int(struct.unpack_from("<I", self._data, at)[0])
        count = int(struct.unpack_from("<I", self._data, start)[0])
        return start + 4, min(count, len(self._data) - start)

    def content(self, place: int) -> bytes:
        start, count = self._vector(place)
        return self._data[start : start + count]

    def text(self, place: int) -> str:
        return self.content(place).decode()

    def floats(self, place: int) -> tuple[float, ...]:
        start, count = self._vector(place)
        return struct.unpack_from(f"<{min(count, 16)}f", self._data, start) if count else ()

    def table(self, place: int) -> "_Table | None":
        at = self._field(place)
        return _Table(self._data, at + struct.unpack_from("<I", self._data, at)[0]) if at else None

    def tables(self, place: int) -> "list[_Table]":
        start, count = self._vector(place)
        places = range(start, start + 4 * count, 4)
        return [
            _Table(self._data, at + struct.unpack_from("<I", self._data, at)[0]) for at in places
        ]


def _metadata_table(data: bytes) -> _Table | None:
    """Return what describes the first subgraph in the buffer TFLITE_METADATA."""
    model = _Table.root(data)
    for entry in model.tables(_MODEL_METADATA):
        if entry.text(0) == "TFLITE_METADATA":
            about = _Table.root(model.tables(_MODEL_BUFFERS)[entry.number(1)].content(0))
            return next(iter(about.tables(_ABOUT_SUBGRAPHS)), None)
    return None


def _inputs(subgraph: _Table) -> tuple[Mapping[str, tuple[float, ...]] | None, ...]:
    return tuple(_of_tensor(tensor) for tensor in subgraph.tables(_ABOUT_INPUTS))


def _of_tensor(tensor: _Table) -> Mapping[str, tuple[float, ...]] | None:
    """Return mean and std of an input that is normalised: value = (pixel - mean) / std."""
    content = tensor.table(_CONTENT)
    if content is not None and content.number(0, "<B") not in (0, _IMAGE):
        return None  # of features or sound
    for unit in tensor.tables(_UNITS):
        options = unit.table(1)
        if unit.number(0, "<B") == _NORMALISATION and options is not None:
            return {"mean": options.floats(0), "std": options.floats(1)}
    return None
