"""Builds are kept by what goes into them; half a build is none."""

import json
import threading
from pathlib import Path

import pytest

from edgeflare.errors import DeviceError
from edgeflare_lab.virtual import BoardSettings, build
from edgeflare_lab.virtual.board_files import BoardState, builds_in_use, claim_build, write_state
from edgeflare_lab.virtual.build import build_key, ensure_build, read_build, remove_builds
from edgeflare_lab.virtual.tools import BuildLog, ToolError, run_tool

FACTS = {
    "folder": "", "debian": "12.1", "kernel": "6.1", "libraries": {"numpy": "2.0"},
    "mirror": "http://one.test", "built_s": 1.5, "image_mb": 300,
}  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder of builds of a machine with all tools and libraries of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(build, "check_build_tools", lambda: ["pip"])
    monkeypatch.setattr(build, "check_space", lambda folder: None)
    return tmp_path / "cache" / "edgeflare" / "virtual"


def silent(what: str, seconds: float | None) -> None:
    """Hear nothing."""


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("vmlinuz", "initrd", "disk.img"):
        (folder / name).write_text(name)
    facts = {**FACTS, "files": build.describe_files(folder)}
    (folder / "build.json").write_text(json.dumps(facts))
    return folder


def test_the_key_is_of_all_that_goes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    key = build_key({"numpy": "2.0", "onnxruntime": "1.0"})
    assert build_key({"onnxruntime": "1.0", "numpy": "2.0"}) == key
    assert build_key({"numpy": "2.1", "onnxruntime": "1.0"}) != key
    monkeypatch.setattr(build.packages, "PACKAGES", ("bash",))
    assert build_key({"numpy": "2.0", "onnxruntime": "1.0"}) != key


@pytest.mark.parametrize("lost", ["vmlinuz", "initrd", "disk.img", "build.json"])
def test_half_a_build_is_none(lost: str, cache: Path) -> None:
    folder = fill(cache / "key")
    whole = read_build("key")
    assert (whole.folder, whole.libraries) == (folder, {"numpy": "2.0"})
    (folder / lost).unlink()
    assert read_build("key") is None


@pytest.mark.parametrize("name", ["vmlinuz", "initrd", "disk.img", "build.json"])
@pytest.mark.parametrize("content", [b"", b"cut", b"\xff" * 8, None], ids=repr)
def test_a_damaged_build_is_made_anew(name, content, cache, monkeypatch) -> None:
    monkeypatch.setattr(build, "_make", lambda work, *_: fill(work / "out"))
    made, new = ensure_build(BoardSettings(), silent)
    assert new
    whole = (made.folder / name).read_bytes()
    (made.folder / name).write_bytes(bytes(len(whole)) if content is None else content)
    told: list[str] = []
    assert ensure_build(BoardSettings(), lambda what, _: told.append(what)) == (made, True)
    assert "removing a build" in told[-1]
    assert (made.folder / name).read_bytes() == whole
    assert ensure_build(BoardSettings(), silent) == (made, False)


def test_two_at_once_build_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    all_begun = threading.Event()

    def make(work: Path, *_: object) -> Path:
        made.append(work)
        assert all_begun.wait(60)
        return fill(work / "out")

    monkeypatch.setattr(build, "_make", make)
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda: results.append(ensure_build(BoardSettings(), silent)[1]))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    all_begun.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert sorted(results) == [False, False, True]
    assert list(cache.glob("building-*")) == []
    assert ensure_build(BoardSettings(rebuild=True), silent)[1]
    assert len(made) == 2


def test_a_build_that_fails_leaves_nothing_but_its_log(cache, monkeypatch) -> None:
    (cache / "building-killed").mkdir(parents=True)

    def make(work: Path, *_: object) -> Path:
        fill(work / "out")
        raise DeviceError("the mirror is away")

    monkeypatch.setattr(build, "_make", make)
    with pytest.raises(DeviceError, match="the mirror"):
        ensure_build(BoardSettings(), silent)
    assert sorted(path.name for path in cache.iterdir()) == ["build.log", "lock"]


def test_builds_that_no_board_uses_are_removed(cache: Path, tmp_path: Path) -> None:
    for name in ("used", "claimed", "unused"):
        fill(cache / name)
    board = tmp_path / "state" / "edgeflare" / "virtual" / "virtual"
    board.mkdir(parents=True)
    write_state(board, BoardState("used", 2222, 2, 1024, "cortex-a72", 0.0, 7.0, "3.11.2"))
    claim_build(board, "claimed")  # by an `up` that has not come to its end
    remove_builds(builds_in_use)
    assert read_build("used") is not None
    assert read_build("claimed") is not None
    assert read_build("unused") is None


def test_a_tool_that_fails_is_reported_by_its_last_words(tmp_path: Path) -> None:
    log = BuildLog(tmp_path / "build.log")
    script = "for n in 1 2 3 4 5 6 7 8; do echo line $n; done; echo why >&2; exit 3"
    with pytest.raises(ToolError) as caught:
        run_tool(["sh", "-c", script], log, doing="counting")
    assert "3): line 4" in str(caught.value)
    assert f"log is {log.path}" in str(caught.value)
    assert "line 1\n" in log.path.read_text()
    with pytest.raises(ToolError, match=r"failed: .*no-such-tool"):
        run_tool(["no-such-tool"], log, doing="counting")
    assert run_tool(["sh", "-c", "echo fine; exit 1"], log, doing="x", success=(0, 1)) == "fine\n"
