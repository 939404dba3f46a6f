"""Two tests of one board, which two processes of pytest-xdist run at the same time."""

import time
from pathlib import Path

import pytest

import edgeflare


@pytest.mark.edgeflare(device="board")
@pytest.mark.parametrize(("own", "other"), [("a", "b"), ("b", "a")])
def test_both_have_the_board(edgeflare_device: str, own: str, other: str) -> None:
    Path(own).touch()
    deadline = time.monotonic() + 60
    while not Path(other).exists():
        assert time.monotonic() < deadline, "the two tests are not run at the same time"
        time.sleep(0.01)
    edgeflare.assert_agrees(
        "original.onnx",
        "deployed.tflite",
        {"path": "seeds.npz", "limit": 2},
        limits={"max_deviation_rate": 1.0},
        folder="kept",
    )
