"""RFB-320, a detector with two outputs, quantised with the end of its head in float."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from detector_models import RawModel, detector_path, photographs, rfb_input

from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare.models.tensors.open import open_graph
from edgeflare.repair.in_float import head_of

pytestmark = [pytest.mark.shared_data, pytest.mark.slow]

CALIBRATED_ON = 8


def test_recipes_keep_both_outputs_and_a_split_head_brings_boxes_nearer(
    shared_data: Path, tmp_path: Path
) -> None:
    original = detector_path(shared_data, "rfb320_fp32")
    inputs = [rfb_input(one) for one in photographs(shared_data)]
    after, _ = head_of(open_graph(original, "onnx", {}).operations)
    head = tuple(name for one in after for name in one.outputs)
    assert {"scores", "boxes"} <= set(head)
    recipes = [
        Recipe("whole", per_channel=True),
        Recipe("split", per_channel=True, in_float=head),
        Recipe("weights", per_channel=True, calibration="none"),  # weights are inputs of this file
    ]
    problems: list[str] = []
    made = make_quantized(
        original,
        recipes,
        inputs[:CALIBRATED_ON],
        tmp_path,
        lambda _, problem: problems.append(problem),
    )
    assert problems == ["", "", ""]
    for path in made.values():
        assert [one.name for one in onnx.load(path).graph.output] == ["scores", "boxes"]
    models = {"original": RawModel(original)}
    models |= {name: RawModel(path) for name, path in made.items()}
    tested = inputs[CALIBRATED_ON : CALIBRATED_ON + 6]
    boxes = {name: np.array([one.run(each)[1] for each in tested]) for name, one in models.items()}
    off = {name: np.abs(boxes[name] - boxes["original"]).mean() for name in made}
    assert off["split"] < 0.8 * off["whole"]
