"""What `explain` says where only the processor differs: one file, the same kernels, here and on arm64."""

import platform

import pytest
from command import DEMO
from virtual_board import within

from edgeflare import replay_base, replay_config, search
from edgeflare.explanation import explain_campaign
from edgeflare.explanation.results import DEVICE


@pytest.mark.virtual
@pytest.mark.slow
def test_what_only_the_board_does_is_hardware_or_in_doubt(virtual_board, tmp_path) -> None:
    if platform.machine() in ("aarch64", "arm64"):
        pytest.skip("this machine is an arm64 one itself")
    model = {"path": DEMO / "deployed.tflite", "options": {"delegate": False}}
    seeds = {"path": DEMO / "seeds.npz", "limit": 2}
    out = tmp_path / "out"
    with within(virtual_board.environment):
        search(model, model, seeds, "virtual", folder=out)
        found = explain_campaign(out, replay_config(replay_base(out)))
    assert found.findings
    assert [name for name, _, _ in found.rungs][:4] == ["control", "compression", "kernels", DEVICE]
    for one in found.findings:
        assert one.rung in (DEVICE, "device-plain")
        assert one.cause == "hardware" or one.doubt
