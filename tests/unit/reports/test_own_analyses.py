"""Soundness and agreement by the names under which they are analyses."""

from pathlib import Path

import numpy as np
import pytest
from stores import compared_campaign, store_of

from edgeflare.analysis import RunContext, analysis, run_analysis, sections_of
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.types import Decision

LOST = 6


@pytest.fixture
def fallen(tmp_path: Path) -> Path:
    """A campaign without references, whose deployed model loses labelled seeds."""
    sure, other = np.array([0.1, 0.9]), np.array([0.9, 0.1])
    lost = sure, other, Decision.DEVIATION
    about = {"seeds": 2 * LOST, "label": lambda number: 1}
    answers = {"answers": lambda number: lost if number < LOST else (sure, sure)}
    store_of(tmp_path / "fallen", **about, **answers).close()
    return tmp_path / "fallen"


def test_soundness_tells_what_it_rests_on(fallen: Path) -> None:
    found = run_analysis("soundness", fallen, {"confidence": 0.9}, RunContext())
    assert (found.verdict, found.reasons, found.confidence) == ("worse", ("own",), 0.9)
    assert (found.own.lost, found.own.labelled) == (LOST, 2 * LOST)
    (section,) = sections_of(analysis("soundness"), "soundness", found, str)
    assert section.data is found


def test_what_every_report_has_anyway_is_not_stored(fallen: Path, tmp_path: Path) -> None:
    run_analysis("soundness", fallen, {}, RunContext())
    with compared_campaign(tmp_path / "c", {"board": "pi"}, {"board": "jetson"}) as store:
        folder = store.folder
    result = run_analysis("agreement", folder, {}, RunContext())
    assert [(pair.first, pair.second, pair.cause) for pair in result.pairs] == [
        ("host", "board", "hardware")
    ]
    for campaign, name in ((fallen, "soundness"), (folder, "agreement")):
        with Store.open(campaign) as store:
            assert name not in {one.name for one in store.results()}


@pytest.mark.parametrize(
    ("name", "flag"), [("agreement", "--fleet replicate"), ("control", "--control")]
)
def test_what_a_campaign_has_not_is_told_with_its_flag(fallen: Path, name: str, flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        run_analysis(name, fallen, {}, RunContext())


def test_an_analysis_of_several_campaigns_takes_a_single_folder_too(fallen: Path) -> None:
    with pytest.raises(UsageError, match="two candidates"):
        run_analysis("compare", fallen, {}, RunContext())
