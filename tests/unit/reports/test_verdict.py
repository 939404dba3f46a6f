"""What every report says first, in the same words."""

from dataclasses import replace
from pathlib import Path

import pytest
from shown_numbers import numbers
from stores import replicated_campaign, store_of

from edgeflare.analysis import Soundness, summarize
from edgeflare.analysis.campaign_verdict import Verdict, campaign_verdict
from edgeflare.types import Status
from edgeflare.words.verdict import verdict_text, verdict_words


def said(
    folder: Path, *ends: Status, limits: dict[str, float] | None = None, strategy: str = "dflare"
) -> Verdict:
    """The verdict on a campaign whose seeds ended so."""
    unasked = (Status.SEED_DEVIATES, Status.FAILED)
    outcomes = [
        {"seed": place, "status": one, "search_queries": 0 if one in unasked else 4}
        for place, one in enumerate(ends)
    ]
    config = {"limits": limits or {}, "search": {"strategy": strategy}}
    with store_of(folder, outcomes, seeds=len(ends), config=config) as store:
        summary = summarize(store)
        return campaign_verdict(store, summary, summary.limits)


EXHAUSTED, GAVE_UP, FAILED = Status.EXHAUSTED, Status.GAVE_UP, Status.FAILED
FOUND, ITSELF = Status.FOUND, Status.SEED_DEVIATES


@pytest.mark.parametrize(
    ("ends", "strategy", "figures", "tone"),
    [
        ((), "dflare", "", "warn"),
        ((FOUND, ITSELF, EXHAUSTED), "dflare", "2 3 66.7", "warn"),
        ((EXHAUSTED, GAVE_UP), "dflare", "2", "good"),
        ((FAILED, Status.NONFINITE), "dflare", "2 1 1", "warn"),
        # what the boundary search alone did not find is never called good
        ((EXHAUSTED, GAVE_UP), "boundary", "2", "neutral"),
        # seeds compared as they are are no search
        ((), "none", "", "warn"),
        ((GAVE_UP,), "none", "", "good"),
        ((GAVE_UP, FAILED), "none", "2 1", "warn"),
        ((ITSELF, GAVE_UP), "none", "1 2 50.0", "warn"),
    ],
)
def test_what_was_found_is_one_sentence(
    tmp_path: Path, ends: tuple[Status, ...], strategy: str, figures: str, tone: str
) -> None:
    told = said(tmp_path / "c", *ends, strategy=strategy)
    sentence, beside = verdict_words(told)
    assert (numbers(sentence), beside, told.tone) == (figures, "", tone)


def test_limits_come_before_what_was_found(tmp_path: Path) -> None:
    limits = {"max_deviation_rate": 0.25, "max_seed_deviation_rate": 1.0, "min_median_queries": 9}
    told = said(tmp_path / "c", Status.FOUND, limits=limits)
    assert told.crossed == ("max_deviation_rate", "min_median_queries")
    assert (told.checked, told.tone) == (3, "bad")
    first, found = verdict_words(told)
    assert (numbers(first), numbers(found)) == ("2 3", "1 1 100")
    kept = said(tmp_path / "d", Status.FOUND, limits={"max_deviation_rate": 1.0})
    assert (kept.checked, kept.crossed, kept.finished, kept.tone) == (1, (), False, "good")


def test_a_model_worse_than_its_references_is_never_called_good(tmp_path: Path) -> None:
    """Not by other limits that it keeps, either."""
    worse = Soundness(
        "worse", 0.95, ("parts",), 300, 50, ("release",), parts=("severity 5",), devices=3
    )
    config = {"limits": {"max_deviation_rate": 1.0}}
    end = {"seed": 0, "status": EXHAUSTED, "search_queries": 4}
    with store_of(tmp_path / "c", [end], seeds=1, config=config) as store:
        summary = replace(summarize(store), soundness=worse)
        found = campaign_verdict(store, summary, summary.limits)
    first, near = verdict_words(found)
    assert numbers(first) == "300 1 95 3"
    assert "Near the seeds" in near
    assert found.tone == "warn"


def test_limits_that_a_boundary_search_keeps_do_not_make_it_good(tmp_path: Path) -> None:
    limits = {"max_deviation_rate": 0.5}
    kept = said(tmp_path / "b", EXHAUSTED, GAVE_UP, strategy="boundary", limits=limits)
    assert (kept.checked, kept.crossed, kept.tone) == (1, (), "neutral")


def test_a_seed_of_several_devices_counts_once(tmp_path: Path) -> None:
    with replicated_campaign(tmp_path / "c") as store:
        summary = summarize(store)
        told = campaign_verdict(store, summary)
    assert summary.finished > summary.seeds
    assert told.seeds == summary.seeds
    assert "devices" in verdict_text(told)
