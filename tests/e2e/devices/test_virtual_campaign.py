"""What a user does with the virtual board: the demo on it, and it beside this machine."""

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from command import must_run
from virtual_board import VirtualBoard

pytestmark = [pytest.mark.virtual, pytest.mark.extended]

ARM = {"aarch64", "arm64"}
ON_THE_DEVICE = ("seed", "survey", "search", "confirmation", "measuring")


def demo(board: VirtualBoard, home: Path, *words: object) -> dict[str, Any]:
    ran = must_run("demo", *words, "--json", home=home, extra=board.environment)
    answer: dict[str, Any] = json.loads(ran.out)
    return answer


def test_the_demo_finds_triggers_on_arm64_over_ssh(virtual_board, tmp_path) -> None:
    summary = demo(virtual_board, tmp_path, "--device", "virtual", "--seeds", 5)
    assert summary["found"] == summary["searched"] == 5
    (device,) = summary["devices"]
    assert device["fingerprint"]["arch"] in ARM
    (fared,) = summary["telemetry"]
    assert fared["queries"] == sum(summary["total_queries"][kind] for kind in ON_THE_DEVICE)


@pytest.mark.slow
def test_the_demo_reports_what_arm64_does_differently(virtual_board, tmp_path) -> None:
    if platform.machine() in ARM:
        pytest.skip("this machine is an arm64 one itself")
    words = ("--device", "local", "--device", "virtual", "--fleet", "replicate", "--seeds", 3)
    summary = demo(virtual_board, tmp_path, *words)
    (pair,) = summary["agreements"]
    assert {pair["first"], pair["second"]} == {"local", "virtual"}
    assert (pair["seeds"]["inputs"], pair["seeds"]["labels_differ"]) == (3, 0)
    # One library, one kernel, two processors: rounding differs, decisions on clean digits don't.
    assert pair["seeds"]["largest_difference"] < 1e-3
    triggers = pair["on_both"] + pair["only_first"] + pair["only_second"]
    assert triggers == pair["triggers"]["inputs"] > 0
    assert "arch" in {each["field"] for each in pair["differences"]}
    assert pair["cause"] == "hardware"
