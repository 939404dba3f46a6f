"""``edgeflare repair recipes``: other quantisations of the original, searched again and compared."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from command import DEMO, DEMO_PAIR, edgeflare, must_run

from edgeflare import replay_base, replay_config, search
from edgeflare.analysis import Estimate
from edgeflare.explanation import explain_campaign
from edgeflare.repair import PRESENT, RecipeFigures
from edgeflare.repair.recipes import front_of, winner_of
from edgeflare.repair.tflite_recipes import find_quantizer

MNIST = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist"
DIGITS = {"path": DEMO / "seeds.npz", "limit": 6}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An explained campaign of an int8 model that deviates."""
    folder = tmp_path_factory.mktemp("home") / "out"
    pair = (MNIST / "lenet5.onnx", MNIST / "lenet5_quantized.onnx")
    search(*({"path": one, "input": {"scale": "1/255"}} for one in pair), DIGITS, folder=folder)
    explain_campaign(folder, replay_config(replay_base(folder)))
    return folder


@pytest.mark.extended
def test_they_are_searched_again_and_the_best_is_a_script_that_makes_it_again(campaign) -> None:
    wanted = ("--recipe", "int8-weights", "--recipe", "int8-per-tensor", "--recipe", "int8-float-1")
    ran = must_run("repair", "recipes", campaign, *wanted, "--json", home=campaign.parent)
    found = {one["name"]: one for one in ran.json["candidates"]}
    assert set(found) == {PRESENT, "int8-weights", "int8-per-tensor", "int8-float-1"}
    best, present = found["int8-weights"], found[PRESENT]
    assert best["disagreement"]["value"] < present["disagreement"]["value"] / 1.4
    assert best["size"] < present["size"]
    assert best["is_front"]
    assert found["int8-float-1"]["in_float"]
    assert found["int8-float-1"]["size"] > found["int8-per-tensor"]["size"]
    assert ran.json["winner"] == "int8-weights"
    folder = campaign / "repair" / "recipes"
    assert (folder / "pareto.svg").read_text().startswith("<svg")
    script = folder / "int8-weights.py"
    check_script(script, Path(best["file"]))
    before = {one: one.stat().st_mtime_ns for one in (folder / "models").iterdir()}
    again = edgeflare("repair", "recipes", campaign, *wanted, home=campaign.parent)
    assert "Ship int8-weights" in again.out or "int8-weights" in again.out
    assert {one: one.stat().st_mtime_ns for one in (folder / "models").iterdir()} == before


def check_script(script: Path, model: Path) -> None:
    """Without edgeflare the script makes a model that answers to the last bit as the candidate."""
    done = subprocess.run([sys.executable, "-I", str(script)], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    made = script.with_suffix(model.suffix)
    with np.load(script.with_name("calibration.npz")) as stored:
        inputs = [stored[name] for name in stored.files]
    sessions = [onnxruntime.InferenceSession(str(one)) for one in (made, model)]
    for one in inputs:
        first, second = (each.run(None, {each.get_inputs()[0].name: one})[0] for each in sessions)
        np.testing.assert_array_equal(first, second)


@pytest.mark.extended
def test_a_tflite_model_of_an_onnx_original_is_compared_with_onnx_candidates(tmp_path) -> None:
    """The runtime's options are those of the deployed model alone."""
    flags = ("--limit", 4, "--no-survey", "--runtime-option", "delegate=false")
    assert edgeflare("run", *DEMO_PAIR, *flags, "--out", "out", home=tmp_path).code == 0
    ran = must_run("repair", "recipes", "out", "--recipe", "int8-dynamic", home=tmp_path)
    assert "recipes' models" in ran.out
    assert "options (delegate=False) don't" in ran.out
    assert "operators in float" in ran.out
    unknown = edgeflare("repair", "recipes", "out", "--recipe", "int8-float-1", home=tmp_path)
    assert unknown.code == 2
    assert "int8-float-1; take int8-per-channel" in unknown.sentence


@pytest.mark.slow
def test_the_whole_network_is_never_kept_in_float(tmp_path: Path) -> None:
    """Of a distilled model one layer may stand for all of the original's."""
    pair = (MNIST / "lenet5.onnx", MNIST / "lenet5_distilled.onnx")
    folder = tmp_path / "out"
    search(*({"path": one, "input": {"scale": "1/255"}} for one in pair), DIGITS, folder=folder)
    explain_campaign(folder, replay_config(replay_base(folder)))
    ran = edgeflare("repair", "recipes", "out", "--recipe", "int8-weights", home=tmp_path)
    assert "float: it stands" in ran.out
    unknown = edgeflare("repair", "recipes", "out", "--recipe", "int8-float-1", home=tmp_path)
    assert "recipe int8-float-1" in unknown.sentence


@pytest.mark.slow
def test_a_tflite_original_is_quantised_in_an_environment_of_its_own(tmp_path, monkeypatch) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    monkeypatch.setenv("XDG_CACHE_HOME", cache["XDG_CACHE_HOME"])
    try:
        python, _ = find_quantizer()
    except Exception as error:  # noqa: BLE001 - whatever pip lacks
        pytest.skip(str(error))
    pair = DEMO / "original.tflite", DEMO / "deployed.tflite"
    search(*pair, DIGITS, folder=tmp_path / "out")
    ran = must_run("repair", "recipes", "out", "--json", home=tmp_path, extra=cache)
    assert ran.json["failed"] == {}
    names = {"int8", "int16-activations", "int8-dynamic", "int8-weights"}
    files = {one["name"]: one["file"] for one in ran.json["candidates"]}
    assert set(files) == {PRESENT, *names}
    if script := ran.json["script"]:
        subprocess.run([python, "-I", script], check=True, capture_output=True)
        made = Path(script).with_suffix(".tflite")
        assert made.read_bytes() == Path(files[ran.json["winner"]]).read_bytes()


def run_of_tflite(home: Path) -> None:
    flags = ("--original", DEMO / "original.tflite", "--deployed", DEMO / "deployed.tflite")
    seeds = ("--seeds", DEMO / "seeds.npz", "--limit", 2, "--no-survey", "--out", "out")
    assert edgeflare("run", *flags, *seeds, home=home).code == 0


@pytest.mark.extended
def test_a_quantiser_that_cannot_be_installed_is_told(tmp_path: Path) -> None:
    run_of_tflite(tmp_path)
    offline = {"PIP_NO_INDEX": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = edgeflare("repair", "recipes", "out", home=tmp_path, extra=offline)
    assert ran.code == 2
    assert "pip can't install" in ran.sentence
    assert ran.sentence.endswith("--quantizer-python PATH")


def test_a_stated_python_without_the_quantiser_is_told(tmp_path: Path) -> None:
    run_of_tflite(tmp_path)
    stated = ("--quantizer-python", tmp_path / "python")
    ran = edgeflare("repair", "recipes", "out", *stated, home=tmp_path)
    assert ran.code == 2
    assert "has no ai-edge-quantizer" in ran.sentence


def figures(
    name: str, size: int, disagreement: float, latency_s: float | None = None
) -> RecipeFigures:
    estimate = Estimate(disagreement, disagreement, disagreement)
    return RecipeFigures(name, "", size, estimate, None, 0, latency_s, None)


@pytest.mark.parametrize(
    ("others", "winner"),
    [
        ([("a", 90, 0.2), ("b", 104, 0.1), ("c", 200, 0.01)], "b"),
        ([("a", 90, 0.3), ("c", 106, 0.01)], None),
        ([("a", 90, 0.1), ("b", 80, 0.1)], "b"),
    ],
)
def test_the_winner_is_no_larger_and_deviates_less(others, winner) -> None:
    present = figures(PRESENT, 100, 0.3)
    found = winner_of([present, *(figures(*one) for one in others)], present)
    assert (found and found.name) == winner


@pytest.mark.parametrize(
    ("present_s", "least_s", "winner"),
    [
        pytest.param(0.010, 0.068, "other", id="six times as long is slower"),
        pytest.param(0.010, 0.014, "least", id="less than half as long again isn't"),
        pytest.param(0.0002, 0.0011, "least", id="nor is less than a millisecond"),
        pytest.param(None, 5.0, "least", id="what isn't known doesn't count"),
    ],
)
def test_the_winner_is_no_slower(present_s: float | None, least_s: float, winner: str) -> None:
    present = figures(PRESENT, 100, 0.3, present_s)
    others = [figures("least", 90, 0.1, least_s), figures("other", 90, 0.2, present_s)]
    found = winner_of([present, *others], present)
    assert found.name == winner


def test_nothing_on_the_front_is_beaten_in_size_and_disagreement() -> None:
    points = {"a": (80, 0.3), "b": (90, 0.3), "c": (90, 0.2), "d": (100, 0.2), "e": (120, 0.1)}
    assert front_of(points) == {"a", "c", "e"}
