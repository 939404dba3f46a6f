"""A campaign's survey: what it finds far from the seeds, that nothing changes it, and what keeps it."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from campaigns import all_of, found_in
from command import DEMO, DEMO_PAIR, edgeflare, environment, must_run
from small_models import wrong_in_the_dark_onnx

from edgeflare import summarize
from edgeflare.store import Store

ORIGINAL = DEMO / "original.onnx"
SEEDS = ("--seeds", DEMO / "seeds.npz", "--limit", 20)
NO_PURSUIT = ("--pursuit-queries", 0)


def surveyed(folder: Path) -> list[Any]:
    found: list[Any] = all_of(folder)["surveyed"]
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("survey")


@pytest.fixture(scope="module")
def faulty(home: Path) -> Path:
    """A survey of the demo's original against a copy that is wrong where an image is dark."""
    deployed = wrong_in_the_dark_onnx(ORIGINAL, home / "faulty.onnx")
    ran = must_run(
        *("survey", "--original", ORIGINAL, "--deployed", deployed, *SEEDS),
        *("--family", "dim", "--family", "gain", "--family", "rotation", "--out", "faulty"),
        *NO_PURSUIT,
        home=home,
    )
    assert "confident deviations" in ran.out
    return home / "faulty"


def test_a_fault_that_no_seed_shows_is_found_with_its_rate(faulty: Path) -> None:
    summary = summarize(faulty)
    assert summary.by_status["seed-deviates"] == 0
    survey = summary.survey
    assert survey.overall.deviations > 5
    assert survey.overall.inputs == 60
    assert 0 < survey.overall.low < survey.overall.rate < survey.overall.high < 1
    deviating = {one.family for one in survey.by_family if one.rate.deviations}
    assert "dim" in deviating
    assert "rotation" not in deviating
    assert all(one.confident_deviation for one in survey.worst[:5])


def test_the_queries_are_counted_exactly(faulty: Path) -> None:
    summary = summarize(faulty)
    with Store.open(faulty) as store:
        records, costs = list(store.survey()), list(store.surveyed_seeds())
    deviations = sum(one.confident_deviation for one in records)
    assert summary.total_queries["survey"] == len(records) == 60
    assert summary.total_queries["confirmation"] == 2 * deviations
    assert summary.total_queries["host_only"] == sum(one.host_only_queries for one in costs)
    assert summary.total_queries["search"] == 0


def test_every_deviation_is_confirmed_and_sure(faulty: Path) -> None:
    with Store.open(faulty) as store:
        for one in store.survey():
            assert one.original_margin is not None
            assert one.original_margin >= 0.3
            assert one.confirmed == (2 if one.confident_deviation else 0)
            if one.confident_deviation:
                assert store.get_sample(one.sample).max() < 100


def test_export_writes_every_input_and_pictures_of_the_findings(faulty: Path, home: Path) -> None:
    ran = must_run("export", faulty, "files", "--json", home=home)
    rows = [json.loads(line) for line in (home / "files" / "survey.jsonl").read_text().splitlines()]
    findings = [row for row in rows if row["confident_deviation"]]
    assert len(rows) == 60
    assert ran.json["survey_findings"] == len(findings)
    for row in findings:
        assert (home / "files" / row["files"]["panel"]).is_file()
        assert row["original_label"] != row["deployed_label"]
    assert not any(row["files"] for row in rows if not row["confident_deviation"])


def test_the_page_has_a_chart_with_bounds_and_pictures_of_the_worst(faulty, home) -> None:
    survey = summarize(faulty).survey
    found = f", 0 findings, {survey.overall.deviations} confident deviations of the survey"
    ran = must_run("report", faulty, "--out", "page.html", home=home)
    assert found in ran.sentence
    ran = edgeflare("report", faulty, "--format", "markdown", "--out", "page.md", home=home)
    assert ran.sentence.endswith(found)
    page = (home / "page.html").read_text()
    part = page[page.index('id="survey"') : page.index('id="devices"')]
    assert part.count('class="bounds"') == 5
    assert '<li><span class="key line-2"></span>light</li>' in part
    assert part.count('src="data:image/png;base64,') == 10
    assert "Worst confident deviations" in part
    ran = edgeflare("report", faulty, "--format", "markdown", home=home)
    assert "Survey: inputs far" in ran.out
    assert "| dim |" in ran.out


@pytest.mark.extended
def test_replay_sends_the_findings_again(faulty: Path, home: Path) -> None:
    ran = must_run("replay", faulty, "--only", "triggers", "--json", home=home)
    survey = summarize(faulty).survey
    assert ran.json["counts"]["still"] == survey.overall.deviations
    healthy = edgeflare(
        *("replay", faulty, "--only", "triggers", "--deployed", DEMO / "deployed.tflite", "--json"),
        home=home,
    )
    assert healthy.json["counts"]["fixed"] == survey.overall.deviations


def test_the_command_of_a_finding_sends_it_again(faulty: Path, home: Path) -> None:
    report = json.loads(edgeflare("report", faulty, "--format", "json", home=home).out)
    first = report["survey_findings"][0]
    ran = must_run(*first["command"].split()[1:], home=home)
    assert f"{first['seed_id']} on local" in ran.out
    assert "last bit" in ran.out


def test_a_corpus_keeps_the_findings(faulty: Path, home: Path) -> None:
    ran = must_run("corpus", "add", "corpus", faulty, "--json", home=home)
    (added,) = ran.json["campaigns"]
    survey = summarize(faulty).survey
    assert added["new"] + added["near"] + added["known"] == survey.overall.deviations
    assert added["new"] > 0


@pytest.mark.extended
def test_a_healthy_model_has_no_confident_deviation_and_the_search_is_not_changed(home) -> None:
    common = ("run", *DEMO_PAIR, "--limit", 6, "--max-queries", 200, "--timeout", 0)
    for flags, out in (((), "with"), (("--no-survey",), "without")):
        must_run(*common, *flags, "--out", out, home=home)
    assert found_in(home / "with") == found_in(home / "without")
    survey = summarize(home / "with").survey
    assert survey.overall.deviations == 0
    assert survey.overall.low == 0 < survey.overall.high
    assert summarize(home / "without").survey is None
    assert summarize(home / "without").total_queries["survey"] == 0


@pytest.mark.extended
def test_more_seeds_do_not_change_those_that_are_there(home: Path) -> None:
    for limit in (3, 6):
        must_run(
            *("survey", *DEMO_PAIR, *NO_PURSUIT, "--limit", limit, "--out", f"first-{limit}"),
            home=home,
        )
    few, more = surveyed(home / "first-3"), surveyed(home / "first-6")
    names = {row[1] for row in few}
    mixed = {"mix"}
    assert [row for row in few if row[4] not in mixed] == [
        row for row in more if row[1] in names and row[4] not in mixed
    ]


@pytest.mark.extended
def test_devices_that_survey_for_themselves_are_asked_the_same(home: Path) -> None:
    fleet = ("--device", "local", "--device", "local")
    common = ("survey", *DEMO_PAIR, "--limit", 4)
    for mode in ("split", "replicate"):
        must_run(*common, *fleet, "--fleet", mode, "--out", mode, home=home)
    split = [row[1:] for row in surveyed(home / "split")]
    both = surveyed(home / "replicate")
    for name in ("local", "local#2"):
        assert [row[1:] for row in both if row[0] == name] == split
    survey = summarize(home / "replicate").survey
    assert [one.device for one in survey.by_device] == ["local", "local#2"]
    assert survey.seeds == survey.seeds_in_all == 8


@pytest.mark.slow
def test_a_killed_survey_is_resumed_to_what_it_would_have_been(home: Path) -> None:
    arguments = ("survey", *DEMO_PAIR, "--limit", 40, "--survey-queries", 4)
    assert edgeflare(*arguments, "--out", "whole", home=home).code == 0
    folder = home / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", *map(str, arguments), "--out", str(folder)],
        cwd=home,
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not begun(folder):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    must_run("resume", folder, home=home)
    assert all_of(folder) == all_of(home / "whole")


def begun(folder: Path) -> bool:
    """Whether the survey of some seeds is stored."""
    if not (folder / "campaign.sqlite").is_file():
        return False
    with Store.open(folder) as store:
        return store.survey_counts().seeds > 2


@pytest.mark.extended
def test_a_query_limit_holds_for_the_survey_and_a_larger_one_goes_on(faulty, home) -> None:
    pair = ("--original", ORIGINAL, "--deployed", faulty.with_suffix(".onnx"), *SEEDS)
    common = ("survey", *pair, "--family", "dim", "--family", "gain")
    ran = must_run(*common, "--total-queries", 35, "--out", "limited", home=home)
    assert "limit is reached" in ran.err
    for limit in (35, 120, 1000):
        assert edgeflare("resume", "limited", "--total-queries", limit, home=home).code == 0
        counted = summarize(home / "limited").total_queries
        assert sum(counted.values()) - counted["host_only"] <= limit
        assert counted["survey"] > 0
    must_run(*common, "--out", "unlimited", home=home)
    assert surveyed(home / "limited") == surveyed(home / "unlimited")
    assert summarize(home / "limited").unfinished == 0


@pytest.mark.parametrize(
    "change",
    [
        "survey_answers SET severity = 9",
        "outcomes SET status = 'lost'",
        "facts SET value = '[]' WHERE name = 'faults'",
    ],
)
def test_a_damaged_campaign_is_not_called_finished(faulty, tmp_path, home, change) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(faulty, folder)
    assert "nothing is left" in edgeflare("resume", folder, home=home).err
    with sqlite3.connect(folder / "campaign.sqlite") as database:
        database.execute("INSERT OR IGNORE INTO facts (name, value) VALUES ('faults', '{}')")
        database.execute(f"UPDATE {change}")
    database.close()
    ran = edgeflare("resume", folder, home=home)
    assert ran.code == 2
    assert str(folder) in ran.sentence
    assert "nothing is left to do" not in ran.err


def test_an_unknown_family_is_refused_before_anything_is_made(home: Path) -> None:
    ran = edgeflare("survey", *DEMO_PAIR, "--family", "gian", "--out", "unknown", home=home)
    assert ran.code == 2
    assert "'gian'" in ran.sentence
    assert "you mean 'gain'?" in ran.sentence
    assert not (home / "unknown").exists()


@pytest.mark.extended
def test_a_control_surveys_the_original_against_itself(home: Path) -> None:
    ran = must_run(
        *("survey", *DEMO_PAIR, *NO_PURSUIT, "--limit", 6, "--control", "--out", "controlled"),
        "--json",
        home=home,
    )
    assert ran.json["control"]["surveyed"] == 18
    assert ran.json["control"]["survey_alarms"] == 0
