"""NaN in a device's output is a finding of its own kind and stops nothing."""

from pathlib import Path

import numpy as np
from command import ROOT, edgeflare, must_run

MODELS = ROOT / "tests" / "data" / "tflite"


def test_nan_is_reported_and_the_campaign_goes_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 200, (6, 8, 8), dtype=np.uint8)
    images[2] = 255  # gives NaN by itself
    images[4] = 228  # a brighter mutant of this one gives NaN
    np.savez(tmp_path / "seeds.npz", images=images)
    ran = must_run(
        "run", "--original", MODELS / "float.tflite", "--deployed", MODELS / "nan.tflite",
        "--seeds", "seeds.npz", "--input", "scale=1/255", "--max-queries", 60,
        "--allow-disagreement", "--out", "campaign", "--json", home=tmp_path,
    )  # fmt: skip
    assert ran.json["finished"] == 6
    assert ran.json["unfinished"] == 0
    assert ran.json["by_status"]["nonfinite"] >= 1
    exported = edgeflare("export", "campaign", "out", "--json", home=tmp_path)
    assert exported.json["by_status"]["nonfinite"] == ran.json["by_status"]["nonfinite"]
    assert '"nan"' in (tmp_path / "out" / "triggers.jsonl").read_text()
    shown = edgeflare("show", "campaign", home=tmp_path)
    assert "NaN or infinity" in shown.out
