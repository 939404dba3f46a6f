"""What a command ends with where its stdout or stderr is closed, full, or has no reader."""

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command import DEMO_PAIR, environment

from edgeflare import campaign_status, cli
from edgeflare.cli.display.streams import Guarded
from edgeflare.store import Store

FULL = Path("/dev/full")
SMALL = ("--limit", 1, "--no-survey", "--max-queries", 5)
COMMANDS = {
    "help": ("--help",),
    "show": ("show", "campaign"),
    "json": ("show", "campaign", "--json"),
    "csv": ("report", "campaign", "--format", "csv"),
    "mistake": ("show", "nowhere"),
    "usage": ("show", "--nothing"),
    "run": ("run", *DEMO_PAIR, *SMALL, "--out", "new"),
    "limit": ("run", "limits.toml", "--out", "new"),
}
OWN_CODES = {"mistake": 2, "usage": 2, "limit": 1}
"""Those of commands that end with another code than 0."""


class Ended(NamedTuple):
    code: int
    err: str = ""


def started(home: Path, name: str, **streams: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "edgeflare.cli", *map(str, COMMANDS[name])]
    given = {"stdin": subprocess.DEVNULL, "cwd": home, "env": environment(home), **streams}
    return subprocess.Popen(command, **given)


def head(home: Path, name: str) -> Ended:
    """As ``edgeflare ... 2>&1 | head -c 1``, whose reader is gone early."""
    process = started(home, name, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    process.stdout.read(1)
    process.stdout.close()
    return Ended(process.wait(300))


def no_reader(home: Path, name: str) -> Ended:
    """The reader of both has ended before anything is printed."""
    read, write = os.pipe()
    os.close(read)
    process = started(home, name, stdout=write, stderr=write)
    os.close(write)
    return Ended(process.wait(300))


def closed(home: Path, name: str) -> Ended:
    """As ``edgeflare ... <&- >&- 2>&-``."""
    return Ended(started(home, name, preexec_fn=lambda: os.closerange(0, 3)).wait(300))


def full(home: Path, name: str) -> Ended:
    """Stdout is a file on a full disk."""
    with FULL.open("w") as disk:
        process = started(home, name, stdout=disk, stderr=subprocess.PIPE)
    return Ended(err=process.communicate(timeout=300)[1].decode(), code=process.returncode)


def full_log(home: Path, name: str) -> Ended:
    """Stderr is a file on a full disk."""
    with FULL.open("w") as disk:
        process = started(home, name, stdout=subprocess.DEVNULL, stderr=disk)
    return Ended(process.wait(300))


QUICK = [("show", head), ("json", full), ("run", head), ("run", closed)]
ALSO = [
    *(("csv", head), ("help", no_reader), ("limit", no_reader), ("usage", closed)),
    *(("mistake", full), ("limit", full), ("run", full_log), ("mistake", full_log)),
]
"""Each condition with commands that end well and others; each start costs a second."""
CASES = [*QUICK, *(pytest.param(*one, marks=pytest.mark.extended) for one in ALSO)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    Store.create(tmp_path / "campaign", {"seed": 4}, environment={}).close()
    pair = dict(zip(("original", "deployed", "seeds"), DEMO_PAIR[1::2], strict=True))
    tables = [f"[{name}]\npath = '{path}'" for name, path in pair.items()]
    tables += ["limit = 1", "[search]\nmax_queries = 20", "[survey]\nenabled = false"]
    tables += ["[limits]\nmax_deviation_rate = 0.0\nmax_seed_deviation_rate = 0.0"]
    (tmp_path / "limits.toml").write_text("\n".join(tables))
    return tmp_path


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("name", "condition"), CASES)
def test_each_command_ends_with_its_own_code(home, name, condition) -> None:
    ended = condition(home, name)
    own = OWN_CODES.get(name, 0)
    assert ended.code == (own or 3 if condition is full else own)
    if condition is full and name not in ("mistake", "usage"):
        assert "stdout: No space" in ended.err
        assert "Traceback" not in ended.err
        assert "Exception ignored" not in ended.err
    if "new" in COMMANDS[name]:
        assert campaign_status(home / "new").state == "finished"


def test_children_inherit_the_streams_that_replace_closed_ones(tmp_path: Path) -> None:
    child = "import os; [os.fstat(stream) for stream in range(3)]"
    parent = (
        "import subprocess, sys; from edgeflare.cli.display.streams import guard_streams; "
        f"guard_streams(); sys.exit(subprocess.call([sys.executable, '-S', '-c', {child!r}]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", parent],
        preexec_fn=lambda: os.closerange(0, 3),
        env=environment(tmp_path),
        check=False,
    )
    assert ended.returncode == 0


def in_this_process(
    monkeypatch: pytest.MonkeyPatch, app: Callable[[], object]
) -> tuple[object, Any, Any]:
    """Call `main` as a notebook does; return its code and the streams that took its texts."""
    out, err = io.StringIO(), io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["edgeflare", "--version"])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(cli, "app", app)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert (sys.stdout, sys.stderr) == (out, err)
    return end.value.code, out, err


def test_streams_that_another_program_has_set_stay_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = in_this_process(monkeypatch, cli.app)
    assert code == 0
    assert out.getvalue().startswith("edgeflare ")


@pytest.mark.parametrize(
    ("stated", "code", "said"),
    [("no more", 1, "no more\n"), (None, 0, ""), (4, 4, ""), ("", 1, "\n")],
)
def test_an_exit_ends_with_what_it_states(monkeypatch, stated, code, said) -> None:
    ended, _, err = in_this_process(monkeypatch, lambda: sys.exit(stated))
    assert (ended, err.getvalue()) == (code, said)


def test_what_shares_a_descriptor_that_failed_writes_to_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    guarded = Guarded(write)
    assert guarded.write(b"lost") == 4
    assert guarded.has_no_reader
    assert os.fstat(write).st_rdev == Path(os.devnull).stat().st_rdev
    os.write(write, b"of a library")
    os.close(write)


def test_a_terminal_that_is_gone_is_no_full_disk() -> None:
    master, terminal = os.openpty()
    guarded = Guarded(terminal)
    os.close(master)
    assert guarded.write(b"lost") == 4
    assert guarded.has_no_reader
    os.close(terminal)
