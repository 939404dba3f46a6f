"""FastestDet and RFB-320: natural differences of their int8 copies, and other output formats."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from detector_models import (
    FASTESTDET_CONFIDENCE,
    FASTESTDET_NMS,
    FORMATS,
    RFB_CONFIDENCE,
    RFB_NMS,
    SIDE,
    RawModel,
    as_yolo,
    detector_path,
    fastestdet_input,
    photographs,
    rfb_input,
)
from numpy.typing import NDArray

from edgeflare.answers.detections.matching import differences, kind_counts
from edgeflare.models import DetectionReader, complete_options, infer_format
from edgeflare.types import DetectionRules, Detections

pytestmark = pytest.mark.shared_data
Formats: TypeAlias = dict[str, Callable[[onnx.ModelProto], onnx.ModelProto]]


class Setting:
    """How a detector is asked and its answers are read."""

    def __init__(
        self,
        prepare: Callable[[Any], NDArray[np.float32]],
        size: tuple[int, int],
        confidence: float,
        nms: float,
    ) -> None:
        self.prepare, self.size, self.nms = prepare, size, nms
        self.rules = DetectionRules(confidence)

    def answers(self, model: Path | onnx.ModelProto, photos: list[Any]) -> list[Detections]:
        raw = RawModel(model)
        raws = [raw.run(self.prepare(photo)) for photo in photos]
        found = infer_format(raw.outputs, self.size, {})
        options = complete_options(found.options, raw.outputs, self.size, raws[:4])
        return DetectionReader(raw.outputs, options, self.size, self.rules, self.nms).read_all(raws)


FASTESTDET = Setting(fastestdet_input, (SIDE, SIDE), FASTESTDET_CONFIDENCE, FASTESTDET_NMS)
RFB = Setting(rfb_input, (240, 320), RFB_CONFIDENCE, RFB_NMS)


@pytest.mark.parametrize(
    ("name", "setting", "detected", "per_channel", "per_tensor"),
    [
        ("fastestdet", FASTESTDET, 184, (11, 2, 11, 0, 3), (15, 6, 9, 2, 7)),
        ("rfb320", RFB, 463, (8, 63, 31, 0, 171), (9, 48, 40, 0, 181)),
    ],
)
def test_natural_differences_of_the_int8_copies(
    shared_data: Path,
    name: str,
    setting: Setting,
    detected: int,
    per_channel: tuple[int, ...],
    per_tensor: tuple[int, ...],
) -> None:
    """Photographs that differ, and lost, ghosts, class and shift, as a script without this code.

    Its figures are met exactly but for FastestDet's shifts, 2 and 5 here: one or two boxes lie near
    the bound. Another version of onnxruntime fuses, and rounds, in another way.
    """
    photos = photographs(shared_data)
    original = setting.answers(detector_path(shared_data, f"{name}_fp32"), photos)
    assert sum(one.count for one in original) == pytest.approx(detected, abs=1)
    for kind, expected in (("perchannel", per_channel), ("pertensor", per_tensor)):
        deployed = setting.answers(detector_path(shared_data, f"{name}_int8_{kind}"), photos)
        found = [differences(*pair) for pair in zip(original, deployed, strict=True)]
        counts = kind_counts(one for of_photo in found for one in of_photo)
        figures = sum(map(bool, found)), *counts.values()
        assert figures[:-1] == pytest.approx(expected[:-1], abs=1, rel=0.03)
        assert figures[-1] == pytest.approx(expected[-1], abs=2, rel=0.03)


def test_every_format_of_one_model_gives_the_same_detections(shared_data: Path) -> None:
    model, photos = (
        onnx.load(detector_path(shared_data, "fastestdet_fp32")),
        photographs(shared_data),
    )
    expected = FASTESTDET.answers(model, photos[::4])
    assert sum(one.count for one in expected) > 30
    formats: Formats = {**FORMATS, "shares": partial(as_yolo, pixels=False, last=True)}
    for build in formats.values():
        for one, other in zip(expected, FASTESTDET.answers(build(model), photos[::4]), strict=True):
            assert other.labels.tolist() == one.labels.tolist()
            np.testing.assert_allclose(other.scores, one.scores, atol=1e-5)
            np.testing.assert_allclose(other.boxes, one.boxes, atol=1e-5)


def test_a_head_under_one_scale_loses_its_objects(shared_data: Path) -> None:
    photos = photographs(shared_data)[:4]
    model = onnx.load(detector_path(shared_data, "fastestdet_fp32"))
    original = FASTESTDET.answers(as_yolo(model), photos)
    for step, pixels in ((2.0, True), (0.01, False)):  # 8 bits for 0 to 510, and for 0 to 2.55
        deployed = FASTESTDET.answers(as_yolo(model, pixels=pixels, step=step), photos)
        pairs = zip(original, deployed, strict=True)
        lost = [kind_counts(differences(*pair))["lost"] for pair in pairs]
        assert lost == [one.count if pixels else 0 for one in original]
