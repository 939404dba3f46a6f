"""The commands that only read a campaign or a corpus run nothing that is named in it."""

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from campaigns import copy_of
from command import DEMO, edgeflare, environment

_READ_ALL = """
import shlex, sys

WATCHED = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "socket.bind")
RUNTIMES = ("onnxruntime", "ai_edge_litert", "tflite_runtime")

def watch(event, arguments):
    is_import = event == "import" and arguments[0].split(".")[0] in RUNTIMES
    is_model = event == "open" and str(arguments[0]).endswith((".onnx", ".tflite"))
    if is_import or is_model or event.startswith(WATCHED):
        raise RuntimeError(f"{event} {arguments}")

from typer.testing import CliRunner
from edgeflare.cli import app

sys.addaudithook(watch)
for line in sys.stdin:
    done = CliRunner().invoke(app, shlex.split(line), catch_exceptions=False)
    if done.exit_code != 0:
        sys.exit(f"{line}: {done.output}")
"""
COMMANDS = (
    "show campaign",
    "show campaign --json",
    "status campaign",
    "report campaign --out report.html",
    *(
        f"report campaign --format {one} --out {one}"
        for one in ("junit", "json", "markdown", "csv")
    ),
    "export campaign exported",
    "corpus show corpus",
    "corpus add another campaign",
    "corpus remove corpus --model deployed.tflite",
)


@pytest.fixture
def strangers(tmp_path: Path) -> Path:
    """A folder with a campaign whose device is a command, and with a corpus."""
    home = tmp_path / "home"
    home.mkdir()
    copied = copy_of("schema-5", tmp_path)
    for folder, name in ((copied.campaign, "campaign"), (copied.corpus, "corpus")):
        shutil.move(folder, home / name)
    with closing(sqlite3.connect(home / "campaign" / "campaign.sqlite")) as connection, connection:
        for column in ("config", "models"):
            change = f"update campaign set {column} = replace({column}, '/home/user/mnist', ?)"
            connection.execute(change, (str(DEMO),))
        change = "update facts set value = replace(value, 'python3', ?) where name = 'devices'"
        assert connection.execute(change, ("touch ran; python3",)).rowcount == 1
    return home


def run(home: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _READ_ALL], input="\n".join(lines), cwd=home, env=environment(home),
        text=True, capture_output=True,
    )  # fmt: skip


def test_no_program_no_model_and_no_connection(strangers: Path) -> None:
    done = run(strangers, *COMMANDS)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (strangers / "ran").exists()


@pytest.mark.parametrize("kind", ["campaign", "corpus"])
def test_a_database_that_a_strangers_folder_names_is_not_connected_to(tmp_path, kind) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/d"
        about = {"kind": kind, "url": url, "name": "c", "samples": None}
        (folder / "store.json").write_text(json.dumps(about))
        lines = {
            "campaign": ("show c", "status c", "report c --out r.html", "export c to"),
            "corpus": ("corpus show c", "corpus remove c --model m", "corpus add c nothing"),
        }[kind]
        for line in lines:
            done = edgeflare(*line.split(), home=tmp_path)
            assert done.code == 2, line
            assert "Traceback" not in done.err
        with pytest.raises(BlockingIOError):  # nobody has connected
            server.accept()
        done = edgeflare(*lines[0].split(), home=tmp_path)
        assert f"edgeflare show {url}/c" in " ".join(done.err.split())


@pytest.mark.extended
def test_the_watch_sees_a_command_that_loads_models(strangers: Path) -> None:
    done = run(strangers, "replay campaign --out again")
    assert done.returncode != 0
    assert "RuntimeError" in done.stderr or "deployed.tflite" in done.stderr
