"""What every report says first, in the same words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shown_numbers import numbers
from stores import replicated_campaign

from edgeflare.analysis import Soundness, summarize
from edgeflare.analysis.campaign_verdict import Verdict, campaign_verdict
from edgeflare.store import OutcomeRecord, SeedInput, Store
from edgeflare.types import Status
from edgeflare.words.verdict import verdict_text, verdict_words


def said(
    folder: Path, *ends: Status, limits: dict[str, float] | None = None, strategy: str = "dflare"
) -> Verdict:
    """The verdict on a campaign whose seeds ended so."""
    config = {"limits": limits or {}, "search": {"strategy": strategy}}
    with Store.create(folder, config) as store:
        image = np.zeros((2, 2, 1), np.uint8)
        store.add_seeds(SeedInput(f"{place}.png", image, 0) for place in range(len(ends)))
        for place, status in enumerate(ends):
            queries = 0 if status in (Status.SEED_DEVIATES, Status.FAILED) else 4
            store.add_outcome(OutcomeRecord(f"{place}.png", status, 0, search_queries=queries))
        summary = summarize(store)
        return campaign_verdict(store, summary, summary.limits)


@pytest.mark.parametrize(
    ("ends", "sentence", "tone"),
    [
        ((), "No seed has been searched from yet.", "warn"),
        (
            (Status.FOUND, Status.SEED_DEVIATES, Status.EXHAUSTED),
            "2 of 3 seeds (66.7 %) lead to an input on which the deployed model decides differently.",
            "warn",
        ),
        (
            (Status.EXHAUSTED, Status.GAVE_UP),
            "From none of 2 seeds was an input found on which the deployed model decides differently.",
            "good",
        ),
        (
            (Status.FAILED, Status.NONFINITE),
            (
                "From none of 2 seeds was an input found on which the deployed model decides differently; "
                "a model could not answer in 1 search; 1 search met NaN or infinity."
            ),
            "warn",
        ),
    ],
)
def test_what_was_found_is_one_sentence(
    tmp_path: Path, ends: tuple[Status, ...], sentence: str, tone: str
) -> None:
    told = said(tmp_path / "c", *ends)
    assert (verdict_words(told), told.tone) == ((sentence, ""), tone)


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ((), "No seed has been compared yet."),
        (
            (Status.GAVE_UP,),
            "The one seed is no input on which the deployed model decides differently.",
        ),
        (
            (Status.GAVE_UP, Status.FAILED),
            (
                "None of 2 seeds is an input on which the deployed model decides differently; "
                "a model could not answer on 1 seed."
            ),
        ),
        (
            (Status.SEED_DEVIATES, Status.GAVE_UP),
            "1 of 2 seeds (50.0 %) is an input on which the deployed model decides differently.",
        ),
    ],
)
def test_seeds_compared_as_they_are_are_no_search(
    tmp_path: Path, ends: tuple[Status, ...], sentence: str
) -> None:
    assert verdict_text(said(tmp_path / "c", *ends, strategy="none")) == sentence


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
    with Store.create(tmp_path / "c", {"limits": {"max_deviation_rate": 1.0}}) as store:
        store.add_seeds([SeedInput("0.png", np.zeros((2, 2, 1), np.uint8), 0)])
        store.add_outcome(OutcomeRecord("0.png", Status.EXHAUSTED, 0, search_queries=4))
        summary = replace(summarize(store), soundness=worse)
        found = campaign_verdict(store, summary, summary.limits)
    first, near = verdict_words(found)
    assert numbers(first) == "300 1 95 3"
    assert "Near the seeds" in near
    assert found.tone == "warn"


def test_what_the_boundary_search_alone_did_not_find_is_never_called_good(tmp_path: Path) -> None:
    ends = (Status.EXHAUSTED, Status.GAVE_UP)
    assert said(tmp_path / "a", *ends, strategy="boundary").tone == "neutral"
    limits = {"max_deviation_rate": 0.5}
    kept = said(tmp_path / "b", *ends, strategy="boundary", limits=limits)
    assert (kept.checked, kept.crossed, kept.tone) == (1, (), "neutral")


def test_a_seed_of_several_devices_counts_once(tmp_path: Path) -> None:
    with replicated_campaign(tmp_path / "c") as store:
        summary = summarize(store)
        told = campaign_verdict(store, summary)
    assert summary.finished > summary.seeds
    assert told.seeds == summary.seeds
    assert "devices" in verdict_text(told)
