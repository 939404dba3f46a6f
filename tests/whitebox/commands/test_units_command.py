"""``edgeflare inspect units``: its figures against NumPy, its table in SQL, what it says and refuses."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns import copy_of
from command import DEMO, DEMO_PAIR, Ran, edgeflare, must_run
from small_models import wrong_in_the_dark_onnx
from stored_json import changed_result

from edgeflare.campaign import SurveyInputs
from edgeflare.models import spec_from_json
from edgeflare.models.tensors import open_graph
from edgeflare.reports import units_document
from edgeflare.reports.document import to_markdown
from edgeflare.store import SeedAnswer, Store
from edgeflare.types import AGREED, Decision
from edgeflare_whitebox import (
    Hypothesis,
    activations_of,
    stored_units,
    units_of_campaign,
)

ORIGINAL = DEMO / "original.onnx"


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey from forty digits, where the deployed model is wrong on dark images."""
    home = tmp_path_factory.mktemp("surveyed")
    deployed = wrong_in_the_dark_onnx(ORIGINAL, home / "faulty.onnx")
    models = ("--original", ORIGINAL, "--deployed", deployed, "--seeds", DEMO / "seeds.npz")
    few = ("--limit", 40, "--pursuit-queries", 0)
    families = [word for name in ("dim", "bright", "haze") for word in ("--family", name)]
    must_run("survey", *models, *few, *families, "--out", "c", home=home)
    return home / "c"


@pytest.fixture
def home(surveyed: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the survey, the campaign ``c``."""
    shutil.copytree(surveyed, tmp_path / "c")
    return tmp_path


def inspect(home: Path, *more: object) -> Ran:
    return edgeflare("inspect", "units", "c", *more, home=home)


def rows(home: Path) -> Iterator[tuple[Any, ...]]:
    """The table as any SQLite client reads it."""
    with closing(sqlite3.connect(home / "c" / "campaign.sqlite")) as connection:
        yield from connection.execute(
            "select layer, unit, hypothesis, measure, score, low, high, records from unit_scores"
        )


def expected(home: Path) -> tuple[Any, list[float]]:
    """All inputs' activations of the last but one layer, and whether the device deviates on them."""
    graph = open_graph(ORIGINAL, "onnx", {})
    with Store.open(home / "c") as store:
        spec = spec_from_json(store.models["original"]["input"])
        made = SurveyInputs(store)
        found = {one.sample: (made.sample(one), one.confident_deviation) for one in store.survey()}
        for seed in store.seeds():
            known = store.get_sample(seed.sample), seed.outputs.decision not in AGREED
            found.setdefault(seed.sample, known)
    samples = (sample for sample, _ in found.values())
    units = [one.layers["b4"].units for one in activations_of(graph, spec, samples, ["b4"])]
    return np.array(units), [float(one) for _, one in found.values()]


def test_the_units_that_go_with_deviation_are_told_everywhere(home: Path) -> None:
    assert edgeflare("report", "c", home=home).code == 0
    assert 'id="units"' not in (home / "c" / "report.html").read_text()
    ran = inspect(home, "--json")
    assert ran.code == 0, ran.err
    found = ran.json
    units, deviates = expected(home)
    assert found["inputs"]["seeds"] == 40
    assert found["total"] == found["records"] == len(units) > 100
    assert found["deviating"] == sum(deviates) >= 10
    (one, *others) = found["hypotheses"]
    assert (one["name"], one["ones"], one["problem"]) == ("deviates", sum(deviates), "")
    assert [other["name"] for other in others] == ["brightness", "contrast", "edges", "blur"]
    assert {best["measure"] for best in one["best"]} == {"pearson", "mutual-information"}
    assert [layer["layer"] for layer in one["layers"]] == ["b1", "b2", "b3", "b4", "logits"]
    assert all(layer["f1"]["score"] > one["guess"] for layer in one["layers"][:2])
    r = np.corrcoef(units.T, deviates)[-1, :-1]
    in_table = {
        row[1]: row[4]
        for row in rows(home)
        if row[0] == "b4" and row[2:4] == ("deviates", "pearson")
    }
    assert in_table == {unit: pytest.approx(r[unit], abs=1e-5) for unit in range(84)}
    by_measure = {(row[2], row[3]): 0 for row in rows(home)}
    assert len(by_measure) == 5 * 2 + 1, "F1 of deviates alone, which is binary"
    text = inspect(home).out
    assert "layers; F1" in text
    best = one["best"][0]
    assert edgeflare("report", "c", home=home).code == 0
    html = (home / "c" / "report.html").read_text()
    section = html[html.index('id="units"') : html.index('id="devices"')]
    for shown in (f"{best['score']:.2f}", "beyond chance"):
        assert shown in section
        assert shown in text
    assert '<a href="#units">' in html


def test_a_later_inspection_takes_the_place_of_the_table(home: Path) -> None:
    assert inspect(home).code == 0
    assert (
        inspect(home, "--hypothesis", "brightness", "--measure", "pearson", "--layer", "b1").code
        == 0
    )
    assert {row[:4] for row in rows(home)} == {
        ("b1", unit, "brightness", "pearson") for unit in range(6)
    }
    for row in rows(home):
        assert -1 <= row[5] < row[4] < row[6] <= 1
        assert row[7] > 100


def test_the_documented_query_runs(home: Path) -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "campaign-folder.md"
    (query,) = (
        part.split("```")[0] for part in page.read_text("utf-8").split("```text\nselect")[1:]
    )
    assert inspect(home).code == 0
    with closing(sqlite3.connect(home / "c" / "campaign.sqlite")) as connection:
        found = connection.execute(f"select{query}").fetchall()
    assert found
    assert all(abs(row[2]) >= abs(after[2]) for row, after in pairwise(found))


def test_families_and_classes_are_hypotheses(home: Path) -> None:
    names = ("--hypothesis", "families", "--hypothesis", "class:3", "--measure", "pearson")
    found = inspect(home, *names, "--json").json
    assert [one["name"] for one in found["hypotheses"]] == [
        *("family:bright", "family:dim", "family:haze", "class:3")
    ]
    dim = found["hypotheses"][1]
    with Store.open(home / "c") as store:
        made = {one.sample for one in store.survey() if one.family == "dim"}
    assert dim["ones"] == len(made)
    with Store.open(home / "c") as store:
        labels = {seed.label for seed in store.seeds()}
    every = inspect(home, "--hypothesis", "classes", "--measure", "pearson", "--json").json
    assert [one["name"] for one in every["hypotheses"]] == [
        f"class:{label}" for label in sorted(labels)
    ]


def test_triggering_inputs_are_looked_at_on_request(tmp_path: Path) -> None:
    must_run("run", *DEMO_PAIR, "--limit", 14, "--no-survey", "--out", "c", home=tmp_path)
    found = inspect(tmp_path, "--inputs", "all", "--json").json
    assert found["inputs"]["seeds"] == 14
    assert found["inputs"]["triggers"] == found["deviating"] >= 10
    assert found["hypotheses"][0]["ones"] == found["deviating"]
    text = inspect(tmp_path, "--inputs", "triggers", "--inputs", "seeds").out
    assert "Triggering inputs" in text
    assert inspect(tmp_path, "--inputs", "survey").code == 2


def test_each_device_that_answers_for_itself_is_a_hypothesis(home: Path) -> None:
    """Of forty seeds "pi" deviates on the first 12, "jetson" on 14 from the tenth on, and can't answer five."""
    with Store.open(home / "c") as store:
        seeds = [one for one in store.seeds() if one.outputs is not None]
        for name, some in (("pi", range(12)), ("jetson", range(10, 24))):
            decisions = [
                Decision.DEVIATION if place in some else Decision.AGREE for place in range(40)
            ]
            if name == "jetson":
                decisions[35:] = [Decision.UNDECIDED] * 5
            answers = [
                SeedAnswer(one.id, one.outputs.original, one.outputs.original, decision)
                for one, decision in zip(seeds, decisions, strict=True)
                if one.outputs is not None and one.outputs.original is not None
            ]
            store.add_seed_answers(answers, name)
        store.state.replicas = ["pi", "jetson"]
    found = inspect(home, "--inputs", "seeds", "--measure", "pearson", "--json").json
    known = {one["name"]: (one["records"], one["ones"]) for one in found["hypotheses"][:3]}
    assert known == {"deviates": (40, 24), "deviates:pi": (40, 12), "deviates:jetson": (35, 14)}
    assert found["deviating"] == 24


def test_a_result_of_an_earlier_version_that_read_less_says_so(home: Path) -> None:
    assert inspect(home, "--hypothesis", "blur", "--layer", "b1").code == 0
    with changed_result(home / "c", "units") as result:
        result |= {"records": 128, "error": 0.25}
    with Store.open(home / "c") as store:
        found = stored_units(store)
    text = to_markdown(units_document(found))
    assert f"128 of {found.total}" in text
    assert "within 0.25" in text


def test_campaigns_of_earlier_versions_are_inspected(tmp_path: Path) -> None:
    """Their database gets the table; the demo's original is where it is now."""
    for version in ("schema-5", "schema-6"):
        earlier = copy_of(version, tmp_path / version)
        earlier.campaign.rename(tmp_path / version / "c")
        ran = inspect(tmp_path / version, "--original", ORIGINAL, "--inputs", "all", "--json")
        assert ran.code == 0, ran.err
        assert ran.json["total"] >= 12
        assert list(rows(tmp_path / version))


def test_a_users_own_function(home: Path) -> None:
    corner = Hypothesis("corner", lambda one: float(one.sample[:4, :4].mean()))
    with Store.open(home / "c") as store:
        makes = SurveyInputs(store)
        found = units_of_campaign(
            home / "c", hypotheses=["deviates", corner], remake=lambda _: makes.sample
        )
        assert stored_units(store) == found
    assert [one.name for one in found.hypotheses] == ["deviates", "corner"]
    without = units_of_campaign(home / "c", hypotheses=[corner])
    assert without.inputs == {"seeds": 40, "survey": 0}
    assert "survey left out" in without.notices[0]


def test_a_damaged_result_is_told(home: Path) -> None:
    assert inspect(home, "--hypothesis", "blur", "--layer", "b1").code == 0
    with changed_result(home / "c", "units") as result:
        result["measures"] = ["spearman"]
    ran = edgeflare("report", "c", home=home)
    assert ran.code == 2
    assert "the result 'units'" in ran.sentence


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--hypothesis", "sharp"), "hypothesis 'sharp'; take"),
        (("--hypothesis", "family:fog"), "hypothesis 'family:fog'"),
        (("--measure", "spearman"), "measure 'spearman'"),
        (("--hypothesis", "class:10"), "10 classes, 0"),
        (("--inputs", "all", "--inputs", "seeds"), "inputs 'all'"),
        (("--inputs", "some"), "inputs 'some'; take"),
        (("--inputs", "triggers"), "inputs (triggers)"),
        (("--layer", "b9"), "tensor 'b9'"),
        (("--original", DEMO / "deployed.tflite"), "original model"),
    ],
)
def test_what_can_not_be_inspected_is_told(home, flags, words) -> None:
    ran = inspect(home, *flags)
    assert ran.code == 2, ran.both
    assert words in ran.sentence
    assert ran.out == ""
