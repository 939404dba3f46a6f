"""The same small models for every runtime."""

from collections.abc import Callable

import pytest
from small_models import BUILDERS, TFLITE, open_axis_tflite


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """(runtime, model name) -> path of the file."""
    folder = tmp_path_factory.mktemp("models")

    def find(runtime: str, name: str) -> str:
        if runtime == "tflite" and name.startswith("open_"):
            axis = {"open_batch": 0, "open_channels": 3}[name]
            return str(open_axis_tflite(folder / f"{name}.tflite", axis))
        if runtime == "tflite":
            return str(TFLITE / f"{name}.tflite")
        path = folder / f"{name}.onnx"
        return str(path if path.exists() else BUILDERS[name](path))

    return find
