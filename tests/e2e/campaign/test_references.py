"""A campaign held against healthy references, with real models: verdict, exit codes, reports."""

import sqlite3
import xml.etree.ElementTree as ET
from pathlib import Path

import onnx
import pytest
from command import DEMO, DEMO_PAIR, Ran, edgeflare
from onnx import numpy_helper

ONLY_SURVEY = ("--strategy", "none", "--survey-queries", "3")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "limits.toml").write_text(
        f"""
[original]
path = "{DEMO}/original.onnx"

[deployed]
path = "{DEMO}/deployed.tflite"

[seeds]
path = "{DEMO}/seeds.npz"

[search]
strategy = "none"

[survey]
references = ["int8"]
pursuit = 0

[limits]
verdict = "sound"
"""
    )
    dead_channel(folder / "dead.onnx")
    return folder


@pytest.fixture(scope="module")
def sound(home: Path) -> Ran:
    return edgeflare("run", "limits.toml", "--out", "sound", "--json", home=home)


@pytest.fixture(scope="module")
def worse(home: Path, sound: Ran) -> Ran:
    flags = ("--deployed", "dead.onnx", "--reference", "sound", "--out", "worse", "--json")
    return edgeflare("run", "limits.toml", *flags, home=home)


def dead_channel(path: Path) -> None:
    """Write the demo's original with one channel of its last convolution set to 0."""
    model = onnx.load(DEMO / "original.onnx")
    name = [node.input[1] for node in model.graph.node if node.op_type == "Conv"][-1]
    weight = next(one for one in model.graph.initializer if one.name == name)
    values = numpy_helper.to_array(weight).copy()
    values[:4] = 0
    weight.CopyFrom(numpy_helper.from_array(values, name))
    onnx.save(model, path)


def test_a_healthy_deployment_is_sound(sound: Ran, home: Path) -> None:
    assert sound.code == 0, sound.err
    found = sound.json["soundness"]
    assert found["verdict"] == "sound"
    assert len(found["references"]) == 6
    assert found["inputs"] > 250
    assert found["unexplained"] == 0
    assert sorted(one.suffix for one in (home / "sound" / "references").iterdir()) == [".onnx"] * 6
    report = edgeflare("report", "sound", "--format", "markdown", home=home).out
    first = report.splitlines()[2]
    assert first.startswith("**Passed. The deployed model is sound")


def test_a_dead_channel_is_worse_than_a_campaign_of_a_healthy_one(worse: Ran, home: Path) -> None:
    assert worse.code == 1
    found = worse.json["soundness"]
    assert found["verdict"] == "worse"
    assert found["references"] == ["sound"]
    assert found["excess"] > found["allowed_excess"]
    assert "verdict" in worse.json["limits_crossed"]
    assert not (home / "worse" / "references").exists()
    page = edgeflare("report", "worse", "--format", "markdown", home=home).out
    assert page.splitlines()[2].startswith("**Failed. The deployed model is worse")


@pytest.mark.extended
def test_too_few_inputs_have_an_exit_code_and_a_test_outcome_of_their_own(home: Path) -> None:
    flags = ("--limit", "12", "--out", "few", "--json")
    ran = edgeflare("run", "limits.toml", *flags, home=home)
    assert ran.code == 4
    assert ran.sentence == "edgeflare: it can't be told whether a limit is kept: verdict"
    assert ran.json["limits_undecided"] == ["verdict"]
    assert ran.json["limits_crossed"] == []
    assert "more sure input" in ran.json["soundness"]["evidence"][-1]
    junit = edgeflare("report", "few", "--format", "junit", home=home).out
    case = next(
        one for one in ET.fromstring(junit).iter("testcase") if one.get("name") == "verdict"
    )
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message", "").startswith("undecided: verdict: it can't be told")
    report = edgeflare("report", "few", "--format", "markdown", home=home).out
    assert report.splitlines()[2].startswith("**Undecided. It can't be told")


@pytest.mark.extended
def test_resumed_a_reference_is_not_asked_twice(sound: Ran, home: Path) -> None:
    del sound
    with sqlite3.connect(home / "sound" / "campaign.sqlite") as database:
        count = "select count(*) from reference_answers"
        (before,) = database.execute(count).fetchone()
        database.execute("delete from reference_answers where reference = 'int8-per-tensor-a'")
        database.execute("update facts set value = 'false' where name = 'finished'")
    database.close()
    assert edgeflare("resume", "sound", home=home).code == 0
    with sqlite3.connect(home / "sound" / "campaign.sqlite") as database:
        assert database.execute(count).fetchone() == (before,)
    database.close()


@pytest.mark.extended
def test_without_a_reference_the_rate_comes_first_and_how_to_get_a_verdict(home: Path) -> None:
    flags = (*DEMO_PAIR, *ONLY_SURVEY, "--limit", "20", "--out", "rate")
    assert edgeflare("run", *flags, home=home).code == 0
    report = edgeflare("report", "rate", "--format", "markdown", home=home).out.splitlines()
    assert report[2].startswith("**Far from the seeds the models decide differently on ")
    assert any("--reference int8" in line for line in report)


@pytest.mark.extended
def test_compare_states_the_verdict_of_each_candidate(home: Path, worse: Ran) -> None:
    del worse
    flags = ("--measure", "queries", "--strategy", "dflare-r", "--max-queries", "3")
    pair = ("--original", DEMO / "original.onnx", "--seeds", DEMO / "seeds.npz", "--limit", "60")
    candidates = (DEMO / "deployed.tflite", "dead.onnx")
    ran = edgeflare(
        "compare", *candidates, *pair, *flags, "--reference", "int8", "--json", home=home
    )
    assert ran.code == 0, ran.err
    verdicts = {one["name"]: one["soundness"]["verdict"] for one in ran.json["candidates"]}
    assert verdicts == {"deployed": "sound", "dead": "worse"}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--reference", "nowhere"), "nowhere"),
        (
            ("--reference", "one/sound", "--reference", "two/sound"),
            "two references are folders of one name",
        ),
        (("--reference", "int8", "--no-survey"), "--reference is answered on the survey's inputs"),
        (("--reference", "other"), "has another original"),
    ],
)
def test_a_reference_that_cannot_be_used_is_refused_before_anything_is_made(
    flags: tuple[str, ...], sentence: str, home: Path
) -> None:
    if "other" in flags and not (home / "other").exists():
        pair = ("--original", DEMO / "original.tflite", *DEMO_PAIR[2:])
        edgeflare("run", *pair, *ONLY_SURVEY, "--limit", "2", "--out", "other", home=home)
    ran = edgeflare("run", *DEMO_PAIR, *ONLY_SURVEY, *flags, "--out", "refused", home=home)
    assert ran.code == 2
    assert sentence in ran.sentence
    assert not (home / "refused").exists()


def test_a_campaign_with_other_inputs_is_refused(home: Path, sound: Ran) -> None:
    del sound
    flags = ("--reference", "sound", "--seed", "7", "--limit", "12", "--out", "unlike")
    ran = edgeflare("run", *DEMO_PAIR, *ONLY_SURVEY, *flags, home=home)
    assert ran.code == 2
    assert "of this campaign's" in ran.err


@pytest.mark.extended
def test_what_is_found_beside_references_is_replayed(home: Path, worse: Ran) -> None:
    assert worse.json["survey"]["overall"]["deviations"] > 0
    ran = edgeflare("replay", "worse", "--out", "replay", home=home)
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err
