"""Bad input gets one clear sentence and the right exit code."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from command import DEMO, DEMO_PAIR, Ran, edgeflare, must_run
from onnx import TensorProto, helper

from edgeflare.store import Store
from edgeflare.triage.cause import Triage


@pytest.fixture
def home(tmp_path: Path) -> Path:
    images = np.load(DEMO / "seeds.npz")["images"]
    (tmp_path / "digits").mkdir()
    for index, image in enumerate(images[:4]):
        cv2.imwrite(str(tmp_path / "digits" / f"{index}.png"), image)
    return tmp_path


def run(home: Path, **changes: object) -> Ran:
    flags = {
        "original": DEMO / "original.onnx",
        "deployed": DEMO / "deployed.tflite",
        "seeds": home / "digits",
        **changes,
    }
    listed: list[object] = []
    for name, value in flags.items():
        listed += [f"--{name.replace('_', '-')}", value]
    return edgeflare("run", *listed, home=home)


def classifier(path: Path, classes: int, shape: tuple[int, ...] = (1, 28, 28, 1)) -> Path:
    """Write an ONNX model with so many classes."""
    size = int(np.prod(shape))
    weights = np.random.default_rng(0).normal(size=(size, classes)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["x"], ["flat"]),
            helper.make_node("MatMul", ["flat", "w"], ["y"]),
        ],
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, classes))],
        [helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path


def empty_folder(home: Path) -> Ran:
    (home / "nothing").mkdir()
    return run(home, seeds=home / "nothing")


def text_named_tflite(home: Path) -> Ran:
    (home / "notes.tflite").write_text("not a model, only words " * 100)
    return run(home, deployed=home / "notes.tflite")


def text_named_onnx(home: Path) -> Ran:
    (home / "notes.onnx").write_text("not a model, only words " * 100)
    return run(home, original=home / "notes.onnx")


def wrong_size(home: Path) -> Ran:
    cv2.imwrite(str(home / "digits" / "big.png"), np.zeros((40, 30), np.uint8))
    return run(home)


def too_few_queries(home: Path) -> Ran:
    return run(home, total_queries=3)


def another_shape(home: Path) -> Ran:
    model = classifier(home / "wide.onnx", 10, (1, 32, 32, 1))
    return run(home, deployed=model)


CASES: dict[str, tuple[Callable[[Path], Ran], int, str]] = {
    "missing model": (lambda home: run(home, original=home / "none.onnx"), 2, "none.onnx"),
    "folder as a model": (lambda home: run(home, original=home / "digits"), 2, "is a folder"),
    "missing seeds": (lambda home: run(home, seeds=home / "none"), 2, "none"),
    "text named .tflite": (text_named_tflite, 2, "notes.tflite"),
    "text named .onnx": (text_named_onnx, 2, "notes.onnx"),
    "class counts differ": (
        lambda home: run(home, deployed=classifier(home / "seven.onnx", 7)),
        2,
        "10 classes and the deployed model 7",
    ),
    "input sizes differ": (another_shape, 2, "--deployed-input resize=bilinear"),
    "queries for fewer than the seeds": (too_few_queries, 2, "--total-queries"),
    "wrong image size": (wrong_size, 2, "--resize"),
    "empty folder": (empty_folder, 2, "nothing"),
    "unknown device": (lambda home: run(home, device="pi9"), 2, "pi9"),
    "unknown strategy": (lambda home: run(home, strategy="magic"), 2, "dflare"),
    "unknown operator": (lambda home: run(home, operator="sharpen"), 2, "sharpen"),
    "unknown runtime option": (lambda home: run(home, runtime_option="gpu=7"), 2, "gpu"),
    "malformed flag": (lambda home: run(home, input="scale"), 2, "KEY=VALUE"),
    "unknown input key": (lambda home: run(home, input="zoom=2"), 2, "zoom"),
    "folder in the way": (lambda home: run(home, out=home / "digits"), 2, "digits"),
    "no flags at all": (lambda home: edgeflare("run", home=home), 2, "--original"),
    "a name too long": (lambda home: edgeflare("replay", "x" * 300, home=home), 2, "too long"),
    "a user who is not here": (lambda home: run(home, seeds="~no-such-user/x"), 2, "no-such-user"),
    "not a campaign": (lambda home: edgeflare("show", home / "digits", home=home), 2, "digits"),
    "nobody listens": (lambda home: run(home, device="ssh://me@127.0.0.1:9"), 3, "127.0.0.1"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_gets_one_sentence(home: Path, case: str) -> None:
    attempt, code, words = CASES[case]
    ran = attempt(home)
    assert ran.code == code, ran.err
    assert words in ran.sentence
    assert "Traceback" not in ran.err
    assert not ran.out


@pytest.mark.parametrize(
    "flag", ["--input", pytest.param("--deployed-input", marks=pytest.mark.extended)]
)
def test_scaling_stated_for_one_model_holds_for_both(home: Path, flag: str) -> None:
    must_run(
        "run", "--original", classifier(home / "a.onnx", 10), "--deployed",
        classifier(home / "b.onnx", 10), "--seeds", home / "digits", flag, "scale=1/255",
        "--max-queries", 2, "--no-survey", home=home,
    )  # fmt: skip


def test_a_corrupt_image_among_good_ones_is_named_skipped_and_counted(home: Path) -> None:
    (home / "digits" / "torn.png").write_bytes((home / "digits" / "0.png").read_bytes()[:60])
    ran = run(home, out=home / "done", max_queries=5)
    assert ran.code == 0, ran.err
    assert "file skipped: torn.png" in ran.err
    assert edgeflare("show", "done", "--json", home=home).json["skipped"] == 1


def test_a_scaling_that_contradicts_the_files_quantisation_is_reported(home: Path) -> None:
    ran = run(home, deployed_input="mean=127.5", max_queries=1)
    assert ran.code == 0, ran.err
    assert "-127.5 to 127.5" in ran.err
    assert "file says scale=1/255" in ran.err


def test_wrong_scaling_of_one_model_is_named_and_ends_with_2(home: Path) -> None:
    out = home / "new"
    ran = run(home, seeds=DEMO / "seeds.npz", limit=20, original_input="scale=1", out=out)
    assert ran.code == 2, ran.out + ran.err
    assert "preprocessing" in ran.sentence
    assert "--allow-disagreement" in ran.sentence
    with Store.open(out) as store:
        assert store.state.finished
        found = store.result("triage", Triage)
    assert found is not None
    assert (found.causes[0].kind, found.causes[0].proof) == ("preprocessing", "corrected")
    assert edgeflare("resume", "new", home=home).code == 2
    assert edgeflare("resume", "new", "--allow-disagreement", home=home).code == 0


def test_a_label_that_is_no_class_is_named(home: Path) -> None:
    images = np.load(DEMO / "seeds.npz")["images"][:3]
    np.savez(home / "seeds.npz", images=images, labels=np.array([1, 2, 10]))
    ran = run(home, seeds=home / "seeds.npz")
    assert ran.code == 2
    assert "label 10" in ran.sentence


@pytest.mark.extended
def test_the_user_may_accept_it(home: Path) -> None:
    ran = must_run(
        "run", *DEMO_PAIR, "--limit", 20, "--original-input", "scale=1", "--max-queries", 1,
        "--allow-disagreement", home=home,
    )  # fmt: skip
    assert "preprocessing" not in ran.sentence
    assert "preprocessing" in ran.err
