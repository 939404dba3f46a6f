"""The host is killed between any two writes to the campaign's store; resumed, the campaign is the same."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from campaigns import all_of
from command import DEMO, ROOT, environment

SCRIPT = ROOT / "tests" / "helpers" / "killed_at_write.py"
KILLED = 99
MODES: dict[str, dict[str, Any]] = {
    "split": {"devices": ["local"]},
    "replicate": {"devices": ["local", "local"], "fleet": {"mode": "replicate"}},
    "ordered": {"prioritise": "margin", "limit": 3},
    "control": {"control": True, "concurrency": 1},
}
IN_THE_GATE = {"split": 2, "replicate": 13, "ordered": 3}
"""The write after which the gate kills the host, of each mode that the gate runs."""


def begin(home: Path, mode: str) -> None:
    """Write the configuration, and seeds among which two files can't be read."""
    with np.load(DEMO / "seeds.npz") as archive:
        images = archive["images"]
    (home / "seeds").mkdir()
    for k in range(3):
        cv2.imwrite(str(home / "seeds" / f"{k}.png"), images[k])
    for name in ("bad.png", "worse.png"):
        (home / "seeds" / name).write_bytes(b"not a picture")
    more = dict(MODES[mode])
    of_seeds = {name: more.pop(name) for name in ("prioritise", "limit") if name in more}
    values = {
        "original": {"path": str(DEMO / "original.onnx")},
        "deployed": {"path": str(DEMO / "deployed.tflite")},
        "seeds": {"path": str(home / "seeds"), **of_seeds},
        "search": {"strategy": "dflare", "max_queries": 20, "timeout_s": 0},
        "survey": {"queries": 2, "pursuit": 4},
        **more,
    }
    (home / "campaign.json").write_text(json.dumps(values))


def run(home: Path, kill: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, SCRIPT, home, str(kill)], env=environment(home), cwd=home,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def learned(folder: Path) -> list[dict[str, Any]]:
    """What a campaign learned, and its control."""
    return [all_of(one) for one in (folder, folder / "control") if one.is_dir()]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(one, marks=[pytest.mark.slow] * (one not in IN_THE_GATE)) for one in MODES
    ],
)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The mode, what an undisturbed campaign learns, and how often it writes."""
    home = tmp_path_factory.mktemp(request.param)
    begin(home, request.param)
    ran = run(home, 0)
    assert ran.returncode == 0, ran.stderr
    return request.param, learned(home / "torn"), int(ran.stdout)


def check(home: Path, whole: Any, kill: int) -> None:
    mode, expected, _ = whole
    begin(home, mode)
    torn = run(home, kill)
    assert torn.returncode == KILLED, torn.stderr
    for folder in home.glob("torn/samples/*"):  # of a kill between writing a sample and naming it
        (folder / f".new-{'0' * 32}").write_bytes(b"half")
    resumed = run(home, 0)
    assert resumed.returncode == 0, resumed.stderr
    assert not list(home.rglob(".new-*"))
    assert learned(home / "torn") == expected, f"killed after write {kill}"


@pytest.mark.extended
def test_killed_after_one_write(tmp_path: Path, whole: Any) -> None:
    kill = IN_THE_GATE.get(whole[0], whole[2] - 7)
    assert kill <= whole[2]
    check(tmp_path, whole, kill)


@pytest.mark.slow
def test_killed_after_every_write(tmp_path: Path, whole: Any) -> None:
    for kill in range(1, whole[2] + 1):
        if kill != IN_THE_GATE.get(whole[0]):
            check(tmp_path, whole, kill)
            shutil.rmtree(tmp_path / "torn")
            shutil.rmtree(tmp_path / "seeds")
