"""The kind that a campaign has stored, and kinds that other distributions declare."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_distributions import write_distribution

from edgeflare._internal import plugins
from edgeflare.answers import (
    DETECTIONS,
    LABELS,
    SCORES,
    TAGS,
    TRANSCRIPTS,
    VALUES,
    AnswerKind,
    kind_named,
    kind_of_answer,
    kind_of_output,
    kind_of_task,
    tasks,
)
from edgeflare.answers.columns import output_columns, output_from
from edgeflare.answers.oracles import oracle_for
from edgeflare.campaign.settings.config import CampaignConfig, config_from
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.types import Decision

SOURCE = '''
from dataclasses import dataclass

import numpy as np

from edgeflare.answers.base import AnswerKind


@dataclass(frozen=True)
class Angle:
    """A direction in degrees; `score`: how sure the model is."""

    degrees: float
    score: float = 1.0


class Bearing(Angle):
    """One that is compared by a tolerance."""


class AnglesKind(AnswerKind):
    """Another quadrant is another decision."""

    name = "angles"
    noun = "directions"
    tasks = {"angle": "a direction"}

    def accepts(self, answer):
        return type(answer) is Angle

    def reader(self, side):
        raise NotImplementedError

    def numbers(self, answer):
        return np.array([answer.degrees, answer.score])

    def agree(self, original, deployed):
        return original.degrees // 90 == deployed.degrees // 90

    def distance(self, original, deployed):
        return abs(original.degrees - deployed.degrees) / 360

    def margin(self, answer):
        return answer.score

    def to_columns(self, answer):
        return self.numbers(answer).astype("<f8").tobytes(), None

    def from_columns(self, data, pieces):
        return Angle(*np.frombuffer(data, "<f8").tolist())


class DistancesKind(AnglesKind):
    """The same, by a tolerance."""

    name = "distances"
    tasks = {"bearing": "a direction with a tolerance"}
    is_measured = True
    takes_tolerance = True

    def accepts(self, answer):
        return isinstance(answer, Bearing)


class Turn(Angle):
    """One whose kind has a list beside its numbers."""


class TurnsKind(AnglesKind):
    name = "turns"
    tasks = {"turn": "a turn"}

    def accepts(self, answer):
        return type(answer) is Turn

    def to_columns(self, answer):
        return b"", ["left"]


class NamesakeKind(AnglesKind):
    name = "scores"
    tasks = {"namesake": "a direction"}


ANGLES, DISTANCES, TURNS, NAMESAKE = AnglesKind(), DistancesKind(), TurnsKind(), NamesakeKind()
OTHERS = {"angles": ANGLES}
'''


@pytest.fixture
def angle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The answers of an installed distribution's kind."""
    site = tmp_path / "site"
    entries = {
        "edgeflare.answers/angle": "ANGLES",
        "edgeflare.answers/bearing": "DISTANCES",
        "edgeflare.answers/turn": "TURNS",
        "edgeflare.answers/namesake": "NAMESAKE",
        "edgeflare.answers/no-kind": "OTHERS",
        "edgeflare.answers/other-task": "ANGLES",
        "edgeflare.answers/missing": "NOTHING",
    }
    write_distribution(site, "stranger_angles", SOURCE, entries, "angles-pkg")
    monkeypatch.syspath_prepend(site)
    plugins.load.cache_clear()
    import stranger_angles  # type: ignore[import-not-found]

    yield stranger_angles.Angle
    plugins.load.cache_clear()


def stored(folder: Path, *outputs: dict[str, Any]) -> AnswerKind[Any]:
    with Store.create(folder, {}, environment={}) as store:
        for output in outputs:
            store.set_models({"output": {"kind": "probabilities"}}, {"output": output})
        return store.kind


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        *((form, SCORES) for form in ("probabilities", "logits", "sigmoid", "sigmoid-logits")),
        *(("gallery", SCORES), ("label", LABELS), ("transcript", TRANSCRIPTS)),
        *(("detections", DETECTIONS), ("tags", TAGS), ("tag-logits", TAGS), ("values", VALUES)),
    ],
)
def test_a_campaign_of_0_2_tells_its_kind_by_what_the_deployed_model_returns(
    tmp_path: Path, form: str, kind: AnswerKind[Any]
) -> None:
    assert stored(tmp_path / "c", {"kind": form}) is kind


@pytest.mark.parametrize("kind", [SCORES, LABELS, TAGS, TRANSCRIPTS, DETECTIONS, VALUES])
def test_a_campaign_has_stored_its_kind_by_name(tmp_path: Path, kind: AnswerKind[Any]) -> None:
    assert stored(tmp_path / "c", {"kind": "logits", "answers": kind.name}) is kind


def test_before_the_models_are_known_it_is_that_of_scores(tmp_path: Path) -> None:
    assert stored(tmp_path / "c") is SCORES


@pytest.mark.parametrize("output", [{"kind": "boxes"}, {"kind": "logits", "answers": "boxes"}])
def test_a_kind_that_is_not_installed_is_no_damage(tmp_path: Path, output: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="'boxes'"):
        stored(tmp_path / "c", output)


def test_a_declared_kind_is_found_by_each_of_its_names(angle: Any, tmp_path: Path) -> None:
    kind = kind_of_task("angle")
    assert kind_named("angles") is kind_of_output("angles") is kind_of_answer(angle(10)) is kind
    assert stored(tmp_path / "c", {"kind": "angles", "answers": "angles"}) is kind
    assert "angle" in tasks()
    answer = angle(200.0, 0.5)
    data, pieces = output_columns("a", answer).values()
    assert pieces == {"kind": "angles"}
    assert output_from(data, pieces) == answer


def test_what_is_beside_the_numbers_is_an_object(angle: Any) -> None:
    turn = sys.modules[angle.__module__].Turn(90.0)
    with pytest.raises(UsageError, match=r"'turns'.*list"):
        output_columns("a", turn)


def test_what_it_does_not_state_is_decided_for_it(angle: Any) -> None:
    kind, ours, theirs = kind_of_task("angle"), angle(80.0, 0.5), angle(100.0, 0.25)
    oracle = oracle_for("auto", {"margin_floor": 0.25}, task="angle")
    assert oracle.decide(ours, theirs) is Decision.DEVIATION
    assert oracle.decide(ours, angle(100.0, 0.125)) is Decision.BELOW_FLOOR
    assert oracle.decide(ours, angle(100.0, 0.0)) is Decision.TIE
    assert oracle.decide(ours, angle(10.0, 0.0)) is Decision.AGREE
    assert oracle.decide(ours, angle(np.nan)) is Decision.NONFINITE
    assert kind.example(ours, theirs) == "answers 0.056 apart"
    assert kind.to_json(angle(np.nan)) == ["nan", 1.0]
    assert (kind.text(ours), kind.difference(ours, theirs)) == (None, None)
    assert (kind.changes(ours, theirs), kind.checks(), kind.sections(None, str)) == ((), (), ())
    assert (kind.certainty(ours), kind.class_count(ours), kind.top_label(ours)) == (0.5, 0, None)
    assert kind.is_below(ours, 0.75)
    assert not kind.is_below(ours, 0.5)
    assert kind.as_deployed(ours) is ours


def config(task: str, **search: Any) -> CampaignConfig:
    files = {name: {"path": f"{name}.onnx"} for name in ("original", "deployed", "seeds")}
    return config_from({**files, "task": task, "search": search}, "the test")


def test_a_declared_kind_with_a_tolerance_needs_one(angle: Any) -> None:
    assert config("bearing", tolerance=0.25).search.oracle == "tolerance"
    with pytest.raises(UsageError, match="a tolerance"):
        config("bearing")
    with pytest.raises(UsageError, match="never exceeded"):
        config("bearing", tolerance=1.0)
    with pytest.raises(UsageError, match=r"angle.*direction"):
        config("angle", tolerance=0.25)
    bearing = sys.modules[angle.__module__].Bearing
    oracle = oracle_for("tolerance", {"tolerance": 0.25}, task="bearing")
    assert oracle.decide(bearing(0), bearing(90)) is Decision.AGREE
    assert oracle.decide(bearing(0), bearing(91)) is Decision.DEVIATION


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ("no-kind", "must be an instance"),
        ("namesake", "'scores' of another"),
        ("other-task", "that has it among its `tasks`"),
        ("missing", "can't be loaded"),
    ],
)
def test_a_broken_one_is_named_where_it_is_used_and_harms_no_other(
    angle: Any, task: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=f"angles-pkg .*{problem}"):
        kind_of_task(task)
    assert kind_named("angles") is kind_of_task("angle")
    with pytest.raises(TypeError):
        kind_of_answer("no answer")
