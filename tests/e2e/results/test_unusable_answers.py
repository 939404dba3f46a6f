"""Models whose answers can't be used: constant, tied, others each time, NaN. Said first, never agreement."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from command import edgeflare
from small_models import dense_onnx, flat_weights, save_onnx

from edgeflare import (
    UsageError,
    config_from,
    replay_config,
    report_text,
    run_campaign,
    run_candidates,
    run_replay,
    summarize,
    write_html_report,
)
from edgeflare.analysis import check_healthy, check_limits, rank_campaigns, replay_summary
from edgeflare.assertions.failure import failure_text
from edgeflare.campaign.queries.seeds import SeedStage
from edgeflare.devices import connect
from edgeflare.nightly.comparison import answers_checks
from edgeflare.reports import summary_document
from edgeflare.store import Store
from edgeflare_lab.testing import FakeAgent, connecting

pytestmark = pytest.mark.usefixtures("own_home")

SEEDS = 8
SHAPE = (1, 8, 8, 1)
TENSOR = {"dtype": "float32", "quantization": None}
LOADED = {
    "inputs": [{"name": "x", "shape": list(SHAPE), **TENSOR}],
    "outputs": [{"name": "y", "shape": [1, 4], **TENSOR}],
    "metadata": {"edgeflare.input": '{"scale": "1/255"}'},
}
LIMITS = {"max_seed_deviation_rate": 1.0, "max_disagreement": 1.0, "max_deviation_rate": 1.0}
RNG = np.random.default_rng(0)


def honest(sample: np.ndarray) -> np.ndarray:
    sums = sample.reshape(64) / np.float32(255) @ flat_weights().round(1)
    powers = np.exp(sums - sums.max())
    return np.asarray(powers / powers.sum(), np.float32)


def coarse(sample: np.ndarray) -> np.ndarray:
    """Another class than the original's on some seeds."""
    sums = sample.reshape(64) / np.float32(255) @ (flat_weights() / 2).round()
    powers = np.exp(sums - sums.max())
    return np.asarray(powers / powers.sum(), np.float32)


def drawn(sample: np.ndarray) -> np.ndarray:
    return RNG.dirichlet(np.ones(4))


def drawn_and_right(sample: np.ndarray) -> np.ndarray:
    """Other scores at each query, of which the honest model's class has the highest."""
    scores = np.sort(RNG.dirichlet(np.ones(4)))
    return np.asarray(scores[honest(sample).argsort().argsort()])


def tied_where_bright(sample: np.ndarray) -> np.ndarray:
    """A tie on all but about a fifth of the inputs, by a few of their bits."""
    return honest(sample) if int(sample.sum()) % 5 == 0 else np.array([0.4, 0.4, 0.1, 0.1])


class Mode(NamedTuple):
    """A deployed model that can't be used: what it answers, and as what that is known."""

    infer: Callable[[np.ndarray], np.ndarray]
    kind: str


MODES = {
    "all zeros": Mode(lambda sample: np.zeros(4), "constant"),
    "ties on most inputs": Mode(tied_where_bright, "tied"),
    "random at each query": Mode(drawn, "not-repeatable"),
    "random scores of the right class": Mode(drawn_and_right, "not-repeatable"),
    "NaN": Mode(lambda sample: np.full(4, np.nan), "non-finite"),
}
QUICK = ("all zeros", "ties on most inputs", "random scores of the right class")
"""One of each kind that a score can show; the others take as long, and are `extended`."""


def campaign(folder: Path, infer: Callable[[np.ndarray], np.ndarray], **tables: Any) -> Path:
    """Run a campaign on a device that answers so."""
    model = dense_onnx(folder / "model.onnx", list(SHAPE))
    images = np.random.default_rng(0).integers(0, 256, (SEEDS, *SHAPE[1:]), np.uint8)
    np.savez(folder / "seeds.npz", images=images)
    values = {
        "original": {"path": model},
        "deployed": {"path": model},
        "seeds": {"path": folder / "seeds.npz"},
        "search": {"strategy": "dflare", "max_queries": 10, "timeout_s": 0},
        "survey": {"enabled": False},
        "out": folder / "campaign",
        "workers": 0,
        **tables,
    }
    return run_campaign(config_from(values, "test"), connect=device(infer))


def device(infer: Callable[[np.ndarray], np.ndarray]) -> Any:
    agents = {
        name: FakeAgent(
            loaded=LOADED, infer=lambda sample: np.asarray(infer(sample), np.float32)[None]
        )
        for name in ("local", "local#2")
    }
    return connecting(agents, connect)


@pytest.mark.parametrize(
    "mode", [pytest.param(one, marks=[] if one in QUICK else pytest.mark.extended) for one in MODES]
)
def test_no_report_takes_a_dead_models_answers_for_agreement(tmp_path: Path, mode: str) -> None:
    infer, kind = MODES[mode]
    folder = campaign(tmp_path, infer, limits=LIMITS)
    summary = summarize(folder)
    first = summary.unusable[0]
    assert (first.kind, first.model) == (kind, "deployed")
    said = first.words[1:]
    blocks: Any = summary_document(summary)
    assert said in blocks[0].text.split(". ")[0]
    assert "from none of" not in blocks[0].text

    checks = check_limits(folder)
    assert {one.name for one in checks if one.crossed} == {*LIMITS}

    assert json.loads(report_text(folder, "json"))["unusable"][0]["kind"] == kind
    assert json.loads(report_text(folder, "json"))["verdict"][1:].startswith(said)
    assert said in report_text(folder, "markdown").split("**")[1]
    suite = next(iter(ET.fromstring(report_text(folder, "junit"))))
    assert (suite.get("name"), suite.get("failures")) == ("answers", "1")
    failure = failure_text(folder)
    assert said in failure.splitlines()[0]
    (check,) = answers_checks(folder)
    assert (check.name, check.crossed) == (kind, True)
    with pytest.raises(UsageError, match="healthy one"):
        check_healthy([str(folder)])
    if kind != "non-finite":  # ranked as the worst
        with pytest.raises(UsageError, match="be ranked"):
            rank_campaigns([folder, folder], names=["a", "b"])


def test_the_page_says_it_in_its_first_sentence(tmp_path: Path) -> None:
    folder = campaign(tmp_path, MODES["all zeros"].infer)
    write_html_report(folder, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert summarize(folder).unusable[0].words[1:] in page
    assert "from none of" not in page


@pytest.mark.extended
def test_a_verdict_against_references_is_never_sound(tmp_path: Path) -> None:
    survey = {"enabled": True, "references": ["int8"], "pursuit": 0}
    folder = campaign(
        tmp_path, MODES["all zeros"].infer, survey=survey, limits={"verdict": "sound"}
    )
    summary = summarize(folder)
    assert summary.soundness.verdict != "sound"
    assert summary.limits_crossed == ("verdict",)


def test_an_honest_model_costs_three_queries_more(tmp_path: Path) -> None:
    summary = summarize(campaign(tmp_path, honest, limits=LIMITS))
    assert summary.unusable == ()
    assert summary.total_queries["measuring"] == 3
    assert summary.limits_crossed == ()


def test_another_device_repeats_the_answers_where_the_first_is_gone(tmp_path, monkeypatch) -> None:
    end = SeedStage.end

    def lose_the_first(self: SeedStage) -> None:
        end(self)
        self._fleet.sessions[0].close()

    monkeypatch.setattr(SeedStage, "end", lose_the_first)
    summary = summarize(campaign(tmp_path, honest, devices=["local", "local"]))
    assert summary.unfinished == 0
    assert summary.total_queries["measuring"] >= 3


def test_last_bits_that_differ_are_no_other_answer(tmp_path: Path) -> None:
    def rounded(sample: np.ndarray) -> np.ndarray:
        return honest(sample) * (1 + RNG.uniform(-1e-6, 1e-6, 4))

    summary = summarize(campaign(tmp_path, rounded))
    assert summary.unusable == ()
    assert summary.by_status["unstable"] == 0


@pytest.mark.extended
def test_a_dead_candidate_is_not_ranked(tmp_path: Path) -> None:
    source = campaign(tmp_path, honest)
    files = {}
    for name, factor in (("near", 0.9), ("dead", 0.0)):
        model = onnx.load(tmp_path / "model.onnx")
        for tensor in model.graph.initializer:
            weights = onnx.numpy_helper.to_array(tensor)
            if weights.dtype == np.float32:
                changed = np.asarray(weights * factor, np.float32)
                tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
        files[name] = tmp_path / f"{name}.onnx"
        onnx.save(model, files[name])
    config = config_from({**_stored(source), "out": tmp_path / "compared"}, "test")
    ran = run_candidates(config, list(files.values()), measure="queries")
    why = {run.name: run.failed for run in ran.runs}
    assert why["near"] is None
    assert why["dead"] is not None
    assert "the same answer" in why["dead"]


@pytest.mark.parametrize("mode", ["all zeros", "random at each query"])
def test_no_replayed_trigger_is_fixed_by_a_dead_model(tmp_path: Path, mode: str) -> None:
    source = campaign(tmp_path, coarse)
    assert summarize(source).by_status["seed-deviates"] > 2
    out = tmp_path / "replay"
    config = replay_config(
        config_from({**_stored(source), "limits": {"max_new_triggers": 100}}, "test"), {"out": out}
    )
    run_replay(source, config, connect=device(MODES[mode].infer))
    replayed = replay_summary(out)
    assert replayed.unusable[0].kind == MODES[mode].kind
    assert replayed.counts["fixed"] == replayed.counts["agrees"] == 0
    assert [one.crossed for one in check_limits(out)] == [True]


def _stored(folder: Path) -> dict[str, Any]:
    with Store.open(folder) as store:
        return dict(store.campaign)


def dropout_onnx(path: Path, like: Path) -> Path:
    """A copy of a model whose pixels pass a dropout that stays active."""
    model = onnx.load(like)
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name == "real":
                node.input[place] = "kept"
    nodes = [
        onnx.helper.make_node("RandomUniformLike", ["real"], ["drawn"], low=0.0, high=1.0),
        onnx.helper.make_node("Greater", ["drawn", "rate"], ["keeps"]),
        onnx.helper.make_node("Cast", ["keeps"], ["mask"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Mul", ["real", "mask"], ["kept"]),
    ]
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer} | {
        "rate": np.array(0.3, np.float32)
    }
    first, *others = model.graph.node
    metadata = {one.key: one.value for one in model.metadata_props}
    return save_onnx(
        path, [first, *nodes, *others], list(model.graph.input), list(model.graph.output),
        constants, metadata,
    )  # fmt: skip


@pytest.mark.extended
def test_run_says_first_that_a_dropout_is_active_on_either_side(tmp_path: Path) -> None:
    still = dense_onnx(tmp_path / "still.onnx", list(SHAPE))
    drawing = dropout_onnx(tmp_path / "drawing.onnx", still)
    images = np.random.default_rng(0).integers(0, 256, (SEEDS, *SHAPE[1:]), np.uint8)
    np.savez(tmp_path / "seeds.npz", images=images)
    (tmp_path / "limited.toml").write_text("[limits]\nmax_disagreement = 1.0\n")
    flags = ("--seeds", "seeds.npz", "--strategy", "none", "--no-survey")
    pairs = {"deployed model": (still, drawing), "original": (drawing, still)}
    for model, (original, deployed) in pairs.items():
        pair = ("--original", original, "--deployed", deployed, *flags)
        ran = edgeflare("run", *pair, "--out", model.replace(" ", "-"), home=tmp_path)
        assert ran.out.startswith(f"The {model} answers "), ran.out
        assert ran.code == 0, ran.err
    ran = edgeflare(
        "run", "limited.toml", "--original", still, "--deployed", drawing, *flags, home=tmp_path
    )
    assert ran.code == 1, ran.err
    shown = edgeflare("show", "deployed-model", home=tmp_path)
    assert shown.out.startswith("The deployed model"), shown.out
