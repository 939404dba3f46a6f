"""Searches on FastestDet and its int8 copy: new differences on photographs on which both agree."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from answering_models import Searched
from detector_models import (
    FASTESTDET_CONFIDENCE,
    FASTESTDET_NMS,
    SIDE,
    RawModel,
    detector_path,
    fastestdet_input,
)

from edgeflare.answers.oracles import DetectionOracle
from edgeflare.metrics import l2
from edgeflare.models import DetectionReader, DetectorOptions
from edgeflare.types import Decision, DetectionRules, Detections, Sample

pytestmark = pytest.mark.shared_data
NAMES = ("coral_cat", "face_5", "sk_chelsea")


def detector(shared_data: Path, name: str) -> Callable[[Sample], Detections]:
    model = RawModel(detector_path(shared_data, name))
    reader = DetectionReader(
        model.outputs,
        DetectorOptions(kind="fastestdet"),
        (SIDE, SIDE),
        DetectionRules(FASTESTDET_CONFIDENCE),
        FASTESTDET_NMS,
    )
    return lambda sample: reader.read(tuple(model.run(fastestdet_input(sample[..., ::-1]))))


@pytest.mark.slow
def test_few_device_queries_find_a_difference_near_each_photograph(shared_data: Path) -> None:
    original = detector(shared_data, "fastestdet_fp32")
    deployed = detector(shared_data, "fastestdet_int8_perchannel")
    queries = []
    for number, name in enumerate(NAMES):
        file = shared_data / "images" / "photos_detection" / f"{name}.jpg"
        photo = cv2.resize(np.asarray(cv2.imread(str(file)), np.uint8), (SIDE, SIDE))
        sample = np.ascontiguousarray(photo[..., ::-1])
        run = Searched(original, deployed, DetectionOracle(1e-3))
        assert run.outputs(sample).decision is Decision.AGREE
        run.search("boundary", sample, number, effort=16)
        assert run.outputs(run.found).decision is Decision.DEVIATION
        assert l2(sample, run.found) < 30
        queries.append(len(run.queries))
    assert np.mean(queries) <= 3
