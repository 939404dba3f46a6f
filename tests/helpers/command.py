"""Runs the command line as a user does, in a home folder of the test's own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from edgeflare.cli import app

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = ROOT / "host" / "edgeflare" / "assets" / "demo"
DEMO_PAIR = (
    "--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite", "--seeds",
    DEMO / "seeds.npz",
)  # fmt: skip
"""Flags of ``run`` that name the demo's own models and seeds."""


class Ran(NamedTuple):
    code: int
    out: str
    err: str
    both: str = ""
    """What `edgeflare` printed to either, in its order."""

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """The last line on stderr."""
        return self.err.strip().splitlines()[-1] if self.err.strip() else ""


def environment(home: Path) -> dict[str, str]:
    """An environment whose home is a folder of the test's own."""
    paths = [str(ROOT / folder) for folder in ("host", "agent", "mutators")]
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("SSH_", "XDG_"))},
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(paths),
        "COLUMNS": "200",
    }


def edgeflare(*arguments: object, home: Path, extra: Mapping[str, str] | None = None) -> Ran:
    """Run ``edgeflare ARGUMENTS`` in `home`, with `extra` variables; return exit code, stdout and stderr.

    It runs in this process, which saves the second that a start takes: `edgeflare_process` starts one.
    """
    stated = {**dict.fromkeys(os.environ), **environment(home), **(extra or {})}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        done = CliRunner().invoke(
            app,
            list(map(str, arguments)),
            env=stated,
            catch_exceptions=False,
            prog_name="edgeflare",
        )
    return Ran(done.exit_code, done.stdout, done.stderr, done.output)


def must_run(*arguments: object, home: Path, extra: Mapping[str, str] | None = None) -> Ran:
    """Run ``edgeflare ARGUMENTS`` as `edgeflare` does; it must end with 0."""
    ran = edgeflare(*arguments, home=home, extra=extra)
    assert ran.code == 0, ran.err
    return ran


def edgeflare_process(*arguments: object, home: Path) -> Ran:
    """Do what `edgeflare` does in a process of its own, as a user's shell does."""
    done = subprocess.run(
        [sys.executable, "-m", "edgeflare.cli", *map(str, arguments)],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
