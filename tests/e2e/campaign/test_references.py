"""A campaign held against healthy references, with real models: verdict, exit codes, reports."""

import shutil
import sqlite3
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import DEMO, DEMO_PAIR, Ran, edgeflare, must_run
from onnx import numpy_helper

from edgeflare import load_config, run_campaign, summarize

pytestmark = pytest.mark.extended

MNIST = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist"
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
    small = (
        '<ir_version: 8, opset_import: ["": 13]> g (float[1,3] x) => (float[1,3] y) {y = Relu(x)}'
    )
    onnx.save_model(onnx.parser.parse_model(small), folder / "small.onnx")
    return folder


@pytest.fixture(scope="module")
def sound(home: Path) -> Ran:
    return edgeflare("run", "limits.toml", "--out", "sound", "--json", home=home)


@pytest.fixture(scope="module")
def worse(home: Path, sound: Ran) -> Ran:
    flags = ("--deployed", "dead.onnx", "--reference", "sound", "--out", "worse", "--json")
    return edgeflare("run", "limits.toml", *flags, home=home)


def interrupt(database: sqlite3.Connection) -> None:
    """Let a finished campaign be one that was interrupted while references answered."""
    database.execute("update facts set value = 'false' where name = 'finished'")
    database.execute("delete from facts where name = 'references'")


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
    assert len(found["references"]) == 8
    assert found["inputs"] > 250
    assert found["unexplained"] == 0
    assert found["evidence"][0].startswith("on the seeds")
    assert found["own"]["inputs"] == found["own"]["labelled"] == 100
    assert [one["inputs"] for one in found["own_references"].values()] == [100] * 8
    assert sorted(one.suffix for one in (home / "sound" / "references").iterdir()) == [".onnx"] * 8
    report = edgeflare("report", "sound", "--format", "markdown", home=home).out
    first = report.splitlines()[2]
    assert "**Passed. The deployed" in first


def test_a_dead_channel_is_worse_than_a_campaign_of_a_healthy_one(worse, sound, home) -> None:
    assert worse.code == 1
    found = worse.json["soundness"]
    assert found["verdict"] == "worse"
    assert found["references"] == ["sound"]
    assert found["own_references"]["sound"] == sound.json["soundness"]["own"]
    assert found["excess"] > found["allowed_excess"]
    assert "verdict" in worse.json["limits_crossed"]
    assert not (home / "worse" / "references").exists()
    page = edgeflare("report", "worse", "--format", "markdown", home=home).out
    assert "**Failed. The deployed" in page.splitlines()[2]


def test_too_few_inputs_have_an_exit_code_and_a_test_outcome_of_their_own(home: Path) -> None:
    flags = ("--limit", "12", "--out", "few", "--json")
    ran = edgeflare("run", "limits.toml", *flags, home=home)
    assert ran.code == 4
    assert "whether a limit" in ran.sentence
    assert ran.json["limits_undecided"] == ["verdict"]
    assert ran.json["limits_crossed"] == []
    assert "more sure input" in ran.json["soundness"]["evidence"][-1]
    junit = edgeflare("report", "few", "--format", "junit", home=home).out
    case = next(
        one for one in ET.fromstring(junit).iter("testcase") if one.get("name") == "verdict"
    )
    skipped = case.find("skipped")
    assert "undecided: verdict" in skipped.get("message", "")
    report = edgeflare("report", "few", "--format", "markdown", home=home).out
    assert "**Undecided" in report.splitlines()[2]
    lines = edgeflare("show", "few", home=home).out.splitlines()
    assert "whether the deployed" in lines[0]
    assert lines[0].startswith(lines[-1])
    passes = ET.fromstring(junit).iter("system-out")
    assert any("models decide alike" in one.text for one in passes)


def test_resumed_a_reference_is_not_asked_twice(sound: Ran, home: Path) -> None:
    del sound
    with sqlite3.connect(home / "sound" / "campaign.sqlite") as database:
        count = "select count(*) from reference_answers"
        (before,) = database.execute(count).fetchone()
        database.execute("delete from reference_answers where reference = 'int8-per-tensor-a'")
        interrupt(database)
    database.close()
    assert edgeflare("resume", "sound", home=home).code == 0
    with sqlite3.connect(home / "sound" / "campaign.sqlite") as database:
        assert database.execute(count).fetchone() == (before,)
    database.close()


@pytest.mark.slow
def test_compare_states_the_verdict_of_each_candidate(home: Path, worse: Ran) -> None:
    del worse
    flags = ("--measure", "queries", "--strategy", "dflare-r", "--max-queries", "3")
    pair = ("--original", DEMO / "original.onnx", "--seeds", DEMO / "seeds.npz", "--limit", "60")
    candidates = (DEMO / "deployed.tflite", "dead.onnx")
    flags = (*flags, "--reference", "int8", "--out", "compared")
    ran = must_run("compare", *candidates, *pair, *flags, "--json", home=home)
    verdicts = {one["name"]: one["soundness"]["verdict"] for one in ran.json["candidates"]}
    assert verdicts == {"deployed": "sound", "dead": "worse"}
    assert not any("same devices" in note for note in ran.json["notes"])
    first = edgeflare("compare", "compared", home=home).out.splitlines()[0]
    assert "Against healthy references" in first
    assert "deployed is sound" in first
    assert "dead is worse" in first


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--reference", "nowhere"), "nowhere"),
        (("--reference", "one/sound", "--reference", "two/sound"), "two references"),
        (("--reference", "int8", "--no-survey"), "leave out --no-survey"),
        (("--reference", "other"), "has another original"),
        (("--reference", "dead.onnx"), "dead.onnx for int8"),
        (("--reference", "int8:gone.onnx"), "model file"),
        (("--reference", "int8:small.onnx"), "input and output"),
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


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--seed", "7"), "--seed 0"),
        (("--family", "gain"), "surveyed with --family"),
        (("--seeds", "others"), "campaign's 12 seeds"),
    ],
)
def test_a_campaign_with_other_inputs_is_refused_before_a_device_is_asked(
    home: Path, sound: Ran, flags: tuple[str, ...], sentence: str
) -> None:
    del sound
    images = np.random.default_rng(0).integers(0, 256, (12, 28, 28, 1), np.uint8)
    np.savez(home / "others.npz", images=images)
    flags = tuple("others.npz" if one == "others" else one for one in flags)
    pair = (*DEMO_PAIR, *ONLY_SURVEY, "--reference", "sound", "--limit", "12", "--out", "unlike")
    ran = edgeflare("run", *pair, *flags, home=home)
    assert ran.code == 2
    assert sentence in ran.err
    assert "seed queries" not in ran.err


@pytest.mark.slow
def test_a_reference_with_other_settings_or_fewer_seeds_is_said(home: Path) -> None:
    flags = (*DEMO_PAIR, "--strategy", "none")
    edgeflare("run", *flags, "--limit", "10", "--out", "small", home=home)
    more = ("--survey-queries", "2", "--sure", "0.4", "--limit", "14", "--out", "larger")
    ran = must_run("run", *flags, *more, "--reference", "small", "--json", home=home)
    notices = " ".join(ran.json["notices"])
    assert "--sure 0.3" in notices
    assert "--survey-queries 3" in notices
    assert "campaign's 28 inputs" in notices
    assert ran.json["soundness"]["inputs"] < 28


@pytest.mark.slow
def test_a_reference_that_is_left_out_is_opened_once(home: Path) -> None:
    flags = (*DEMO_PAIR, "--strategy", "none", "--pursuit-queries", "0", "--limit", "6")
    edgeflare("run", *flags, "--survey-queries", "1", "--out", "sparse", home=home)
    ran = must_run("run", *flags, "--reference", "sparse", "--out", "dense", "--json", home=home)
    about = "its survey has 6 of this campaign's 18 inputs"
    assert [about in one for one in ran.json["notices"]].count(True) == 1
    with sqlite3.connect(home / "dense" / "campaign.sqlite") as database:
        database.execute("update facts set value = 'false' where name = 'finished'")
    database.close()
    shutil.rmtree(home / "sparse")
    again = must_run("resume", "dense", "--json", home=home)
    assert again.json["notices"] == ran.json["notices"]


@pytest.mark.slow
def test_a_reference_answers_what_a_resumed_survey_asks_later(home: Path) -> None:
    flags = (*DEMO_PAIR, "--strategy", "none", "--pursuit-queries", "0", "--limit", "6")
    edgeflare("run", *flags, "--out", "twin", home=home)
    limits = ("--concurrency", "1", "--total-queries", "14")
    part = edgeflare("run", *flags, *limits, "--reference", "twin", "--out", "part", home=home)
    assert "limit is reached" in part.err
    ran = must_run("resume", "part", "--total-queries", "1000", "--json", home=home)
    assert ran.json["soundness"]["inputs"] == ran.json["survey"]["overall"]["inputs"] == 18


def test_a_campaign_that_was_itself_judged_worse_is_no_healthy_reference(home, worse) -> None:
    del worse
    flags = ("limits.toml", "--deployed", "dead.onnx", "--out", "like-worse")
    ran = edgeflare("run", *flags, "--reference", "worse", home=home)
    assert ran.code == 2
    assert "itself judged worse" in ran.sentence
    assert not (home / "like-worse").exists()
    config = load_config(home / "limits.toml", {"deployed": {"path": home / "dead.onnx"}})
    survey = config.survey.model_copy(update={"references": (str(home / "worse"),)})
    run_campaign(config.model_copy(update={"survey": survey, "out": home / "like-worse"}))
    found = summarize(home / "like-worse").soundness
    assert found.verdict == "cannot-tell"
    assert "judged worse" in found.evidence[1]


@pytest.mark.parametrize(("is_gone", "answers"), [(False, 100), (True, 0)])
def test_a_reference_that_was_not_asked_about_the_seeds_is_asked_by_resume(
    home: Path, worse: Ran, is_gone: bool, answers: int
) -> None:
    """As by earlier versions; where it is gone by now, the campaign is finished without."""
    del worse
    folder = home / f"earlier-{is_gone}"
    shutil.copytree(home / "worse", folder)
    with sqlite3.connect(folder / "campaign.sqlite") as database:
        database.execute("delete from reference_answers where phase = 'seed'")
        database.execute("update facts set value = 'false' where name = 'finished'")
        database.execute(
            "update facts set value = json_remove(value, '$.sound.seeds') where name = 'references'"
        )
    database.close()
    if is_gone:
        (home / "sound").rename(home / "elsewhere")
    try:
        assert edgeflare("resume", folder, home=home).code == 1  # the verdict stays worse
    finally:
        if is_gone:
            (home / "elsewhere").rename(home / "sound")
    with sqlite3.connect(folder / "campaign.sqlite") as database:
        count = "select count(*) from reference_answers where phase = 'seed'"
        assert database.execute(count).fetchone() == (answers,)
    database.close()


@pytest.mark.slow
def test_a_model_pruned_before_is_judged_by_int8_models_of_its_float_model(home: Path) -> None:
    flags = (
        *("--original", MNIST / "lenet5.onnx", "--deployed", MNIST / "lenet5_pruned.onnx"),
        *("--seeds", DEMO / "seeds.npz", "--limit", "60"),
        *(*ONLY_SURVEY, "--pursuit-queries", "0", "--json"),
    )
    shutil.copy(MNIST / "lenet5_pruned.onnx", home / "pruned.onnx")
    verdicts = []
    for name, reference in (("from-int8", "int8"), ("from-pruned", "int8:pruned.onnx")):
        ran = must_run("run", *flags, "--reference", reference, "--out", name, home=home)
        verdicts.append(ran.json["soundness"])
    assert [one["verdict"] for one in verdicts] == ["worse", "sound"]
    assert "int8-per-tensor-a of pruned.onnx" in verdicts[1]["references"]
    with sqlite3.connect(home / "from-pruned" / "campaign.sqlite") as database:
        interrupt(database)
    database.close()
    shutil.copy(MNIST / "lenet5.onnx", home / "pruned.onnx")
    resumed = edgeflare("resume", "from-pruned", home=home)
    assert resumed.code == 2
    assert "changed since int8" in resumed.err
    shutil.copy(MNIST / "lenet5_pruned.onnx", home / "pruned.onnx")
    assert edgeflare("resume", "from-pruned", home=home).code == 0
