"""`edgeflare check`: the verdict, the cause with its proof, and the next step, in one command."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from command import DEMO, Ran, edgeflare

ORIGINAL, DEPLOYED = DEMO / "original.onnx", DEMO / "deployed.tflite"


def check(
    home: Path, *flags: object, seeds: Path = DEMO / "seeds.npz", deployed: Path = DEPLOYED
) -> Ran:
    limits = ("--limit", 24, "--survey-queries", 24, "--out", home / "out")
    return edgeflare("check", ORIGINAL, deployed, seeds, *limits, *flags, home=home)


def test_a_healthy_pair_is_told_with_its_own_inputs(tmp_path: Path) -> None:
    ran = check(tmp_path, "--json")
    found = ran.json
    assert (found["verdict"], ran.code) == ("cannot-tell", 4)  # it has no reference
    assert (found["causes"], found["number_format"]) == ([], "int8")
    assert found["agreement"] > found["expected"]
    assert (found["own"]["asked"], found["own"]["accuracy"]["labelled"]) == (24, 24)
    shown = edgeflare("show", "out", home=tmp_path)
    assert "agrees as well as healthy int8 pairs do" in shown.out


def test_probabilities_of_0_and_1_are_no_better_feed(tmp_path: Path) -> None:
    ran = edgeflare(
        *("check", ORIGINAL, DEPLOYED, DEMO / "seeds.npz", "--survey-queries", 24),
        *("--json", "--out", tmp_path / "out"),
        home=tmp_path,
    )
    assert (ran.json["verdict"], ran.json["causes"]) == ("cannot-tell", [])


def test_a_device_that_is_fed_otherwise_is_worse_and_told_how(tmp_path: Path) -> None:
    ran = check(tmp_path, "--deployed-input", "orientation=flip", "--json")
    first = ran.json["causes"][0]
    assert (ran.json["verdict"], ran.code) == ("worse", 1)
    assert (first["kind"], first["proof"]) == ("preprocessing", "corrected")
    assert first["change"] == {"orientation": "upright"}
    assert "--deployed-input orientation=upright" in first["next"]
    stored = edgeflare("analyse", "triage", tmp_path / "out", "--json", home=tmp_path).json
    assert stored["causes"] == ran.json["causes"]
    named = [one["name"] for one in ran.json["own"]["flips"]]
    assert len({*named}) == len(named) > 0


def test_without_a_device_there_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "devices.toml").write_text('[devices.away]\nhost = "127.0.0.1"\nport = 9\n')
    away = ("--device", "away", "--inventory", tmp_path / "devices.toml")
    ran = check(tmp_path, *away, "--json")
    assert (ran.json["verdict"], ran.json["causes"], ran.code) == (None, [], 3)
    assert ran.json["own"]["asked"] == 0


def test_a_file_alone_of_a_folder_is_checked(tmp_path: Path) -> None:
    images = np.load(DEMO / "seeds.npz")["images"]
    (tmp_path / "one").mkdir()
    cv2.imwrite(str(tmp_path / "one" / "0.png"), images[0])
    ran = check(tmp_path, "--json", seeds=tmp_path / "one")
    assert (ran.json["verdict"], ran.json["own"]["asked"], ran.code) == ("cannot-tell", 1, 4)


@pytest.mark.parametrize("which", ["deployed", "seeds"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, which: str) -> None:
    ran = check(tmp_path, **{which: tmp_path / "none.onnx"})
    assert ran.code == 2
    assert "none.onnx" in ran.sentence
    assert not (tmp_path / "out").exists()


def test_answers_that_depend_on_the_rule_for_resizing_are_remarked(tmp_path: Path) -> None:
    images = np.load(DEMO / "seeds.npz")["images"][:16]
    large = np.zeros((16, 4 * images.shape[1], 4 * images.shape[2]), np.uint8)
    large[:, 2::4, 2::4] = images.reshape(large[:, 2::4, 2::4].shape)  # what "nearest" takes
    (tmp_path / "large").mkdir()
    for number, image in enumerate(large):
        cv2.imwrite(str(tmp_path / "large" / f"{number}.png"), image)
    ran = check(tmp_path, "--resize", "nearest", "--json", seeds=tmp_path / "large")
    remark = next(each for each in ran.json["remarks"] if each["kind"] == "resize-rule")
    assert remark["evidence"]["stated"] == "nearest"
    assert remark["evidence"]["changed"] > 3
    assert ran.json["causes"] == []


@pytest.mark.extended
def test_what_a_device_returned_stands_for_a_file_that_cant_be_run_here_now(tmp_path: Path) -> None:
    deployed = tmp_path / "deployed.tflite"
    deployed.write_bytes(DEPLOYED.read_bytes())
    flags = ("--deployed-input", "orientation=flip", "--runtime-option", "kernels=reference")
    check(tmp_path, *flags, deployed=deployed)
    for spoil in (lambda: deployed.write_text("torn"), deployed.unlink):
        spoil()
        ran = edgeflare("analyse", "triage", "out", "--json", home=tmp_path)
        [first] = ran.json["causes"]
        assert (first["kind"], first["side"], ran.code) == ("preprocessing", "device", 0)
        assert first["change"] == {"orientation": "flip"}
        assert deployed.name in ran.json["ruled_out"]["file"]["name"]


def test_without_what_a_device_returned_such_a_file_is_named(tmp_path: Path) -> None:
    deployed = tmp_path / "deployed.tflite"
    deployed.write_bytes(DEPLOYED.read_bytes())
    check(tmp_path, deployed=deployed)
    deployed.write_bytes((DEMO / "original.tflite").read_bytes())  # another file than was run
    ran = edgeflare("analyse", "triage", "out", home=tmp_path)
    assert ran.code == 2
    assert deployed.name in ran.sentence
