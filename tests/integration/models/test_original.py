"""The original model in processes of its own: given up when it doesn't answer, the same to the bit when it does."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from command import edgeflare
from small_models import TFLITE, dense_onnx, endless_onnx

from edgeflare.errors import InferenceFailedError, ModelError
from edgeflare.models import InputSpec, OriginalModel
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


def test_no_code_of_the_current_folder_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_an_inference_that_does_not_end_is_given_up_and_the_next_one_answers(
    tmp_path: Path,
) -> None:
    model = opened(endless_onnx(tmp_path / "m.onnx", above=0.5), timeout_s=1)
    before = model.raw(DARK)
    first = processes()
    for samples in ([BRIGHT], [DARK, BRIGHT]):
        with pytest.raises(InferenceFailedError, match=r"m\.onnx did not answer within 1 s; raise"):
            model.raw_answer(samples)
    np.testing.assert_array_equal(np.asarray(model.raw(DARK)), np.asarray(before))
    assert len(first) == len(processes()) == 1
    assert first != processes()
    model.close()
    assert not processes()


def test_a_process_that_is_killed_costs_the_answer_under_way_alone(tmp_path: Path) -> None:
    model = opened(endless_onnx(tmp_path / "m.onnx", above=0.5))
    model.raw(DARK)
    (first,) = processes()
    os.kill(first, signal.SIGSTOP)  # it is under way for sure
    killer = threading.Timer(0.2, os.kill, (first, signal.SIGKILL))
    killer.start()
    with pytest.raises(
        InferenceFailedError, match=r"the runtime crashed running .*m\.onnx \(SIGKILL\)"
    ):
        model.raw(DARK)
    killer.join()
    model.raw(DARK)
    (second,) = processes()
    os.kill(second, signal.SIGKILL)
    while not Path(f"/proc/{second}/stat").read_text().rsplit(")", 1)[1].startswith(" Z"):
        time.sleep(0.01)
    time.sleep(0.6)  # idle for longer than a moment
    assert np.asarray(model.raw(DARK)).shape == (1, 4)
    model.close()


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
    with pytest.raises(ModelError, match=r"original model: onnx can't load .*words\.onnx"):
        OriginalModel(tmp_path / "words.onnx", "onnx", {})
    with pytest.raises(ModelError, match="no option 'colour'"):
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
    assert "endless.onnx did not answer within 1 s; raise original_timeout_s" in ran.sentence
    assert "Traceback" not in ran.err
