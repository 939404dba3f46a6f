"""What is checked, and what is not, where the models are speech recognisers."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_stores import audio_campaign
from search_models import heard

from edgeflare.answers.oracles import Oracle, ToleranceOracle, TranscriptOracle
from edgeflare.campaign.events import Notice, Reporter
from edgeflare.campaign.pair.preflight import PairAnswers, SeedFigures, check_pair, slowness
from edgeflare.campaign.seeds import store_seeds
from edgeflare.campaign.settings.baseline import baseline_pairs
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.campaign.settings.models import SeedsConfig
from edgeflare.errors import SeedError, UsageError
from edgeflare.seeds import SeedInput
from edgeflare.store import Store
from edgeflare.types import Output, Outputs

SAID = "the character which your royal highness assumed is in perfect harmony"


def figures(count: int, original: Output, deployed: Output, oracle: Oracle) -> list[SeedFigures]:
    outputs = Outputs(original, deployed, oracle.decide(original, deployed))
    return [SeedFigures.of(f"s{number}", None, outputs) for number in range(count)]


class TestPreflight:
    def test_recognisers_that_hear_alike_pass(self) -> None:
        same = figures(40, heard(SAID), heard(SAID.upper()), TranscriptOracle())
        assert check_pair(PairAnswers(same)) == ([], "", False)

    def test_too_many_other_transcripts_stop_the_campaign_and_are_shown_in_short(self) -> None:
        other = heard(SAID.replace("assumed", "summed"))
        seeds = figures(40, heard(SAID), other, TranscriptOracle())
        shown = (
            r'disagree on 40 of 40 seeds .*s0 \("\.\.\. royal highness assumed is in perfect harmony" against '
            r'"\.\.\. royal highness summed'
        )
        assert re.search(shown, check_pair(PairAnswers(seeds))[1])

    def test_with_a_tolerance_scores_of_one_label_are_distinguished(self) -> None:
        scores = np.array([0.875, 0.125]), np.array([0.625, 0.375])
        seeds = figures(40, *scores, ToleranceOracle(0.2))
        assert "scores 0.25" in check_pair(PairAnswers(seeds))[1]


class TestSlowness:
    def test_the_original_takes_its_share_of_the_budget(self) -> None:
        search = SearchConfig(max_queries=100, timeout_s=180)
        assert slowness([1.0], search) is None
        slow = slowness([1.0, 1.0, 5.0], search, [1.0, 1.0])
        assert (slow.data["device_s"], slow.data["host_s"], slow.data["affordable"]) == (1, 1, 90)

    def test_one_that_answers_hardly_once_is_told_to_wait_longer(self) -> None:
        slow = slowness([200.0], SearchConfig(max_queries=100, timeout_s=180))
        assert slow.fix == {"search.max_queries": None, "search.timeout_s": None}


class Clips:
    """A source of labelled clips."""

    total = 3
    skipped: tuple[Any, ...] = ()
    notices = ("a notice of its own",)

    def __iter__(self) -> Any:
        for number in range(self.total):
            sample = np.full(80, number / 8, np.float32)
            yield SeedInput(f"c{number}", sample, label=None if number == 2 else 70 + number)


def stored(tmp_path: Path, classes: int | None) -> tuple[list[int | None], int | None, list[str]]:
    notices: list[str] = []

    def told(event: object) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    with Store.create(tmp_path / "store", {}, environment={}) as store:
        source: Any = Clips()
        reporter = Reporter(told)
        config = SeedsConfig(path=tmp_path)
        store_seeds(source, config, store, reporter, classes=classes, rate=8000)
        assert store.notices() == notices
        return [seed.label for seed in store.seeds()], store.sample_rate, notices


def test_labels_mean_nothing_to_recognisers(tmp_path: Path) -> None:
    labels, rate, notices = stored(tmp_path, None)
    assert (labels, rate) == ([None] * 3, 8000)
    assert "notice of its" in notices[0]
    assert "labels of 2" in notices[1]
    assert "text" not in notices[1], "nor have detectors, maps and vectors one class"


def test_labels_of_a_keyword_spotter_are_kept_and_checked(tmp_path: Path) -> None:
    labels, rate, notices = stored(tmp_path / "a", 72)
    assert (labels, rate, len(notices)) == ([70, 71, None], 8000, 1)
    with pytest.raises(SeedError, match="71 classes"):
        stored(tmp_path / "b", 71)


class TestNewPairs:
    def test_recognisers_have_no_pairs_of_classes(self, tmp_path: Path) -> None:
        limits = LimitsConfig(new_pairs=False, baseline=tmp_path)
        with pytest.raises(UsageError, match=r"limits\.new_pairs.*return text"):
            baseline_pairs(limits, 0)

    def test_nor_does_a_baseline_of_them(self, tmp_path: Path) -> None:
        folder, _ = audio_campaign(tmp_path / "speech", "speech", 3)
        with pytest.raises(UsageError, match="return transcripts,"):
            baseline_pairs(LimitsConfig(new_pairs=False, baseline=folder), 4)

    def test_a_baseline_whose_seeds_were_all_unanswered_has_none_to_miss(self, tmp_path) -> None:
        folder = tmp_path / "silent"
        with Store.create(folder, {}, environment={}) as store:
            store.state.finished = True
        assert baseline_pairs(LimitsConfig(new_pairs=False, baseline=folder), 4) == set()

    def test_one_of_a_keyword_spotter_has(self, tmp_path: Path) -> None:
        folder, _ = audio_campaign(tmp_path / "words", "keywords", 3)
        assert baseline_pairs(LimitsConfig(new_pairs=False, baseline=folder), 4)
