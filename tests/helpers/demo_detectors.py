"""The demo's detector, and a version with a fault in how its head is quantised."""

from pathlib import Path

import numpy as np
import onnx
from command import ROOT
from onnx import helper, numpy_helper

DETECTION_DEMO = ROOT / "host" / "edgeflare" / "assets" / "demo_detection"
OUTPUT = "output0"


def with_one_scale(path: Path, largest: float = 120.0) -> Path:
    """Write the demo's int8 detector with boxes and scores quantised together.

    They are concatenated under one uint8 scale, `largest` / 255, for a range of boxes up to
    `largest` pixels. Scores become multiples of it: 0, 0.471 and 0.941 by default, so that what was
    found at scores of 0.5 to 0.7 is lost. A scale above 0.5, as of `largest` 132, makes ghosts.
    """
    model = onnx.load(str(DETECTION_DEMO / "deployed.onnx"))
    (concat,) = (node for node in model.graph.node if OUTPUT in node.output)
    concat.output[0] = "joined"
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(np.array(largest / 255, np.float32), "joined.scale"),
            numpy_helper.from_array(np.array(0, np.uint8), "joined.zero_point"),
        ]
    )
    model.graph.node.extend(
        helper.make_node(operator, [source, "joined.scale", "joined.zero_point"], [result])
        for operator, source, result in (
            ("QuantizeLinear", "joined", "joined.quantized"),
            ("DequantizeLinear", "joined.quantized", OUTPUT),
        )
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save_model(model, str(path))
    return path
