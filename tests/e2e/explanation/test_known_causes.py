"""What `explain` charges findings to where the cause was planted, a campaign for each."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import DEMO
from onnx import TensorProto, helper, numpy_helper
from planted_causes import coarse, quantised
from small_models import save_onnx

from edgeflare import replay_base, replay_config, search
from edgeflare.campaign.events import Notice, silent
from edgeflare.errors import ModelError, UsageError
from edgeflare.explanation import Explanation, Remark, explain_campaign
from edgeflare.store import Store
from edgeflare.triage.cause import Triage

DELEGATE = Path(__file__).resolve().parents[2] / "helpers" / "delegate.cc"
TANH, SOFTMAX = 28, 25
DIGITS = {"path": DEMO / "seeds.npz", "limit": 8}
SCALED = {"scale": "1/255"}
ORIGINAL: dict[str, Any] = {"path": DEMO / "original.onnx"}
COPY: dict[str, Any] = {"path": DEMO / "original.tflite"}
FEW: dict[str, Any] = {"options": {"device_budget": 20}, "max_queries": 2000}
"""Limits of a search that finds enough to explain."""
Board = Callable[..., dict[str, Any]]


def explained(
    folder: Path,
    original: dict[str, Any],
    deployed: dict[str, Any],
    seeds: Any,
    *,
    least: int = 6,
    **more: Any,
) -> Explanation:
    """Search, and explain what was found: at least so many findings."""
    float_model = more.pop("float_model", None)
    progress = more.pop("progress", silent)
    search(original, deployed, seeds, folder=folder, **FEW, **more)
    config = replay_config(replay_base(folder))
    found = explain_campaign(folder, config, float_model=float_model, progress=progress)
    assert len(found.findings) >= least
    return found


def codes(found: Explanation) -> set[str]:
    return {one.code for one in found.notices if isinstance(one, Remark)}


def colour_model(path: Path) -> Path:
    """Write a linear classifier of 8 x 8 colour images."""
    nodes = [
        helper.make_node("Reshape", ["x", "row"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["sums"]),
        helper.make_node("Softmax", ["sums"], ["y"]),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    scores = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    weights = np.random.default_rng(1).normal(size=(192, 4)).astype(np.float32) / 4
    return save_onnx(path, nodes, [given], [scores], {"row": np.array([1, -1]), "w": weights})


def delegate(folder: Path, operator: int, **spoilt: str) -> dict[str, Any]:
    """Return the options of a delegate that spoils the outputs of these operators."""
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler (g++)")
    library = folder / "libtest_delegate.so"
    compiler = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC"]
    subprocess.run([*compiler, str(DELEGATE), "-o", str(library)], check=True)
    given = {"operators": str(operator), **spoilt}
    return {"delegate": str(library), "delegate_options": given, "allow_fallback": True}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of the original with a badly quantised layer, `coarse.onnx` beside it."""
    folder = tmp_path_factory.mktemp("searched")
    deployed = {"path": coarse(folder / "coarse.onnx", 0)}
    search(ORIGINAL, deployed, DIGITS, folder=folder / "out", **FEW)
    return folder / "out"


@pytest.fixture
def campaign(searched: Path, tmp_path: Path) -> Path:
    """A copy of that campaign."""
    return Path(shutil.copytree(searched, tmp_path / "out"))


@pytest.mark.parametrize(
    "layer", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 2, 3))]
)
def test_a_badly_quantised_layer_is_compression(tmp_path: Path, layer: int) -> None:
    found = explained(
        tmp_path / "out", ORIGINAL, {"path": coarse(tmp_path / "coarse.onnx", layer)}, DIGITS
    )
    assert set(found.counts) == {"compression"}
    assert found.kinds[0].kind == "compression"
    assert found.kinds[0].share > 0.9
    assert sum(one.share for one in found.kinds) == pytest.approx(1)
    assert found.pair_cause is None
    assert "no float model" not in codes(found)  # both are ONNX files
    for one in found.findings:
        assert [step.rung for step in one.answers] == [
            "original",
            "control",
            "compression",
            "device",
        ]
        steps = list(one.contributions.values())
        assert sum(steps) == pytest.approx(one.answers[-1].margin - one.answers[0].margin)
        assert one.contributions["compression"] == max(steps)


def test_what_no_step_measures_is_named_by_the_triage(tmp_path: Path) -> None:
    """Classes in another order are neither conversion nor compression; what was asked is told, too."""
    model = onnx.load(str(ORIGINAL["path"]))
    (scores,) = model.graph.output
    order = numpy_helper.from_array(np.roll(np.arange(10), 1), "order")
    model.graph.initializer.append(order)
    for node in model.graph.node:
        node.output[:] = ["ordered" if name == scores.name else name for name in node.output]
    model.graph.node.append(helper.make_node("Gather", ["ordered", "order"], [scores.name], axis=1))
    onnx.save(model, str(tmp_path / "ordered.onnx"))
    folder, deployed = tmp_path / "out", {"path": tmp_path / "ordered.onnx"}
    found = explained(folder, ORIGINAL, deployed, {**DIGITS, "limit": 12}, allow_disagreement=True)
    assert (found.pair_cause.kind, found.pair_cause.what) == ("interface", "classes-exchanged")
    assert found.pair_cause.proof == "corrected"
    assert found.kinds[0].findings == len(found.findings)
    with Store.open(folder) as store:
        assert found.pair_cause == store.result("triage", Triage).causes[0]
    cause = found.to_json()["pair_cause"]
    assert {"kind", "proof", "evidence", "text", "next"} <= {*cause}


def test_between_float_files_a_difference_is_conversion(tmp_path: Path) -> None:
    deployed = {"path": coarse(tmp_path / "float.onnx", 0, integers=False)}
    found = explained(tmp_path / "out", ORIGINAL, deployed, DIGITS)
    assert set(found.counts) == {"conversion"}
    assert not codes(found) & {"no float model", "no runtime here"}
    assert len(found.layers.contributions) == len(found.findings)


@pytest.mark.slow
def test_what_the_float_model_does_is_conversion(tmp_path: Path) -> None:
    """The network with coarse weights stands for what a converter made."""
    wrong = coarse(tmp_path / "coarse.onnx", 1, integers=False)
    model = onnx.load(str(wrong))
    model.doc_string = "the same network"
    onnx.save(model, str(tmp_path / "deployed.onnx"))
    found = explained(
        tmp_path / "out", ORIGINAL, {"path": tmp_path / "deployed.onnx"}, DIGITS, float_model=wrong
    )
    assert set(found.counts) == {"conversion"}
    assert "another float model" not in codes(found)


def test_a_float_model_that_can_not_be_it_is_refused(campaign, searched, tmp_path) -> None:
    config = replay_config(replay_base(campaign))
    same = Path(shutil.copy(searched.with_name("coarse.onnx"), tmp_path / "copy.onnx"))
    for model, why in ((same, "the deployed model itself"), (COPY["path"], "no file for onnx")):
        with pytest.raises(UsageError, match=why):
            explain_campaign(campaign, config, float_model=model)
    assert not (campaign / "explanation").exists()


@pytest.mark.slow
def test_a_float_model_of_another_network_is_told(tmp_path, monkeypatch) -> None:
    folder, deployed = tmp_path / "out", coarse(tmp_path / "coarse.onnx", 0)
    search(ORIGINAL, {"path": deployed}, {**DIGITS, "limit": 20}, folder=folder)
    config = replay_config(replay_base(folder))

    def none(_: object) -> None:
        raise UsageError("of one kind")

    monkeypatch.setattr("edgeflare.explanation.ladder.control_model", none)
    model = onnx.load(str(deployed))
    weights = [one for one in model.graph.initializer if len(one.dims) > 1][-1]
    negative = numpy_helper.from_array(-numpy_helper.to_array(weights), weights.name)
    weights.CopyFrom(negative)
    other = tmp_path / "other.onnx"
    onnx.save(model, str(other))
    found = explain_campaign(folder, config, float_model=other)
    assert found.rungs[0][0] == "conversion"  # it gets seeds as well
    (told,) = [one for one in found.notices if one.code == "another float model"]
    assert told.data["file"] == "other.onnx"
    assert 0.1 * told.data["seeds"] < told.data["deviating"] <= told.data["seeds"]
    assert explain_campaign(folder, config, float_model=other) == found


@pytest.mark.sshd
@pytest.mark.extended
def test_a_delegate_is_the_accelerator(tmp_path: Path, board: Board) -> None:
    options = delegate(tmp_path, TANH, add="0.3")
    found = explained(tmp_path / "out", ORIGINAL, {**COPY, "options": options}, DIGITS, **board())
    assert set(found.counts) == {"accelerator"}
    assert [cause for _, cause, _ in found.rungs][-2:] == ["hardware", "accelerator"]


@pytest.mark.sshd
@pytest.mark.extended
def test_a_noisy_device_is_not_repeatable(tmp_path: Path, board: Board) -> None:
    """It has no finding, since no deviation is confirmed by the same answer."""
    options = delegate(tmp_path, SOFTMAX, noise="0.3")
    with pytest.raises(UsageError, match="answers otherwise"):
        explained(tmp_path / "out", ORIGINAL, {**COPY, "options": options}, DIGITS, **board())


@pytest.mark.sshd
@pytest.mark.extended
def test_a_board_that_computes_wrongly_is_hardware(tmp_path: Path, board: Board) -> None:
    """Whatever runs the model there, the answers are wrong: Python itself is told to do so."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import ai_edge_litert.interpreter as library\n"
        "right = library.Interpreter.get_tensor\n"
        "def wrong(self, index):\n"
        "    found = 0.6 * right(self, index)\n"
        "    found[..., 3] += 0.4\n"
        "    return found\n"
        "library.Interpreter.get_tensor = wrong\n"
    )
    python = f"env PYTHONPATH={tmp_path / 'site'} {sys.executable}"
    found = explained(tmp_path / "out", ORIGINAL, COPY, DIGITS, **board(python=python))
    assert set(found.counts) == {"hardware"}


@pytest.mark.sshd
@pytest.mark.extended
@pytest.mark.parametrize(
    ("seeds", "wrong"),
    [
        pytest.param(DIGITS, {**SCALED, "mean": [0.03]}, marks=pytest.mark.slow),
        (
            np.random.default_rng(0).integers(0, 256, (8, 8, 8, 3), np.uint8),
            {**SCALED, "color": "BGR"},
        ),
    ],
)
def test_another_scale_or_colour_order_is_preprocessing(tmp_path, board, seeds, wrong) -> None:
    first, second = ORIGINAL, COPY
    if "color" in wrong:
        first = second = {"path": colour_model(tmp_path / "colour.onnx")}
    found = explained(
        tmp_path / "out", {**first, "input": SCALED}, {**second, "input": wrong}, seeds,
        allow_disagreement=True, **board(),
    )  # fmt: skip
    assert set(found.counts) == {"preprocessing"}


@pytest.mark.slow
def test_preprocessing_that_an_integer_input_clips_is_preprocessing(tmp_path: Path) -> None:
    """The input holds 0 to 1: the original with the same preprocessing is given no more, either."""
    deployed = {"path": DEMO / "deployed.tflite", "input": {"scale": "1/128"}}
    events: list[object] = []
    found = explained(
        tmp_path / "out", ORIGINAL, deployed, DIGITS, allow_disagreement=True,
        progress=events.append,
    )  # fmt: skip
    assert set(found.counts) == {"preprocessing"}
    (outside,) = [one.data for one in found.notices if one.code == "out of range"]
    assert outside["made_to"] == pytest.approx(255 / 128)
    assert outside["holds_to"] == pytest.approx(1, abs=0.01)
    told = [one.text for one in events if isinstance(one, Notice)]
    assert [one.partition(",")[0] for one in told] == ["scale=1/128"]


def without_vnni(folder: Path) -> str:
    """Return a Python whose processor has AVX2 but no VNNI: this machine's, or one that qemu emulates.

    Programs read the emulated processor's flags in a /proc/cpuinfo of its own.
    """
    flags = Path("/proc/cpuinfo").read_text()
    if "vnni" not in flags and "avx2" in flags:
        return sys.executable
    if shutil.which("qemu-x86_64") is None or platform.machine() != "x86_64":
        pytest.skip("needs an x86-64 processor with AVX2 and without VNNI, or qemu-x86_64")
    root = folder / "haswell"
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "cpuinfo").write_text(re.sub(r" avx(512|_vnni)\w*", "", flags))
    program = folder / "python-on-haswell"
    program.write_text(
        "#!/bin/sh\n"
        f"export PYTHONPATH={shlex.quote(os.pathsep.join(sys.path[1:]))}\n"
        f'exec qemu-x86_64 -cpu Haswell -L {root} -0 "$0" {os.path.realpath(sys.executable)} "$@" '
        "2>/dev/null\n"
    )
    program.chmod(0o755)
    return str(program)


@pytest.mark.sshd
@pytest.mark.slow
def test_saturated_products_are_the_instruction_set(tmp_path: Path, board: Board) -> None:
    model = {"path": quantised(tmp_path / "int8.onnx"), "input": SCALED}
    exact = {**model, "options": {"exact_int8": True}}
    settings = board(python=without_vnni(tmp_path))
    found = explained(tmp_path / "out", exact, model, DIGITS | {"limit": 4}, least=3, **settings)
    assert set(found.counts) == {"hardware"}
    assert {one.rung for one in found.findings} == {"device-exact"}
    assert "saturated" in codes(found)


@pytest.mark.extended
def test_a_file_that_this_machine_can_not_run_is_told(campaign, monkeypatch) -> None:
    def refused(path: Path, *_: object) -> None:
        raise ModelError(f"{path.name} is compiled for an accelerator")

    monkeypatch.setattr("edgeflare.campaign.pair.triage.OriginalModel", refused)
    found = explain_campaign(campaign, replay_config(replay_base(campaign)))
    assert [name for name, _, _ in found.rungs] == ["control", "device"]
    assert set(found.counts) == {"compression"}
    assert found.notices[0].code == "no runtime here"
    assert found.notices[0].data["file"] == "coarse.onnx"


@pytest.mark.slow
def test_an_input_that_two_replicas_found_is_explained_for_both(tmp_path: Path) -> None:
    """A replay has it once."""
    two = {"device": ("local", "local"), "fleet": {"mode": "replicate"}}
    deployed = {"path": coarse(tmp_path / "coarse.onnx", 0)}
    found = explained(tmp_path / "out", ORIGINAL, deployed, DIGITS | {"limit": 3}, **two)
    assert len(found.findings) == 2 * len({one.sample for one in found.findings})
    assert set(found.counts) == {"compression"}
    assert all(one.device == one.replica for one in found.findings)


@pytest.mark.extended
def test_an_interrupted_explanation_goes_on(campaign: Path) -> None:
    folder, config = campaign, replay_config(replay_base(campaign))
    stages = 0

    def interrupt(event: object) -> None:
        nonlocal stages
        stages += type(event).__name__ == "Stage"
        if stages == 7:  # the second replay has begun
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain_campaign(folder, config, progress=interrupt)
    kept = {one.name for one in (folder / "explanation").iterdir()}
    assert kept == {"control", "compression"}
    found = explain_campaign(folder, config)
    again: list[object] = []
    assert explain_campaign(folder, config, progress=again.append) == found
    assert again == []
    with Store.open(folder / "explanation" / "control") as store:
        assert store.state.finished
    assert found.device_queries == 3 * len(found.findings)
    fewer = explain_campaign(folder, config, device_queries=6)
    assert fewer.findings == found.findings
    assert "begun before" in codes(fewer)
    shutil.rmtree(folder / "explanation")
    fewer = explain_campaign(folder, config, device_queries=6)
    assert Remark("few queries", {"queries": 6, "findings": 2}) in fewer.notices
