"""Nights of a detector: its head quantised with one scale for boxes and scores is caught, and named by kind."""

import shutil
from pathlib import Path

import pytest
from command import edgeflare, must_run
from demo_detectors import DETECTION_DEMO, with_one_scale


@pytest.mark.extended
def test_a_head_of_one_scale_makes_the_night_red_and_its_kind_is_named(tmp_path: Path) -> None:
    for name in ("original.onnx", "seeds.npz"):
        shutil.copy(DETECTION_DEMO / name, tmp_path / name)
    shutil.copy(DETECTION_DEMO / "deployed.onnx", tmp_path / "digits.onnx")
    (tmp_path / "campaign.toml").write_text(
        '[original]\npath = "original.onnx"\n[deployed]\npath = "digits.onnx"\n'
        '[seeds]\npath = "seeds.npz"\nlimit = 12\n[survey]\nenabled = false\n'
    )
    (tmp_path / "nightly.toml").write_text(
        'history = "history"\ndevices = ["local"]\n'
        '[[models]]\nname = "digits"\ncampaign = "campaign.toml"\n'
    )
    must_run("nightly", "nightly.toml", home=tmp_path)
    with_one_scale(tmp_path / "digits.onnx")
    second = edgeflare("nightly", "nightly.toml", home=tmp_path)
    assert second.code == 1, second.err
    assert "digits on local" in second.out
    assert "last green night" in second.out
    assert "(lost class " in second.out
