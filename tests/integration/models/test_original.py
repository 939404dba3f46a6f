"""The original model in processes of its own: given up when it doesn't answer, the same to the bit when it does."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import edgeflare
from fragile_runtime import install
from small_models import TFLITE, dense_onnx, endless_onnx

from edgeflare.errors import DeviceAwayError, InferenceFailedError, ModelError
from edgeflare.models import InputSpec, OriginalModel, original
from edgeflare.models.original_process import ModelProcess, ProcessEndedError
from edgeflare.types import Sample
from edgeflare_agent.preprocess import prepare
from edgeflare_agent.runtimes import load

SPEC = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1, scale=(1, 255))
DARK = np.zeros((8, 8, 1), np.uint8)
BRIGHT = np.full((8, 8, 1), 255, np.uint8)


def images(count: int) -> list[Sample]:
    return list(np.random.default_rng(5).integers(0, 256, (count, 8, 8, 1), np.uint8))


def opened(path: Path, runtime: str = "onnx", timeout_s: float = 60.0) -> OriginalModel:
    model = OriginalModel(path, runtime, {}, timeout_s=timeout_s)
    model.configure(SPEC, None)
    return model


def processes() -> set[int]:
    """This process's children that serve a model."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if (
                parent == os.getpid()
                and b"edgeflare_agent.child" in (folder / "cmdline").read_bytes()
            ):
                found.add(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def test_no_code_of_the_current_folder_runs(tmp_path, monkeypatch) -> None:
    for name in ("json", "socket", "numpy", "edgeflare_agent"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    opened(TFLITE / "float.tflite", "tflite").close()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("runtime", ["onnx", "tflite"])
def test_answers_are_those_of_the_runtime_to_the_bit(runtime: str, tmp_path: Path) -> None:
    path = TFLITE / "float.tflite"
    if runtime == "onnx":
        path = dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1])
    here = load(str(path), runtime, {})
    expected = [here.run(prepare(one, SPEC))[0] for one in images(20)]
    model = opened(path, runtime)
    assert model.in_effect == here.describe()
    raws, seconds = model.raw_answer(images(20))
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(model.raw, images(20)))
    model.close()
    assert len(seconds) == 20
    for one, other, wanted in zip(raws, again, expected, strict=True):
        assert isinstance(one, np.ndarray)
        np.testing.assert_array_equal(one, wanted, strict=True)
        np.testing.assert_array_equal(other, wanted, strict=True)


def test_an_inference_that_does_not_end_is_given_up_and_the_next_one_answers(tmp_path) -> None:
    model = opened(endless_onnx(tmp_path / "m.onnx", above=0.5), timeout_s=1)
    before = model.raw(DARK)
    first = processes()
    for samples in ([BRIGHT], [DARK, BRIGHT]):
        with pytest.raises(InferenceFailedError, match="within 1"):
            model.raw_answer(samples)
    np.testing.assert_array_equal(np.asarray(model.raw(DARK)), np.asarray(before))
    assert len(first) == len(processes()) == 1
    assert first != processes()
    model.close()
    assert not processes()


def killed(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """End a process at once, and wait until it has ended."""
    os.kill(pid, number)
    while not Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].startswith(" Z"):
        time.sleep(0.01)


def test_a_process_that_is_killed_costs_no_answer(tmp_path: Path) -> None:
    model = opened(endless_onnx(tmp_path / "m.onnx", above=0.5))
    notices: list[str] = []
    model.on_notice = notices.append
    before = np.asarray(model.raw(DARK))
    (first,) = processes()
    os.kill(first, signal.SIGSTOP)  # it is under way for sure
    killer = threading.Timer(0.2, os.kill, (first, signal.SIGKILL))
    killer.start()
    np.testing.assert_array_equal(np.asarray(model.raw(DARK)), before)
    killer.join()
    (second,) = processes()
    killed(second)
    np.testing.assert_array_equal(np.asarray(model.raw(DARK)), before)
    (third,) = processes()
    killed(third)
    time.sleep(0.6)  # idle for longer than a moment
    np.testing.assert_array_equal(np.asarray(model.raw(DARK)), before)
    model.close()
    (told,) = notices
    assert "signal 9" in told


@pytest.mark.parametrize(
    ("way", "how"),
    [
        ("SIGKILL", "signal 9, as the system does when memory is short"),
        pytest.param("SIGSEGV", "SIGSEGV", marks=pytest.mark.extended),
        pytest.param("SIGABRT", "SIGABRT", marks=pytest.mark.extended),
        pytest.param("exit", "exit status 0", marks=pytest.mark.extended),
        pytest.param("half a frame", "exit status 0", marks=pytest.mark.extended),
        pytest.param("nonsense", "exit status 0", marks=pytest.mark.extended),
    ],
)
def test_only_an_input_at_which_three_processes_end_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, how: str
) -> None:
    monkeypatch.setattr(original, "PAUSE_S", 0.0)
    left = install(tmp_path, monkeypatch, "values.max() > 0.5", way)
    left.write_text("0")
    model = opened(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]))
    bright = np.asarray(model.raw(BRIGHT))
    left.write_text("2")
    np.testing.assert_array_equal(np.asarray(model.raw(BRIGHT)), bright)
    left.write_text("3")
    with pytest.raises(InferenceFailedError, match=f"{how}.*3 times"):
        model.raw_answer([DARK, BRIGHT])
    assert left.read_text() == "0"
    np.testing.assert_array_equal(np.asarray(model.raw(BRIGHT)), bright)
    model.close()


def test_a_model_that_can_not_be_loaded_again_is_no_failure_of_an_input(tmp_path: Path) -> None:
    path = dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1])
    model = opened(path)
    before = np.asarray(model.raw(DARK))
    path.rename(tmp_path / "away.onnx")
    (first,) = processes()
    killed(first)
    with pytest.raises(DeviceAwayError, match=r"m\.onnx; it"):
        model.raw(DARK)
    (tmp_path / "away.onnx").rename(path)
    np.testing.assert_array_equal(np.asarray(model.raw(DARK)), before)
    model.close()


def test_where_no_further_process_can_be_started_those_that_run_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]))
    model._most, model._start_s = 4, 0.0  # another one is wanted as soon as one thread waits
    tries: list[str] = []

    def refused(path: str, *_: object) -> None:
        tries.append(path)
        raise ProcessEndedError(f"no process can be started for {path}", may_pass=True)

    monkeypatch.setattr(original, "ModelProcess", refused)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(model.raw, images(40)))
    assert len(answers) == 40
    assert tries
    (last,) = processes()
    killed(last)
    monkeypatch.setattr(original, "PAUSE_S", 0.0)
    tries.clear()
    with pytest.raises(DeviceAwayError):
        model.raw(DARK)
    assert len(tries) == original._MOST_LOADS
    model.close()


def test_a_further_process_that_ends_in_loading_is_started_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]))
    model._most, model._start_s = 2, 0.0
    tries: list[str] = []

    def ending_once(path: str, *more: Any) -> ModelProcess:
        tries.append(path)
        if len(tries) == 1:
            raise ProcessEndedError("its process was killed", may_pass=True)
        return ModelProcess(path, *more)

    monkeypatch.setattr(original, "ModelProcess", ending_once)
    monkeypatch.setattr(original, "PAUSE_S", 0.0)
    with ThreadPoolExecutor(1) as pool, model._borrowed():  # the only process is busy
        asked = pool.submit(model.raw, DARK)
        try:
            asked.result(60)
        finally:
            model.close()
    assert len(tries) == 2


def test_closing_ends_what_is_under_way(tmp_path: Path) -> None:
    model = opened(endless_onnx(tmp_path / "m.onnx", above=0.5))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(model.raw, BRIGHT)
        model.close()
        with pytest.raises(InferenceFailedError):
            asked.result()
    assert not processes()


def test_what_can_not_be_loaded_is_reported_as_before(tmp_path: Path) -> None:
    (tmp_path / "words.onnx").write_text("not a model")
    with pytest.raises(ModelError, match=r"load .*words\.onnx"):
        OriginalModel(tmp_path / "words.onnx", "onnx", {})
    with pytest.raises(ModelError, match="option 'colour'"):
        OriginalModel(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]), "onnx", {"colour": 1})
    assert not processes()


@pytest.mark.extended
def test_an_original_that_never_answers_ends_a_campaign_with_one_sentence(tmp_path: Path) -> None:
    endless = endless_onnx(tmp_path / "endless.onnx")
    deployed = dense_onnx(tmp_path / "deployed.onnx", [1, 8, 8, 1])
    np.savez(tmp_path / "seeds.npz", images=np.stack(images(2)))
    ran = edgeflare(
        *("run", "--original", endless, "--deployed", deployed, "--seeds", tmp_path / "seeds.npz"),
        *("--original-timeout", 1),
        home=tmp_path,
    )
    assert ran.code == 3, ran.err
    assert "answer within 1" in ran.sentence
    assert "Traceback" not in ran.err
