"""A user's own decoder, from an entry point."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_distributions import write_distribution
from pydantic import ValidationError

from edgeflare._internal import plugins
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import DetectionReader, DetectorOptions, TensorInfo, complete_options

SOURCE = """
import numpy as np

def corners(outputs, size):
    assert outputs["points"].dtype == outputs["heat"].dtype == np.float64
    scores = outputs["heat"].reshape(-1)
    boxes = outputs["points"].reshape(-1, 4) / [size[1], size[0], size[1], size[0]]
    return boxes, np.full(len(scores), 7), scores

def broken(outputs, size):
    return outputs["missing"]

def short(outputs, size):
    return np.zeros((2, 4)), [0], [0.5]

number = 7
"""
TENSORS = (
    TensorInfo("heat", (1, 3), "uint8", (0.01, 0)),
    TensorInfo("points", (1, 12), "float32"),
    TensorInfo("other", (1, 5), "float32"),
)
HEAT = np.array([[90, 80, 5]], np.uint8)
POINTS = np.array([[0, 0, 32, 24, 0, 0, 32, 23, 1, 1, 2, 2]], np.float32)
RAWS = (HEAT, POINTS, np.zeros((1, 5), np.float32))


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    names = ("corners", "broken", "short", "number")
    entries = {f"edgeflare.detectors/{name}": name for name in names}
    write_distribution(tmp_path, "decoders_of_mine", SOURCE, entries)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.load.cache_clear()
    yield
    plugins.load.cache_clear()


def reader(kind: str, **more: Any) -> DetectionReader:
    return DetectionReader(TENSORS, DetectorOptions(kind=kind, **more), (240, 320))


def test_it_takes_real_numbers_by_name_and_its_boxes_are_suppressed() -> None:
    found = reader("corners", outputs=("heat", "points")).read(RAWS)
    np.testing.assert_allclose(found.boxes, [[0, 0, 0.1, 0.1]], atol=1e-7)
    assert (found.labels.tolist(), found.scores.tolist()) == ([7], [0.9])
    both = reader("corners", suppress=False).read(RAWS)
    assert both.scores.tolist() == [0.9, 0.8]  # 0.05 is below what candidates need
    options = DetectorOptions(kind="corners")
    assert complete_options(options, TENSORS, (240, 320), [RAWS]) == options


def test_what_it_gets_wrong_is_said_with_its_distribution() -> None:
    with pytest.raises(ModelError, match=r"my-plugins 1\.2"):
        reader("broken").read(RAWS)
    with pytest.raises(ModelError, match=r"'short' .*shapes"):
        reader("short").read(RAWS)
    with pytest.raises(UsageError, match=r"my-plugins 1\.2"):
        reader("number")


def test_a_name_that_nothing_declares() -> None:
    with pytest.raises(ValidationError, match=r"'yolo', .*'corners'"):
        DetectorOptions(kind="nowhere")


def test_a_grid_is_described_for_its_kind_alone() -> None:
    with pytest.raises(ValidationError, match="kind grid"):
        DetectorOptions(kind="grid")
    with pytest.raises(ValidationError, match="`grid`"):
        DetectorOptions.model_validate(
            {"kind": "yolo", "grid": {"box": [0, 1, 2, 3], "classes": [4, None]}}
        )
