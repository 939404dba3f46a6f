"""What users do with campaigns and corpora of earlier versions: every command reads them."""

import json
import sys

import pytest
from campaigns import VERSIONS, copy_of
from command import DEMO
from stored_json import change
from typer.testing import CliRunner

from edgeflare.campaign.comparison import run_candidates
from edgeflare.cli import app
from edgeflare.store import open_store

ALSO = [pytest.param(version, marks=pytest.mark.extended) for version in VERSIONS[1:]]
IN_THE_GATE = pytest.mark.parametrize("earlier", [VERSIONS[0], *ALSO], indirect=True)
"""The earliest version passes through the changes of all later ones."""


def run(*arguments):
    done = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(params=VERSIONS)
def earlier(request, tmp_path):
    """A copy whose models and device are where they are on this machine."""
    copied = copy_of(request.param, tmp_path)
    database = copied.campaign / "campaign.sqlite"
    for column in ("config", "models"):
        moved = f"update campaign set {column} = replace({column}, '/home/user/mnist', ?)"
        change(database, moved, values=[str(DEMO)])
    known = "update facts set value = replace(value, '\"python3\"', ?) where name = 'devices'"
    change(database, known, values=[json.dumps(sys.executable)])
    return copied


def test_show_and_report_tell_what_they_told_then(earlier, tmp_path):
    shown = json.loads(run("show", earlier.campaign, "--json"))
    figures = earlier.show | {
        "total_queries": {"measuring": 0, "survey": 0} | earlier.show["total_queries"]
    }
    assert {name: shown[name] for name in figures} == figures
    for form in ("html", "markdown"):
        run("report", earlier.campaign, "--format", form, "--out", tmp_path / form)
        assert "seeds.npz:0" in (tmp_path / form).read_text()


@IN_THE_GATE
def test_a_campaign_is_resumed_and_replayed(earlier, tmp_path):
    run("resume", earlier.campaign, "--total-queries", 1000, "--force")
    shown = json.loads(run("show", earlier.campaign, "--json"))
    assert (shown["finished"], shown["unfinished"]) == (6, 0)
    replayed = json.loads(run("replay", earlier.campaign, "--out", tmp_path / "replay", "--json"))
    triggers = [one for one in replayed["inputs"] if one["kind"] == "trigger"]
    assert len(triggers) == shown["found"]


@IN_THE_GATE
def test_candidates_are_compared_as_it_was_run_with_or_without_a_survey(earlier, tmp_path):
    found = run_candidates(
        earlier.campaign, [DEMO / "deployed.tflite"], out=tmp_path / "candidates"
    )
    with open_store(found.finished[0].folder) as store:
        had_survey = earlier.show["total_queries"].get("survey", 0) > 0
        assert bool(list(store.survey())) == had_survey


@IN_THE_GATE
def test_a_corpus_is_shown_replayed_and_added_to(earlier, tmp_path):
    shown = json.loads(run("corpus", "show", earlier.corpus, "--json"))
    assert {name: shown[name] for name in earlier.corpus_show} == earlier.corpus_show
    run("replay", earlier.corpus, "--campaign", earlier.campaign, "--out", tmp_path / "replay")
    run("corpus", "add", earlier.corpus, earlier.campaign, tmp_path / "replay")
    again = json.loads(run("corpus", "show", earlier.corpus, "--json"))
    assert again["entries"] == shown["entries"]
    run("corpus", "remove", earlier.corpus, "--model", "deployed.tflite")
    assert json.loads(run("corpus", "show", earlier.corpus, "--json"))["entries"] == 0


@pytest.mark.parametrize(
    ("kind", "stored"),
    [("transport", '"transport": "mine"'), ("runtime", '"transport": "local", "runtime": "mine"')],
)
def test_a_plug_in_that_is_not_installed_is_no_damage(tmp_path, kind, stored):
    copied = copy_of("schema-5", tmp_path)
    change(
        copied.campaign / "campaign.sqlite",
        "update facts set value = replace(value, ?, ?) where name = 'devices'",
        values=['"transport": "local"', stored],
    )
    models = [f"--original={DEMO / 'original.onnx'}", f"--deployed={DEMO / 'deployed.tflite'}"]
    done = CliRunner().invoke(app, ["replay", str(copied.campaign), *models])
    assert done.exit_code == 2
    assert f"{kind} 'mine'" in done.output.replace("\n", " ")
