"""Exports Whisper tiny.en from CTranslate2's weights to ONNX files that decode by themselves."""

from whisper_export.errors import ExportError
from whisper_export.export import FLOAT_FILE, INT8_FILE, export

__all__ = ["FLOAT_FILE", "INT8_FILE", "ExportError", "export"]
