"""How a model is fed by what its maker wrote: metadata in the file, or a settings file beside it."""

import ast
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

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
_MOST_BYTES = 1 << 20
"""Of a settings file: larger ones are none."""
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


def written_inputs(
    path: Path, metadata: Mapping[str, str], place: int = 0
) -> Iterator[InferredInput]:
    """Yield how the input in a place is fed by the file's metadata, then by files beside it.

    `metadata`: what the runtime reads in the file. Entries that can't be read tell nothing.
    """
    if path.suffix.lower() == ".tflite":
        packed = packed_metadata(path)
        inputs = packed.inputs
        if place < len(inputs) and inputs[place] is not None:
            yield InferredInput("tflite-metadata", inputs[place] or InputOptions())
        metadata = {**packed.entries, **metadata}
    yield from _in_entries(metadata)
    folders = [path.parent]
    if path.parent.name.lower() in _EXPORT_FOLDERS:
        folders.append(path.parent.parent)
    for folder in folders:
        for name, source in _BESIDE.items():
            settings = _settings(folder / name)
            if source == "timm-config":
                settings = settings.get("pretrained_cfg", settings)
            options = _of_settings(settings)
            if options is not None:
                yield InferredInput(source, options, (name,))


def _settings(path: Path) -> dict[str, Any]:
    """Return a settings file's table; empty where there is none that can be read."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return {}
        return _table(path.read_text())
    except (OSError, UnicodeDecodeError):
        return {}


def _table(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _in_entries(metadata: Mapping[str, str]) -> Iterator[InferredInput]:
    """Yield what entries of a file's metadata tell, by whose they are."""
    about = f"{metadata.get('description', '')} {metadata.get('author', '')}"
    if "Ultralytics" in about and "stride" in metadata:
        size = _pair(_literal(metadata.get("imgsz", "")))
        options = _checked({"scale": "1/255", "size": size})
        if options is not None:
            yield InferredInput("ultralytics", options, ("description",))
    for name in ("pretrained_cfg", "preprocessor_config", "preprocessor_config.json"):
        options = _of_settings(_table(metadata.get(name, "")))
        if options is not None:
            yield InferredInput("metadata", options, (name,))
    for names in (("mean", "std"), ("image_mean", "image_std"), ("norm_mean", "norm_std")):
        means, deviations = (_numbers(_literal(metadata.get(name, ""))) for name in names)
        options = _of_unit_range(means, deviations)
        if options is not None:
            yield InferredInput("metadata", options, names)


def _of_settings(settings: Any) -> InputOptions | None:
    """Return the options of `preprocessor_config.json`, or of timm's `pretrained_cfg`; None: it has none."""
    if not isinstance(settings, dict):
        return None
    if "image_mean" not in settings and "do_rescale" not in settings:
        shape = _numbers(settings.get("input_size"))
        options = _of_unit_range(_numbers(settings.get("mean")), _numbers(settings.get("std")))
        if options is None or len(shape) != 3:
            return None  # `mean` and `std` of something else
        return options.model_copy(update={"size": (int(shape[1]), int(shape[2]))})
    stated: dict[str, Any] = {"scale": 1.0}
    if settings.get("do_rescale", True):
        factor = settings.get("rescale_factor", 1 / 255)
        if not isinstance(factor, int | float) or not factor:
            return None
        stated["scale"] = f"1/{1 / factor:.9g}"
    if settings.get("do_normalize", "image_mean" in settings):
        stated["mean"] = _numbers(settings.get("image_mean"))
        stated["std"] = _numbers(settings.get("image_std"))
        if not stated["mean"] or not stated["std"]:
            return None
    name = "crop_size" if settings.get("do_center_crop") else "size"
    return _checked({**stated, "size": _pair(settings.get(name))})


def _of_unit_range(means: Sequence[float], deviations: Sequence[float]) -> InputOptions | None:
    """Return the options of a mean and a deviation of pixels from 0 to 1; None where they may be others.

    A mean of 0 with a deviation of 1 is said of pixels in any range.
    """
    if not means or not deviations or not any(means):
        return None
    if not all(0 <= one <= 1 for one in means) or not all(0 < one <= 1 for one in deviations):
        return None
    return _checked({"scale": "1/255", "mean": means, "std": deviations})


def _checked(values: Mapping[str, Any]) -> InputOptions | None:
    try:
        return InputOptions.model_validate(values)
    except ValidationError:
        return None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return None


def _numbers(value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list | tuple) else (value,)
    is_numeric = all(isinstance(one, int | float) and one == one for one in values)
    return tuple(map(float, values)) if is_numeric else ()


def _pair(value: Any) -> tuple[int, int] | None:
    """Return (height, width) where a setting states both."""
    if isinstance(value, dict):
        value = (value.get("height"), value.get("width"))
    numbers = _numbers(value)
    numbers = numbers * 2 if len(numbers) == 1 else numbers
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 and min(numbers) >= 1 else None


@dataclass(frozen=True)
class PackedMetadata:
    """What a TFLite file carries of itself.

    `inputs`: for each input its options, None where it has none. `entries`: texts that a tool packed
    with the file, as Ultralytics does. `labels`: the names of the classes in the associated file.
    """

    inputs: tuple[InputOptions | None, ...] = ()
    entries: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()


def packed_metadata(path: Path) -> PackedMetadata:
    """Return what a ``.tflite`` file carries of itself; nothing where that can't be read."""
    try:
        table = _metadata_table(path.read_bytes())
        inputs, names = ((), []) if table is None else (_inputs(table), _label_files(table))
    except (OSError, *_DAMAGED):
        inputs, names = (), []
    try:
        with zipfile.ZipFile(path) as archive:
            files = {
                one.filename: archive.read(one)
                for one in archive.infolist()
                if one.file_size <= _MOST_BYTES
            }
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError):
        files = {}
    labels: tuple[str, ...] = ()
    entries: dict[str, str] = {}
    for name, content in files.items():
        text = content.decode(errors="replace")
        if name in names and not labels:
            labels = tuple(line.strip() for line in text.splitlines() if line.strip())
        packed = _table(text) or _literal(text)
        if isinstance(packed, dict) and "stride" in packed:
            entries = {str(key): str(value) for key, value in packed.items()}
    return PackedMetadata(inputs, entries, labels)


# The flatbuffers that are read here: the places of fields in their tables, of TFLite's schema.fbs and of
# metadata_schema.fbs (tensorflow/tflite-support). The latter has no generated reader in ai-edge-litert.
_MODEL_BUFFERS, _MODEL_METADATA = 4, 6
_ABOUT_SUBGRAPHS, _ABOUT_INPUTS, _ABOUT_OUTPUTS = 3, 2, 3
_CONTENT, _UNITS, _FILES = 3, 4, 6
_IMAGE, _NORMALISATION, _AXIS_LABELS, _VALUE_LABELS = 2, 1, 2, 3


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


def _inputs(subgraph: _Table) -> tuple[InputOptions | None, ...]:
    return tuple(_of_tensor(one) for one in subgraph.tables(_ABOUT_INPUTS))


def _of_tensor(tensor: _Table) -> InputOptions | None:
    """Return the options of an input that is normalised: value = (pixel - mean) / std."""
    content = tensor.table(_CONTENT)
    if content is not None and content.number(0, "<B") not in (0, _IMAGE):
        return None  # of features or sound
    for unit in tensor.tables(_UNITS):
        options = unit.table(1)
        if unit.number(0, "<B") == _NORMALISATION and options is not None:
            means, deviations = options.floats(0), options.floats(1)
            return _checked({"mean": means, "std": deviations}) if means and deviations else None
    return None


def _label_files(subgraph: _Table) -> list[str]:
    """Return the names of the files with the classes' names, in English or without a language first."""
    files = [
        one
        for output in subgraph.tables(_ABOUT_OUTPUTS)
        for one in output.tables(_FILES)
        if one.number(2, "<B") in (_AXIS_LABELS, _VALUE_LABELS)
    ]
    files.sort(key=lambda one: one.text(3) not in ("", "en"))
    return [one.text(0) for one in files[:1]]
