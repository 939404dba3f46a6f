"""``edgeflare inspect coverage``: its figures against the library's, what it says, and what it refuses."""

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import DEMO, DEMO_PAIR, Ran, edgeflare, must_run
from shown_numbers import numbers
from small_models import wrong_in_the_dark_onnx
from stored_json import changed_result

from edgeflare.document import Listing
from edgeflare.models import spec_from_json
from edgeflare.models.tensors import open_graph
from edgeflare.reports import coverage_document
from edgeflare.store import CampaignLock, SeedInput, Store
from edgeflare.types import TRIGGERS, Sample
from edgeflare_whitebox import (
    CRITERIA,
    CoverageCriterion,
    activations_of,
    coverage_of_campaign,
    default_layers,
    model_digest,
    penultimate_layer,
    stored_coverage,
)

ORIGINAL = DEMO / "original.onnx"
SEEDS = ("--seeds", DEMO / "seeds.npz")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search from six digits."""
    home = tmp_path_factory.mktemp("searched")
    must_run("run", *DEMO_PAIR, "--limit", 6, "--no-survey", "--out", "c", home=home)
    return home / "c"


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey from six digits whose findings are dark images."""
    home = tmp_path_factory.mktemp("surveyed")
    deployed = wrong_in_the_dark_onnx(ORIGINAL, home / "faulty.onnx")
    models = ("--original", ORIGINAL, "--deployed", deployed)
    few = ("--limit", 6, "--family", "dim", "--pursuit-queries", 0)
    must_run("survey", *models, *SEEDS, *few, "--out", "c", home=home)
    return home / "c"


@pytest.fixture
def home(searched: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the search, the campaign ``c``."""
    shutil.copytree(searched, tmp_path / "c")
    return tmp_path


def inspect(home: Path, *more: object) -> Ran:
    return edgeflare("inspect", "coverage", "c", *more, home=home)


def sets_of(folder: Path) -> dict[str, list[Sample]]:
    with Store.open(folder) as store:
        triggers = [one.trigger for one in store.outcomes() if one.status in TRIGGERS]
        digests = {
            "seeds": [seed.sample for seed in store.seeds()],
            "triggers": [str(one) for one in triggers],
            "survey": [one.sample for one in store.survey(deviating=True)],
        }
        found = {name: list(map(store.get_sample, some)) for name, some in digests.items()}
    return {**found, "union": [one for some in found.values() for one in some]}


def computed(
    name: str, folder: Path, profile: Iterable[Sample], inputs: Iterable[Sample]
) -> CoverageCriterion:
    """One criterion, fitted and updated by itself."""
    graph = open_graph(ORIGINAL, "onnx", {})
    with Store.open(folder) as store:
        spec = spec_from_json(store.models["original"]["input"])
    traced = name in ("LSC", "DSC")
    layers = [penultimate_layer(graph)] if traced else list(default_layers(graph))
    criterion = CRITERIA[name].make(model_digest(ORIGINAL), layers)
    criterion.fit(activations_of(graph, spec, profile, layers))
    criterion.update(activations_of(graph, spec, inputs, layers))
    return criterion


@pytest.mark.parametrize("which", ["searched", "surveyed"])
def test_the_figures_are_those_of_the_criteria(which, request, tmp_path) -> None:
    shutil.copytree(request.getfixturevalue(which), tmp_path / "c")
    found = inspect(tmp_path, "--json").json
    sets = sets_of(tmp_path / "c")
    assert found["inputs"] == {name: len(some) for name, some in sets.items()}
    assert len(sets["union"]) > len(sets["seeds"]) == found["profiled"] == 6
    assert [one["name"] for one in found["criteria"]] == list(CRITERIA)
    for one in found["criteria"]:
        for name, some in sets.items():
            criterion = computed(one["name"], tmp_path / "c", sets["seeds"], some)
            assert one["scores"][name] == (criterion.score if some else None), (one, name)
            assert one["settings"] == criterion.settings
            assert one["layers"] == list(criterion.layers)
    scores = {one["name"]: one["scores"] for one in found["criteria"]}
    assert [scores[name]["seeds"] for name in ("NBC", "SNAC", "DSC")] == [0, 0, 0]
    assert all(scores[name]["union"] > 0 for name in ("NC", "KMNC", "NBC", "TKNC", "DSC"))
    assert (scores["NC"]["survey"] is None) == (which == "searched")


def test_other_profiling_inputs_change_what_is_compared(home: Path) -> None:
    with np.load(DEMO / "seeds.npz") as archive:
        images = archive["images"][20:60]
    np.savez(home / "training.npz", images=images)
    found = inspect(home, "--profile", "training.npz", "--criterion", "nbc", "--json").json
    profile = [image.reshape(28, 28, 1) for image in images]
    seeds = sets_of(home / "c")["seeds"]
    (one,) = found["criteria"]
    criterion = computed("NBC", home / "c", profile, seeds)
    assert one["scores"]["seeds"] == criterion.score > 0
    assert (found["profiled"], found["traces"]) == (40, None)
    text = inspect(home, "--profile", "training.npz").out
    assert "40 profiling inputs" in text
    assert "themselves" not in text


def test_layers_are_chosen(home: Path) -> None:
    found = inspect(home, "--layer", "b4", "--layer", "b3", "--layer", "b4", "--json").json
    assert {tuple(one["layers"]) for one in found["criteria"]} == {("b4", "b3")}
    some = inspect(home, "--layer", "b3", "--criterion", "NC", "--json").json
    assert 0 < some["units"] < found["units"]


def test_a_large_profile_is_subsampled(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeflare_whitebox.coverage_campaign.TRACES", 4)
    one, same = (coverage_of_campaign(home / "c", criteria=["DSC", "NBC"]) for _ in range(2))
    assert one == same
    assert (one.traces, one.profiled) == (4, 6)
    (listing,) = (block for block in coverage_document(one) if isinstance(block, Listing))
    texts = [item.text for item in listing.items]
    assert "seeds is 0" in texts[0]
    assert numbers(texts[1]) == "4 0"


@pytest.mark.parametrize("seed", [0, 1])
def test_the_subsample_is_drawn_as_documented(home, monkeypatch, seed) -> None:
    """Vitter's algorithm R, written here once more."""
    monkeypatch.setattr("edgeflare_whitebox.coverage_campaign.TRACES", 20)
    profile = DEMO / "seeds.npz"
    found = coverage_of_campaign(home / "c", profile=profile, criteria=["DSC"], random_seed=seed)
    with np.load(profile) as archive:
        images = archive["images"].reshape(-1, 28, 28, 1)
    rng, kept = np.random.default_rng(seed), list(range(20))
    for place in range(20, len(images)):
        if (other := rng.integers(place + 1)) < 20:
            kept[other] = place
    triggers = sets_of(home / "c")["triggers"]
    expected = computed("DSC", home / "c", [images[place] for place in kept], triggers)
    assert found.criteria[0].scores.triggers == expected.score > 0
    assert (found.traces, found.profiled) == (20, 100)


def test_the_text_says_what_it_means_and_the_report_has_it(home: Path) -> None:
    assert edgeflare("report", "c", home=home).code == 0
    page = home / "c" / "report.html"
    assert "Coverage of the original" not in page.read_text()
    ran = inspect(home)
    assert ran.code == 0, ran.err
    words = "the seeds themselves, so that NBC, SNAC and DSC of the seeds are 0"
    assert words in ran.out
    assert "measure of quality" in ran.out
    assert "LSC is 0" in ran.out
    found = inspect(home, "--json").json
    assert edgeflare("report", "c", home=home).code == 0
    html = page.read_text()
    section = html[html.index('id="coverage"') : html.index('id="devices"')]
    assert "Coverage of the" in section
    for heading in ("seeds (6)", f"triggering inputs ({found['inputs']['triggers']})"):
        assert heading in section
        assert heading in ran.out
    for heading in ("survey findings (0)", f"union ({found['inputs']['union']})"):
        assert f">{heading}</th>" in section
    (nc, *_) = found["criteria"]
    assert f">{100 * nc['scores']['union']:.1f} %</td>" in section
    assert words in section


def test_an_unfinished_campaign_has_coverage_so_far(tmp_path: Path) -> None:
    limits = ("--no-survey", "--limit", 6, "--total-queries", 8)
    edgeflare("run", *DEMO_PAIR, *limits, "--out", "c", home=tmp_path)
    ran = inspect(tmp_path)
    assert ran.code == 0, ran.err
    assert "campaign wasn't finished" in ran.out
    assert inspect(tmp_path, "--json").json["inputs"]["seeds"] == 6


def test_a_running_campaign_is_read_but_not_written_to(home: Path) -> None:
    with CampaignLock(home / "c"):
        ran = inspect(home, "--json")
    assert ran.code == 0
    assert "result isn't stored" in ran.json["notices"][0]
    assert edgeflare("report", "c", home=home).code == 0
    assert "Coverage of the original" not in (home / "c" / "report.html").read_text()


def test_inputs_without_an_answer_are_left_out(home: Path) -> None:
    with Store.open(home / "c") as store:
        store.add_seeds([SeedInput("odd.png", np.zeros((5, 5, 1), np.uint8))])
    found = inspect(home, "--criterion", "TKNC", "--json").json
    assert (found["profiled"], found["inputs"]["seeds"]) == (6, 7)
    assert "seeds, 1 input" in found["notices"][1]


def _moved(home: Path) -> None:
    _change_original(home, path="/nowhere/original.onnx")


def _changed(home: Path) -> None:
    _change_original(home, path=str(DEMO / "original.tflite"))


def _of_pytorch(home: Path) -> None:
    _change_original(home, runtime={"name": "torch"})


def _change_original(home: Path, **changed: Any) -> None:
    with Store.open(home / "c") as store:
        models = store.models
        store.set_models({**models["original"], **changed}, models["deployed"])


def _damaged(home: Path) -> None:
    _change_original(home, input={"kind": "smell"})


def _without_seeds(home: Path) -> None:
    shutil.rmtree(home / "c")
    with Store.create(home / "c", {}):
        pass


@pytest.mark.parametrize("name", ["original.tflite", "original.pt2", "original.keras"])
def test_importance_of_another_format_is_refused_before_anything_is_read(home, name) -> None:
    _change_original(home, path=f"/nowhere/{name}")
    ran = edgeflare("inspect", "importance", "c", "--profile", "nowhere", home=home)
    assert ran.code == 2
    assert name in ran.sentence
    assert "to ONNX" in ran.sentence


@pytest.mark.parametrize(
    ("spoil", "flags", "words"),
    [
        (lambda home: shutil.rmtree(home / "c"), (), "campaign folder"),
        (_moved, (), "original model /nowhere/original.onnx"),
        (_changed, (), "original model"),
        (_of_pytorch, (), "ONNX and TFLite"),
        (_damaged, (), "original"),
        (_without_seeds, (), "seeds yet"),
        (None, ("--layer", "b9"), "tensor 'b9'"),
        (None, ("--criterion", "MCDC"), "MCDC; take NC"),
        (None, ("--profile", "nowhere"), "seeds at nowhere"),
        (None, ("--original", DEMO / "deployed.tflite"), "original model"),
    ],
)
def test_what_can_not_be_measured_is_told(home, spoil, flags, words) -> None:
    if spoil is not None:
        spoil(home)
    ran = inspect(home, *flags)
    assert ran.code == 2, ran.both
    assert words in ran.sentence
    assert ran.out == ""


def test_criteria_by_class_need_classes(home: Path) -> None:
    with Store.open(home / "c") as store:
        output = store.models["original"]["output"]
    _change_original(home, output={**output, "kind": "transcript"})
    found = inspect(home, "--json").json
    assert {one["name"] for one in found["criteria"]} == set(CRITERIA) - {"LSC", "DSC"}
    assert found["notices"] == [
        "LSC, DSC: inputs of the same predicted class are compared, and original.onnx returns transcripts: left out"
    ]
    ran = inspect(home, "--criterion", "DSC")
    assert (ran.code, ran.out) == (2, "")
    assert "returns transcripts; leave" in ran.sentence


def test_a_moved_original_is_named(home: Path) -> None:
    _moved(home)
    assert inspect(home, "--original", ORIGINAL, "--criterion", "NC").code == 0


def test_the_missing_package_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx.numpy_helper", None)
    ran = inspect(home)
    assert ran.code == 2
    assert "pip install onnx" in ran.sentence


def test_a_stored_result_is_read_back(home: Path) -> None:
    found = coverage_of_campaign(home / "c", criteria=["NC", "LSC"])
    with Store.open(home / "c") as store:
        assert stored_coverage(store) == found
    assert (
        json.loads(json.dumps(found.to_json()))
        == inspect(home, "--criterion", "LSC", "--criterion", "NC", "--json").json
    )


def test_a_damaged_result_is_told(home: Path) -> None:
    assert inspect(home).code == 0
    with changed_result(home / "c", "coverage") as result:
        result["criteria"] = [{"name": "NC"}]
    ran = edgeflare("report", "c", home=home)
    assert ran.code == 2
    assert "the result 'coverage'" in ran.sentence
