"""Campaigns go after a planted fault, describe it, resume where they stopped, and report it."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planted_faults import ASSETS, BENCH_ASSETS, planted_model
from plugin_distributions import install_corruption

from edgeflare import resume_campaign, search, summarize
from edgeflare.analysis.faults import FaultFigures
from edgeflare.campaign.events import Event, Notice, Stage, Step
from edgeflare.errors import PreflightError, StoreError, UsageError
from edgeflare.reports import report_text, write_html_report
from edgeflare.store import Store, open_store
from edgeflare.store.location import DATABASE_NAME

ORIGINAL = BENCH_ASSETS / "mnist" / "lenet5.onnx"
SEEDS = ASSETS / "demo" / "seeds.npz"
WORDS = "brightest pixel below 100 of 255"
REGION = "dark"
LIMIT = 30


def campaign(folder: Path, deployed: Path, progress: Any = None, **survey: Any) -> Path:
    """Run a campaign that surveys, pursues and searches nothing; return its folder."""
    search(
        ORIGINAL,
        deployed,
        {"path": SEEDS, "limit": LIMIT},
        folder=folder,
        strategy="none",
        survey={"enabled": True, "queries": 2, **survey},
        **({"progress": progress} if progress else {}),
    )
    return folder


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LeNet-5 that is wrong on dark inputs."""
    path = tmp_path_factory.mktemp("models") / "dark.onnx"
    planted_model(ORIGINAL, path, REGION)
    return path


@pytest.fixture(scope="module")
def pursued(faulty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign against that."""
    return campaign(tmp_path_factory.mktemp("campaigns") / "whole", faulty)


def figures(folder: Path) -> FaultFigures:
    faults = summarize(folder).faults
    assert faults is not None
    return faults


def test_the_fault_is_described_and_checked(pursued: Path) -> None:
    first = figures(pursued).faults[0]
    assert first.words == WORDS
    assert first.precision == first.recall == 1
    assert first.fresh_inside is not None
    assert first.fresh_inside >= 8
    assert first.fresh_inside_deviating <= first.inputs
    assert first.inputs == sum(one.count for one in first.pairs)
    assert figures(pursued).unlisted == 0
    assert all((one.original or 0) + 1 == one.deployed or one.deployed == 0 for one in first.pairs)
    assert all(one.confident_deviation for one in first.worst)


def test_the_budget_counts_pursuit_and_check(pursued: Path) -> None:
    queries = figures(pursued).queries
    assert 0 < queries["pursuit"] + queries["check"] <= 2 * LIMIT
    with open_store(pursued) as store:
        phases = [one.phase for one in store.survey()]
    assert phases.count("pursuit") == queries["pursuit"]
    assert phases.count("check") == queries["check"]


def test_a_pursuit_does_not_change_the_surveys_rate(pursued: Path) -> None:
    survey = summarize(pursued).survey
    with open_store(pursued) as store:
        assert survey.overall.inputs == len(list(store.survey(phase="survey")))


def test_every_report_has_the_fault(pursued: Path, tmp_path: Path) -> None:
    stored = json.loads(report_text(pursued, "json"))
    markdown = report_text(pursued, "markdown")
    assert stored["faults"]["faults"][0]["words"] == WORDS
    assert markdown.splitlines()[2].endswith(f"Fault 1: {WORDS}.**")
    assert f"inputs of {figures(pursued).faults[0].seeds}" in markdown
    page = tmp_path / "page.html"
    write_html_report(pursued, page)
    text = page.read_text()
    assert WORDS in text
    assert text.count("data:image/png") >= len(figures(pursued).faults[0].worst)


def asked(folder: Path) -> Iterator[tuple[Any, ...]]:
    with open_store(folder) as store:
        for one in store.survey():
            yield one.key, one.sample, one.confident_deviation


class _StopAt:
    """Interrupts a campaign at the so many-th step of its pursuit."""

    def __init__(self, step: int) -> None:
        self._left = step
        self._pursuing = False
        self.notices: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)
        elif isinstance(event, Stage):
            self._pursuing = event.name == "pursuit"
        elif isinstance(event, Step) and self._pursuing:
            self._left -= 1
            if not self._left:
                raise KeyboardInterrupt


@pytest.mark.extended
def test_a_resumed_pursuit_asks_nothing_twice(pursued: Path, faulty: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    stop = _StopAt(3)
    with pytest.raises(KeyboardInterrupt):
        campaign(folder, faulty, stop)
    assert stop.notices == ["stopped in the stage pursuit, before any search; all answers are kept"]
    with open_store(folder) as store:
        assert store.state.faults is None
    resume_campaign(folder)
    assert list(asked(folder)) == list(asked(pursued))
    assert figures(folder).faults == figures(pursued).faults
    assert figures(folder).queries == figures(pursued).queries


@pytest.mark.extended
def test_a_stored_answer_to_another_input_is_refused(faulty: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        campaign(folder, faulty, _StopAt(3))
    with closing(sqlite3.connect(folder / DATABASE_NAME)) as connection:
        other = "UPDATE survey_answers SET sample_digest = ? WHERE phase = 'pursuit'"
        connection.execute(other, ("0" * 64,))
        connection.commit()
    before = list(asked(folder))
    with pytest.raises(StoreError, match="other inputs"):
        resume_campaign(folder)
    assert list(asked(folder)) == before


@pytest.mark.extended
def test_a_damaged_answer_that_a_pursuit_goes_on_from_is_refused(faulty, tmp_path) -> None:
    whole = tmp_path / "whole"
    with pytest.raises(KeyboardInterrupt):
        campaign(whole, faulty, _StopAt(1))
    steps = "family = 'chain', params = '{\"steps\": 5}'"
    for number, (change, problem) in enumerate(
        (
            ("params = '{}'", "has other parameters here"),
            (steps, "the family 'chain' has other parameters"),
            ("family = 'gone'", "there is no family 'gone'"),
        )
    ):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        with closing(sqlite3.connect(folder / DATABASE_NAME)) as connection:
            connection.execute(f"UPDATE survey_answers SET {change} WHERE confident_deviation")
            connection.commit()
        with pytest.raises(StoreError, match=f"again: .*{problem}"):
            resume_campaign(folder)


def interrupted_with(folder: Path, deployed: Path, plugins: Path) -> None:
    """Interrupt the pursuit of a campaign that began with a user's corruption."""
    install_corruption(plugins, "darken")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(plugins)
        with pytest.raises(KeyboardInterrupt):
            campaign(folder, deployed, _StopAt(2))


@pytest.mark.extended
def test_a_family_that_is_gone_stops_the_resumed_survey_but_no_report(faulty, tmp_path) -> None:
    folder = tmp_path / "stopped"
    interrupted_with(folder, faulty, tmp_path / "plugins")
    progress = _StopAt(0)
    with pytest.raises(UsageError, match=r"'darken'.* install"):
        resume_campaign(folder, progress=progress)
    assert "stopped before" in progress.notices[-1]
    assert "## Survey" in report_text(folder, "markdown")


@pytest.mark.extended
@pytest.mark.parametrize("pursuit", [None, pytest.param(0, marks=pytest.mark.slow)])
def test_a_family_that_is_gone_after_the_survey_stops_no_search(tmp_path, pursuit) -> None:
    folder = tmp_path / "searching"
    install_corruption(tmp_path / "plugins", "darken")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path / "plugins")
        search(
            *(ORIGINAL, ORIGINAL, {"path": SEEDS, "limit": 3}),
            folder=folder,
            strategy="none",
            survey={"enabled": True, "families": ("darken", "gain"), "pursuit": pursuit},
        )
    with closing(sqlite3.connect(folder / DATABASE_NAME)) as connection:
        connection.execute("DELETE FROM outcomes WHERE seed = 2")
        connection.execute("UPDATE facts SET value = 'false' WHERE name = 'finished'")
        connection.commit()
    before = list(asked(folder))
    resume_campaign(folder)
    assert summarize(folder).unfinished == 0
    assert list(asked(folder)) == before


@pytest.mark.slow
def test_a_family_installed_meanwhile_changes_nothing(
    pursued: Path, faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):
        campaign(folder, faulty, _StopAt(2))
    install_corruption(tmp_path / "plugins", "darken")
    monkeypatch.syspath_prepend(tmp_path / "plugins")
    resume_campaign(folder)
    assert list(asked(folder)) == list(asked(pursued))


def test_no_pursuit_where_it_is_switched_off(faulty: Path, tmp_path: Path) -> None:
    folder = campaign(tmp_path / "none", faulty, pursuit=0)
    with open_store(folder) as store:
        assert {one.phase for one in store.survey()} == {"survey"}
    assert summarize(folder).faults is None


def test_a_sound_model_has_no_fault(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "sound", ORIGINAL)
    found = figures(folder)
    assert found.faults == ()
    assert found.unlisted == 0
    assert found.queries["pursuit"] <= 16
    with Store.open(folder) as store:
        assert any("original, the same" in one for one in store.notices())


def test_one_file_whose_inputs_are_prepared_otherwise_is_not_told_to_be_the_original(
    tmp_path: Path,
) -> None:
    given = {"scale": "1/255"}
    models = [{"path": ORIGINAL, "input": one} for one in (given, {**given, "mean": [0.03]})]
    with pytest.raises(PreflightError):  # the campaign is done before
        search(*models, {"path": SEEDS, "limit": 2}, folder=tmp_path / "c", strategy="none")
    with Store.open(tmp_path / "c") as store:
        assert not any("the same file" in one for one in store.notices())


@pytest.mark.parametrize(
    "change", ["sample_digest = 'equal'", "seed = 1, number = number + 100 * seed"]
)
def test_a_condition_known_from_one_image_is_no_fault(pursued, tmp_path, change) -> None:
    """Its fresh inputs that deviate are one and the same, or are made from one seed."""
    folder = tmp_path / "one"
    shutil.copytree(pursued, folder)
    with sqlite3.connect(folder / "campaign.sqlite") as database:
        where = "where phase = 'check' and confident_deviation"
        database.execute(f"update survey_answers set {change} {where}")
        keys = "select s.id, a.phase, a.number from survey_answers a join seeds s on s.position = a.seed"
        deviating = [list(one) for one in database.execute(f"{keys} where confident_deviation")]
        (facts,) = database.execute("select value from facts where name = 'faults'").fetchone()
        stored = json.loads(facts)
        stored[""][0]["inputs"] = deviating
        database.execute("update facts set value = ? where name = 'faults'", (json.dumps(stored),))
    database.close()
    found = figures(folder)
    assert found.faults == ()
    assert found.unlisted > 0
    assert "belong to no" in report_text(folder, "markdown")


@pytest.mark.parametrize(("inside", "is_told"), [(74, True), (75, False)])
def test_a_condition_that_holds_for_nearly_all_inputs_is_not_told(
    pursued: Path, tmp_path: Path, inside: int, is_told: bool
) -> None:
    folder = tmp_path / "nearly"
    shutil.copytree(pursued, folder)
    with Store.open(folder) as store:
        first, *rest = store.state.faults[""]
        seen = replace(first.seen, inside=inside, outside=100 - inside)
        store.state.faults = {"": [replace(first, seen=seen), *rest]}
    (fault,) = figures(folder).faults
    assert bool(fault.thresholds) == is_told
    assert fault.words == (WORDS if is_told else "nearly everywhere (75 of 100 inputs asked about)")
