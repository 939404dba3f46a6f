"""``edgeflare report`` for CI, for programs and for comments, as a user runs it."""

import csv
import io
import json
from pathlib import Path

import pytest
from command import DEMO, Ran, edgeflare
from junitparser import JUnitXml
from typer.testing import CliRunner

from edgeflare import replay_base, replay_config, run_campaign, run_replay
from edgeflare.campaign import demo_config
from edgeflare.cli.app import app

CLASSES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo's campaign "digits" is: five triggers from five seeds."""
    made = tmp_path_factory.mktemp("reports")
    run_campaign(demo_config(seeds=5, out=made / "digits"))
    return made


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def report(*arguments: object) -> Ran:
    ran = CliRunner().invoke(app, ["report", *map(str, arguments)])
    return Ran(ran.exit_code, ran.stdout, ran.stderr)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_new_report_takes_the_place_of_the_one_before(home):
    (home / "again.csv").write_text("x" * 100_000)
    assert report("digits", "--format", "csv", "--out", "again.csv").code == 0
    assert len(rows_of((home / "again.csv").read_text())) == 5
    assert [path.name for path in home.glob("*again*")] == ["again.csv"]


def test_a_pipe_gets_the_text_and_nothing_else(home):
    ran = edgeflare("report", "digits", "--format", "json", home=home)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["found"] == len(ran.json["findings"]) == 5
    comment = report("digits", "--format", "markdown")
    first = comment.out.removeprefix("## EdgeFlare: digits\n\n**").partition("\n")[0]
    assert "0 of 15" in first
    assert "5 seeds (100" in first
    assert comment.err == ""
    assert len(rows_of(report("digits", "--format", "csv").out)) == 5


def test_without_a_format_a_page_is_put_into_the_campaign(home):
    ran = report("digits", "--embed-mb", "1")
    assert (ran.code, ran.out) == (0, "")
    assert ran.sentence.startswith("wrote digits/report.html: ")
    assert "kB, 5 findings" in ran.sentence
    page = (home / "digits" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "seeds.npz:4" in page


@pytest.mark.extended
def test_a_replay_fails_on_what_is_new_only(home):
    for source, model, out in (
        ("digits", "original.onnx", "fixed"),
        ("fixed", "deployed.tflite", "broken"),
    ):
        base = replay_base(home / source)
        run_replay(
            home / source,
            replay_config(base, {"deployed": {"path": DEMO / model}, "out": home / out}),
        )
    for folder, failures, state in (("fixed", 0, "fixed"), ("broken", 5, "new")):
        (suite,) = JUnitXml.fromstring(report(folder, "--format", "junit").out.encode())
        assert (suite.tests, suite.failures, suite.errors) == (10, failures, 0)
        said = report(folder, "--format", "json").json
        assert said["replay"]["counts"][state] == 5
        assert said["replay"]["counts"]["agrees"] == 5
    comment = report("broken", "--format", "markdown").out
    assert "0 fixed, 0" in comment
    assert comment.count("| local |") == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "campaign folder nothing"),
        (["names.json"], "names.json"),
        (["."], "campaign folder"),
        (["digits", "--format", "pdf"], "junit, json, markdown"),
        (["digits", "--format", "csv", "--out", "."], "folder; name"),
        (["digits", "--format", "csv", "--out", "names.json/a.csv"], "can't be written"),
        (["digits", "--format", "csv", "--out", "digits/campaign.sqlite"], "the campaign itself"),
        (["digits", "--format", "html", "--out", "digits/campaign.sqlite"], "the campaign itself"),
        (["digits", "--format", "csv", "--class-names", "names.json"], "2 of 10"),
        (["digits", "--format", "csv", "--class-names", "nothing"], "nothing"),
        (["digits", "--format", "csv", "--embed-mb", "2"], "pictures"),
    ],
)
def test_what_cannot_be_done_is_reported_in_one_sentence(home, arguments, words):
    (home / "names.json").write_text(json.dumps(CLASSES[:2]))
    ran = report(*arguments, *(() if "--format" in arguments else ("--format", "junit")))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert words in ran.err
