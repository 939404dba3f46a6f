"""One detector in each output format, as a user runs it: the same objects differ."""

from pathlib import Path

import cv2
import onnx
import pytest
from command import must_run
from detector_models import FORMATS, detector_path

PHOTOGRAPHS = ("coral_kite_and_cold.jpg", "coral_cat.jpg", "coral_bird.jpg")
INPUT = ("--input", "color=BGR", "--input", "scale=1/255", "--input", "layout=CHW")
QUICK = ("yolo", "ssd")
"""Formats that are run on each change; the others at night."""
RULES = ("--resize", "bilinear", "--confidence", "0.65", "--no-survey", "--max-host-queries", "150")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def photographs(home: Path, shared_data: Path) -> Path:
    folder = home / "photographs"
    folder.mkdir()
    for name in PHOTOGRAPHS:
        photograph = cv2.imread(str(shared_data / "images" / "photos_detection" / name))
        cv2.imwrite(str(folder / name.replace("jpg", "png")), photograph)
    return folder


def run(home: Path, original: Path, deployed: Path, *more: object) -> dict[str, object]:
    models = ("--original", original, "--deployed", deployed)
    ran = must_run("run", *models, *INPUT, *RULES, *more, "--json", home=home)
    found: dict[str, object] = ran.json["detection"]
    return found


@pytest.fixture(scope="module")
def of_the_grid(home: Path, photographs: Path, shared_data: Path) -> dict[str, object]:
    paths = [detector_path(shared_data, f"fastestdet_{one}") for one in ("fp32", "int8_pertensor")]
    return run(home, *paths, "--decoder", "kind=fastestdet", "--seeds", photographs)


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in FORMATS]
)
def test_the_same_objects_differ_whatever_the_format(
    kind: str, home: Path, photographs: Path, shared_data: Path, of_the_grid: dict[str, object]
) -> None:
    paths = []
    for one in ("fp32", "int8_pertensor"):
        model = onnx.load(detector_path(shared_data, f"fastestdet_{one}"))
        paths.append(home / f"{kind}_{one}.onnx")
        onnx.save(FORMATS[kind](model), paths[-1])
    assert run(home, *paths, "--seeds", photographs) == of_the_grid
