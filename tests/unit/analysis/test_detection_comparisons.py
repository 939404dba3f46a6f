"""Detectors and models of values in comparisons, nightly checks, replays and corpora."""

from pathlib import Path

import pytest
from example_answers import depth_maps, of_kind, values
from stores import detection_campaign, value_campaign

from edgeflare.analysis import RunContext, run_analysis
from edgeflare.analysis.corpus import add_to_corpus
from edgeflare.analysis.ranking.ranking import rank_campaigns
from edgeflare.campaign.replay.reproduce import ReplayAnswer
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.errors import UsageError
from edgeflare.explanation.charge import charge
from edgeflare.explanation.ladder import Rung
from edgeflare.nightly.comparison import BaseComparison
from edgeflare.reports import ranking_document
from edgeflare.reports.document import to_markdown
from edgeflare.store.records import ReplayInput
from edgeflare.types import Output, Status

HEALTHY, DAMAGED = "11" * 32, "22" * 32


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two candidates' campaigns over 30 seeds: the second loses a person on 20 of them."""
    healthy = detection_campaign(tmp_path / "a", ["ghost"] * 5, seeds=30, deployed=HEALTHY)
    lost = dict.fromkeys(range(10, 30), "lost")
    return healthy, detection_campaign(
        tmp_path / "b", ["ghost"] * 5, natural=lost, deployed=DAMAGED
    )


def test_a_comparison_ranks_detectors_and_shows_their_natural_differences(
    pair: tuple[Path, Path],
) -> None:
    ranking = rank_campaigns(pair, names=["healthy", "damaged"])
    assert ranking.candidates[0].name == "healthy"
    assert "models' scores" in ranking.verdict
    text = to_markdown(ranking_document(ranking, {}))
    assert "healthy | 0" in text
    assert "damaged | 66.7" in text


def regression(base: Path, campaign: Path) -> BaseComparison:
    found: BaseComparison = run_analysis("regression", campaign, {"base": base}, RunContext())
    return found


def test_a_night_that_loses_objects_is_red_and_names_the_kind(pair: tuple[Path, Path]) -> None:
    _, check = regression(*pair).checks
    assert check.crossed
    assert check.name == "lost"
    assert "original's 90 objects" in check.words
    assert "0 of 90" in check.words
    assert "photos/10.png" in check.words
    assert regression(pair[0], pair[0]).rates == ()
    (same,) = regression(pair[1], pair[1]).rates
    assert not same.is_worse


def test_nights_of_other_models_have_no_kinds(tmp_path: Path) -> None:
    answers = values(1.0), values(2.0)
    folder = value_campaign(tmp_path / "v", answers, answers)
    assert regression(folder, folder).rates == ()


def test_candidates_with_values_are_compared_by_their_distance(tmp_path: Path) -> None:
    near, far = (values(1.0, 2.0), values(1.0, 2.2)), (values(1.0, 2.0), values(1.0, 3.0))
    folders = [
        value_campaign(tmp_path / name, answers, answers)
        for name, answers in (("near", near), ("far", far))
    ]
    ranking = rank_campaigns(folders, names=["near", "far"])
    value = {one.name: one.value.value for one in ranking.candidates}
    assert value == pytest.approx({"near": 0.2, "far": 1.0})
    assert "campaign's measure" in ranking.verdict


@pytest.mark.parametrize(
    ("located", "what"), [(True, "has detections"), (False, "has several labels")]
)
def test_a_corpus_refuses_what_has_no_pair_of_classes(
    tmp_path: Path, located: bool, what: str
) -> None:
    folder = detection_campaign(tmp_path / "c", ["lost"], located=located)
    with pytest.raises(UsageError, match=f"{what}"):
        add_to_corpus(tmp_path / "corpus", folder)


def answer(both: tuple[Output, Output], *, found: bool) -> ReplayAnswer:
    return ReplayAnswer(*both, 2, Status.SEED_DEVIATES if found else Status.GAVE_UP)


@pytest.mark.parametrize(
    ("now", "by_scores", "found", "cause"),
    [
        (of_kind("lost"), False, True, "compression"),
        (of_kind("none"), False, False, "not-repeatable"),
        (depth_maps(0.3), True, True, "compression"),
        (depth_maps(0.01), True, False, "not-repeatable"),
    ],
)
def test_a_finding_is_charged_by_what_the_oracle_decided(
    now: tuple[Output, Output], by_scores: bool, found: bool, cause: str
) -> None:
    model = ModelConfig(path=Path("model.onnx"))
    rungs = {
        Rung("conversion", "conversion", model): answer((now[0], now[0]), found=False),
        Rung("compression", "compression", model): answer(now, found=found),
    }
    charged = charge(
        ReplayInput(seed_id="s", id="trigger:s", kind="trigger", deviated=True),
        {rung: {"trigger:s": {"pi": one}} for rung, one in rungs.items()},
        stored={"pi": ReplayAnswer(*now, 2)},
        is_measured=by_scores,
    )
    assert charged.cause == cause
    assert charged.labels is None


@pytest.mark.parametrize(
    ("replies", "kind", "rung"),
    [
        ({"device-plain": True, "device-cpu": True}, "hardware", "device-plain"),
        ({"device-plain": False, "device-cpu": False}, "accelerator", "device-cpu"),
        ({"device-plain": False, "device-exact": False}, "hardware", "device-exact"),
        ({"device-plain": False, "device-cpu": True}, "kernels", "device"),
        ({"device-plain": None, "device-cpu": True}, "device", "device"),
        ({}, "device", "device"),
    ],
)
def test_what_only_the_device_shows_is_of_the_kind_that_its_replies_tell(
    replies: dict[str, bool | None], kind: str, rung: str
) -> None:
    model = ModelConfig(path=Path("model.onnx"))
    kinds = {"device-plain": "hardware", "device-cpu": "accelerator", "device-exact": "hardware"}

    def answers(deviates: bool | None) -> dict[str, dict[str, ReplayAnswer]]:
        if deviates is None:
            return {}
        both = of_kind("lost" if deviates else "none")
        return {"trigger:s": {"pi": answer(both, found=deviates)}}

    questions = {
        Rung(name, kinds[name], model, True, tells=name == "device-plain"): answers(reply)
        for name, reply in replies.items()
    }
    charged = charge(
        ReplayInput(seed_id="s", id="trigger:s", kind="trigger", deviated=True),
        {
            Rung("compression", "compression", model): answers(deviates=False),
            Rung("device", "device", model, True): answers(deviates=True),
        },
        questions,
        stored={"pi": ReplayAnswer(*of_kind("lost"), 2)},
    )
    assert (charged.cause, charged.rung) == (kind, rung)
