"""Programs that are killed are run again; what they do wrong by themselves is not tried twice."""

import sys
from pathlib import Path

import pytest

from edgeflare._internal import processes

PROGRAM = """
import os, pathlib, sys
tries, ways = pathlib.Path(sys.argv[1]), sys.argv[2].split(",")
tries.write_text(tries.read_text() + "x")
way = ways[len(tries.read_text()) - 1]
print("said", way)
sys.stdout.flush()
if way.isdigit():
    os.kill(os.getpid(), int(way))
sys.exit(way == "fail")
"""


@pytest.mark.parametrize(
    ("ways", "tries", "status"),
    [
        ("fine", 1, 0),
        ("9,9,fine", 3, 0),
        ("9,9,9,fine", 3, -9),
        ("9,fail,fine", 2, 1),
        ("11,fine", 1, -11),
    ],
)
def test_a_program_is_run_again_where_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: str, tries: int, status: int
) -> None:
    monkeypatch.setattr(processes, "PAUSE_S", 0.0)
    counted = tmp_path / "tries"
    counted.write_text("")
    command = [sys.executable, "-I", "-c", PROGRAM, str(counted), ways]
    done = processes.run_again_where_killed(command, 60.0)
    assert done.returncode == status
    assert len(counted.read_text()) == tries
    failed = processes.how_it_failed(done)
    assert ("killed 3 times" in failed) == (status == -9)
    assert failed.startswith("said") == (status != -9)


@pytest.mark.parametrize(
    ("status", "words"), [(-9, "signal 9, as"), (-11, "SIGSEGV"), (3, "exit status 3")]
)
def test_the_end_of_a_process_is_told(status: int, words: str) -> None:
    assert processes.described_status(status).startswith(words)
