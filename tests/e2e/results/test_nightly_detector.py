"""Nights of a detector: a head quantised under one scale is caught and named by kind."""

from pathlib import Path

import pytest
from command import edgeflare
from demo_detectors import DETECTION_DEMO, with_one_scale


@pytest.mark.extended
def test_a_head_under_one_scale_is_a_regression_named_by_kind(tmp_path: Path) -> None:
    (tmp_path / "deployed.onnx").write_bytes((DETECTION_DEMO / "deployed.onnx").read_bytes())
    (tmp_path / "nightly.toml").write_text(
        f'history = "history"\ndevices = ["local"]\n[[models]]\nname = "digits"\n'
        f'original.path = "{(DETECTION_DEMO / "original.onnx").as_posix()}"\n'
        'deployed.path = "deployed.onnx"\n'
        f'seeds = {{path = "{(DETECTION_DEMO / "seeds.npz").as_posix()}", limit = 60}}\n'
        "[search]\nmax_queries = 50\n[survey]\nenabled = false\n"
    )
    green = edgeflare("nightly", "nightly.toml", home=tmp_path)
    assert green.code == 0, green.err
    with_one_scale(tmp_path / "deployed.onnx")
    red = edgeflare("nightly", "nightly.toml", "--json", home=tmp_path)
    assert red.code == 1, red.err
    said = red.json["runs"][0]
    assert said["state"] == "regression"
    assert any("lost" in words for words in said["words"]), said["words"]
