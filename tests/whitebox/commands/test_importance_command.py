"""``edgeflare inspect importance``: what matters in the original, in the terminal and on the page."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import DEMO, DEMO_PAIR, edgeflare, must_run
from stored_json import changed_result

from edgeflare.errors import UsageError
from edgeflare.models import InputSpec, prepare, spec_from_json
from edgeflare.models.tensors import open_graph
from edgeflare.reports import importance_document
from edgeflare.reports.document import to_markdown
from edgeflare.store import Store
from edgeflare_whitebox import (
    IDC,
    RelevanceModel,
    activations_of,
    importance_of_campaign,
    important_units,
    model_digest,
    relevance_map,
    stored_importance,
    total_relevance,
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is in the extra inspection"),
]
ORIGINAL = DEMO / "original.onnx"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    flags = ("--limit", 12, "--no-survey", "--out", "out")
    must_run("run", *DEMO_PAIR, *flags, home=home)
    importance_of_campaign(home / "out")
    return home / "out"


@pytest.fixture
def copy(campaign: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(campaign, tmp_path / "out"))


def test_figures_are_those_of_the_library(campaign: Path, tmp_path: Path) -> None:
    ran = must_run("inspect", "importance", campaign, "--units", 4, "--json", home=tmp_path)
    found = json.loads(ran.out)
    graph = open_graph(ORIGINAL, "onnx", {})
    with Store.open(campaign) as store:
        spec = spec_from_json(store.models["original"]["input"])
        seeds = list(store.seed_samples())
        labels = [one.label for one in store.seeds()]
        triggers = [store.get_sample(one.trigger) for one in store.outcomes() if one.trigger]
    assert found["profiled"] == len(seeds) == 12
    assert found["inputs"]["triggers"] == len(triggers)
    names = [one["layer"] for one in found["layers"]]
    relevance, counted = total_relevance(
        RelevanceModel(ORIGINAL, graph), spec, zip(seeds, labels, strict=True), names
    )
    assert found["counted"] == counted
    for one in found["layers"]:
        assert tuple(one["important"]) == important_units(relevance[one["layer"]], 4)
        idc = IDC(model_digest(ORIGINAL), one["layer"], one["important"])
        idc.fit(activations_of(graph, spec, seeds, names))
        assert np.prod(one["clusters"]) == idc.combinations
        for which, samples in (("seeds", seeds), ("triggers", triggers)):
            fresh = idc.emptied()
            fresh.update(activations_of(graph, spec, samples, names))
            assert one["covered"][which] == fresh.score
        assert one["covered"]["union"] >= max(one["covered"]["seeds"], one["covered"]["triggers"])


def test_the_terminal_and_the_page_tell_the_same(campaign: Path, tmp_path: Path) -> None:
    ran = must_run("inspect", "importance", campaign, home=tmp_path)
    assert "measure of quality" in ran.out
    assert "seeds (12)" in ran.out
    assert edgeflare("report", campaign, home=tmp_path).code == 0
    text = (campaign / "report.html").read_text(encoding="utf-8")
    assert "in the original" in text
    with Store.open(campaign) as store:
        stored = stored_importance(store)
    for one in stored.layers:
        assert f"{one.combinations:,}" in text
    assert text.count("seed and triggering input, each with its most relevant pixels") == 6


def test_drawn_pixels_are_the_most_relevant_ones(campaign: Path) -> None:
    with Store.open(campaign) as store:
        stored = stored_importance(store)
        spec = spec_from_json(store.models["original"]["input"])
        assert isinstance(spec, InputSpec)
        model = RelevanceModel(ORIGINAL, open_graph(ORIGINAL, "onnx", {}))
        for one in (some for pair in stored.drawn for some in pair):
            image = store.get_sample(one.sample)
            found = model.relevances(prepare(image, spec))
            assert found.label == one.label
            pixels = relevance_map(found, spec, image.shape).reshape(-1)
            assert 0 < len(one.pixels) <= round(pixels.size * 0.05)
            others = np.delete(pixels, list(one.pixels))
            assert pixels[list(one.pixels)].min() >= others.max() or others.max() <= 0


def test_a_profile_from_elsewhere(campaign: Path, tmp_path: Path) -> None:
    found = importance_of_campaign(campaign, profile=DEMO / "seeds.npz", layers=["b4"])
    assert found.profiled > 12
    assert [one.layer for one in found.layers] == ["b4"]
    assert found.profile == str(DEMO / "seeds.npz")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"number": 0}, "number"),
        ({"layers": ["nothing"]}, "tensor 'nothing'"),
        ({"original": Path("other.onnx")}, "isn't there"),
    ],
)
def test_bad_settings_are_told(campaign: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        importance_of_campaign(campaign, **settings)


def test_a_bad_profile_is_told_in_one_sentence(campaign: Path, tmp_path: Path) -> None:
    ran = edgeflare("inspect", "importance", campaign, "--profile", "nothing", home=tmp_path)
    assert ran.code == 2
    assert "edgeflare" in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("damage", ["layers", "pixel", "many"])
def test_a_damaged_result_is_told(copy: Path, tmp_path: Path, damage: str) -> None:
    with changed_result(copy, "importance") as result:
        if damage == "layers":
            result["layers"] = 1
        elif damage == "pixel":
            result["drawn"][0][0]["pixels"][0] = 10**30
        else:
            result["drawn"] *= 10
    ran = edgeflare("report", copy, home=tmp_path)
    assert ran.code != 0
    assert "importance" in ran.err
    assert "fault of EdgeFlare" not in ran.err


def test_a_pair_of_other_images_is_left_out_of_the_page(copy: Path, tmp_path: Path) -> None:
    with Store.open(copy) as store:
        digest = store.put_sample(np.zeros((5, 9, 1), np.uint8))
    with changed_result(copy, "importance") as result:
        result["drawn"][0][0]["sample"] = digest
    assert edgeflare("report", copy, home=tmp_path).code == 0
    text = (copy / "report.html").read_text(encoding="utf-8")
    assert text.count("each with its most relevant pixels") == 5


def test_all_units_of_wide_layers_can_be_important(copy: Path) -> None:
    """120 and 84 units have more combinations than a float holds digits for."""
    found = importance_of_campaign(copy, number=9999)
    assert max(one.combinations for one in found.layers) > 2**84
    with Store.open(copy) as store:
        assert stored_importance(store) == found
    assert "10^" in to_markdown(importance_document(found))
