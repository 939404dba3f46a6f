"""The agent keeps to Python 3.8, and its first file to 2.7."""

import subprocess
import sys
from pathlib import Path

import edgeflare_agent

PACKAGE = Path(edgeflare_agent.__file__).parent


def vermin(target: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    program = [
        sys.executable, "-c", "from vermin import main; main()", "--no-tips", "--eval-annotations",
        "-vv",
    ]  # fmt: skip
    return subprocess.run(
        [*program, f"--target={target}", *map(str, paths)], capture_output=True, text=True
    )


def test_the_agent_needs_nothing_newer_than_3_8() -> None:
    done = vermin("3.8-", PACKAGE)
    assert done.returncode == 0, done.stdout


def test_what_old_interpreters_parse_needs_nothing_newer_than_2_7() -> None:
    done = vermin("2.7-", PACKAGE / "__main__.py", PACKAGE / "__init__.py")
    assert done.returncode == 0, done.stdout


def test_the_check_can_fail(tmp_path: Path) -> None:
    newer = tmp_path / "newer.py"
    newer.write_text("def f(x):\n    match x:\n        case 1:\n            return {} | {}\n")
    assert vermin("3.8-", newer).returncode != 0


def test_what_old_interpreters_parse_is_ascii() -> None:
    for name in ("__main__.py", "__init__.py"):
        assert (PACKAGE / name).read_bytes().isascii()
