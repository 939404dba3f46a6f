"""``edgeflare shrink``: a campaign's triggering inputs, nearer to their seeds, and its own kept."""

import json
import re
from pathlib import Path

import pytest
from campaigns import found_in
from command import DEMO, edgeflare, must_run
from planted_causes import FLOAT, coarse

from edgeflare.answers.oracles import margin
from edgeflare.store import Store


@pytest.mark.extended
def test_triggers_come_nearer_and_the_campaign_stays_as_it_is(tmp_path: Path) -> None:
    more = ("--seeds", DEMO / "seeds.npz", "--limit", 6, "--no-survey", "--out", "out")
    must_run(
        "run", "--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite",
        "--strategy", "dflare", *more, home=tmp_path,
    )  # fmt: skip
    before = found_in(tmp_path / "out")
    shrunk = json.loads(edgeflare("shrink", "out", "--json", home=tmp_path).out)
    assert found_in(tmp_path / "out") == before
    assert shrunk["shrunk"] == len(shrunk["findings"]) >= 5
    assert shrunk["l2_share"] < 0.6
    with Store.open(tmp_path / "out" / "shrunk") as store:
        for one, outcome in zip(shrunk["findings"], store.outcomes_of(), strict=True):
            assert one["after"]["l2"] < one["before"]["l2"]
            assert one["device_queries"] <= 20
            assert (outcome.trigger, outcome.confirmed) == (one["sample"], 2)
            assert one["classes_after"] == [outcome.original_label, outcome.deployed_label]
    others = sum(one["classes_before"] != one["classes_after"] for one in shrunk["findings"])
    explained = json.loads(edgeflare("explain", "out", "--json", home=tmp_path).out)
    nearer = {one["sample"] for one in shrunk["findings"]}
    assert all(one["shrunk"]["sample"] in nearer for one in explained["groups"])
    shown = edgeflare("explain", "out", home=tmp_path, extra={"COLUMNS": "200"}).out
    for one in explained["groups"]:
        l2 = f"{one['shrunk']['l2']:.2f}"
        now, was = (
            f"{side['original_label']} -> {side['deployed_label']}" for side in (one["shrunk"], one)
        )
        then = f", shrunk to {l2}"
        assert f"{then} (now {now})" in shown if now != was else f"{then} " in shown
    narrow = edgeflare("explain", "out", home=tmp_path, extra={"COLUMNS": "80"}).out
    seeds = {one["id"]: one["seed_id"] for one in explained["findings"]}
    assert all(f" {seeds[one['nearest']]}, L2" in narrow for one in explained["groups"])
    causes = json.loads(edgeflare("explain", "out/shrunk", "--json", home=tmp_path).out)
    assert {one["sample"] for one in causes["findings"]} == nearer
    page = edgeflare("report", "out", "--format", "junit", home=tmp_path).out
    assert re.search(r"of this cause, layer and classes; nearest: \S+, L2 \S+, shrunk to", page)
    assert edgeflare("report", "out", "--out", "page.html", home=tmp_path).code == 0
    assert "finding" in (tmp_path / "page.html").read_text()
    assert json.loads(edgeflare("show", "out", "--json", home=tmp_path).out)
    other = edgeflare("shrink", "out", "--device-budget", 3, home=tmp_path)
    assert other.code == 2
    assert "settings (--device-budget 20)" in other.err
    again = edgeflare("shrink", "out", home=tmp_path)
    said = f"seed, {others} of {shrunk['shrunk']} between other classes than before; device"
    assert f"{said}" in again.out
    assert "search" not in again.err.replace("is finished", "")
    for command in ("explain", "shrink"):  # both are finished
        for which, file in (("original", "deployed.tflite"), ("deployed", "original.tflite")):
            refused = edgeflare(command, "out", f"--{which}", DEMO / file, home=tmp_path)
            assert refused.code == 2
            assert f"{which} model" in refused.sentence
            assert f"--{which}" in refused.sentence
    assert found_in(tmp_path / "out") == before


def test_a_campaign_without_a_trigger_has_nothing_to_shrink(tmp_path: Path) -> None:
    more = ("--seeds", DEMO / "seeds.npz", "--limit", 2, "--no-survey", "--strategy", "none")
    must_run(
        "run", "--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite",
        *more, "--out", "out", home=tmp_path,
    )  # fmt: skip
    for command in ("shrink", "explain"):
        refused = edgeflare(command, "out", home=tmp_path)
        assert refused.code == 2
        assert "nothing to" in refused.err


@pytest.mark.slow
def test_deviations_of_the_survey_shrink_in_their_parameters(tmp_path: Path) -> None:
    must_run(
        "run", "--original", FLOAT, "--deployed", coarse(tmp_path / "coarse.onnx", 1),
        "--seeds", DEMO / "seeds.npz", "--strategy", "none", "--out", "out", home=tmp_path,
    )  # fmt: skip
    shrunk = json.loads(edgeflare("shrink", "out", "--json", home=tmp_path).out)
    moved = [one for one in shrunk["findings"] if one["sample"] is not None]
    assert len(moved) >= 5
    assert all(one["words_before"] != one["words_after"] for one in moved)
    assert all(one["after"]["l2"] <= one["before"]["l2"] for one in moved)
    with Store.open(tmp_path / "out" / "shrunk") as store:
        found = {one.trigger: one for one in store.outcomes_of()}
        for one in moved:
            assert margin(found[one["sample"]].original) >= 0.3  # the original stays sure
    told = edgeflare("shrink", "out", home=tmp_path).out
    assert "weakest that deviates" in told
    assert "noise of " in told
