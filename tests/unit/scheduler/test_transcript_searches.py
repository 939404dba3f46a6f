"""Searches on audio with recognisers: what counts as found, what is kept from the device, what is remembered."""

import numpy as np
import pytest
from search_models import Listener, ListeningDevice, Shelf, heard

from edgeflare.answers.oracles import LabelOracle, Oracle, ToleranceOracle, TranscriptOracle
from edgeflare.campaign.queries.search import outcome_record
from edgeflare.scheduler import Budget, Feed, Scheduler, SearchJob, SearchJobResult, SearchSettings
from edgeflare.scheduler.search_job import ParetoFront
from edgeflare.types import Answer, Ask, Decision, Outcome, Outputs, Search, Seed, Status

ORIGINAL, DEPLOYED = Listener(0.25), Listener(0.3125)
QUIET, LOUD = 0.1, 0.9
BETWEEN = 0.28125
"""As loud as only the original takes for loud."""


def clip(loudness: float, samples: int = 400) -> np.ndarray:
    return np.full(samples, loudness, np.float32)


def seed_of(loudness: float, oracle: Oracle) -> Seed:
    sample = clip(loudness)
    answers = ORIGINAL.one(sample), DEPLOYED.one(sample)
    return Seed("s0", sample, Outputs(*answers, oracle.decide(*answers)), rate=8000)


def search(
    *loudness: float, floor: float = 0.0, samples: int = 400, start: float = QUIET
) -> tuple[SearchJobResult, ListeningDevice, list[Answer]]:
    """Ask about clips of these loudnesses, one after the other, until the models differ."""
    answers: list[Answer] = []

    def strategy(seed: Seed, rng: np.random.Generator) -> Search:
        del seed, rng
        for one in loudness:
            sample = clip(one, samples)
            answers.append((yield Ask((sample,))))
            if answers[-1].outputs[0].decision is Decision.DEVIATION:
                return Outcome(sample, ({"operator": "gain"},))
        return Outcome(None)

    oracle = TranscriptOracle(floor)
    rules = SearchSettings(strategy, Budget(100, None), 2, 7, Shelf(), oracle)
    results: list[SearchJobResult] = []
    device = ListeningDevice(DEPLOYED)
    feed = Feed(iter([SearchJob(seed_of(start, oracle), rules)]))
    Scheduler(ORIGINAL, [device], [feed], oracle, workers=1).run(
        lambda result, _: results.append(result)
    )
    return results[0], device, answers


def test_another_word_is_found_confirmed_and_recorded() -> None:
    result, device, answers = search(0.2, LOUD, BETWEEN)
    assert [one.outputs[0].decision.value for one in answers] == ["agree", "agree", "deviation"]
    assert (result.status, result.confirmed, len(device.asked)) == (Status.FOUND, 2, 5)
    (point,) = result.front
    assert (point.queries, point.margin) == (3, 0.0625)
    record = outcome_record(result, "d", device_name="board", replica="")
    assert record.original.text == "it's loud"  # type: ignore[union-attr]
    assert (record.original_label, record.deployed_label) == (None, None)
    assert (record.original_margin, record.deployed_margin) == (0.0625, 0.0625)
    assert record.disagreement == 0.5
    assert record.l2 == pytest.approx(20 * (BETWEEN - QUIET))
    assert record.linf == round((BETWEEN - QUIET) * 32767)
    assert record.snr_db == pytest.approx(20 * np.log10(QUIET / (BETWEEN - QUIET)), abs=1e-5)


def test_a_trigger_of_another_length_has_no_snr() -> None:
    result, _, _ = search(BETWEEN, samples=500)
    record = outcome_record(result, "d", device_name="board", replica="")
    assert record.status is Status.FOUND
    assert record.snr_db is None
    assert record.l2 is not None
    assert record.l2 > 20 * (BETWEEN - QUIET)


def test_a_clip_on_which_the_original_is_unsure_of_a_word_stays_on_the_host() -> None:
    result, device, answers = search(BETWEEN, floor=0.125)
    assert result.status is Status.GAVE_UP
    assert device.asked == []
    assert answers[0].outputs[0].decision is Decision.BELOW_FLOOR
    assert (result.counters.search, result.counters.host_only) == (0, 1)


def test_a_seed_that_is_heard_otherwise_is_confirmed_and_not_searched() -> None:
    result, _, answers = search(LOUD, start=BETWEEN)
    assert (result.status, result.confirmed, answers) == (Status.SEED_DEVIATES, 2, [])


class TestFront:
    def test_its_margins_are_those_of_the_words_that_differ(self) -> None:
        front = ParetoFront(clip(QUIET))
        unsure_elsewhere = heard("a b", {0: (0.5, 0.4375), 1: (0.75, 0.25)})
        outputs = Outputs(unsure_elsewhere, heard("a c"), Decision.DEVIATION)
        front.add(clip(LOUD), outputs, 3)
        assert [point.margin for point in front.points] == [0.5]

    def test_a_deviation_of_scores_alone_has_one_too(self) -> None:
        front = ParetoFront(clip(QUIET))
        scores = np.array([0.875, 0.125]), np.array([0.625, 0.375])
        decision = ToleranceOracle(0.2).decide(*scores)
        front.add(clip(LOUD), Outputs(*scores, decision), 1)
        assert [point.margin for point in front.points] == [0.25]
        assert LabelOracle().decide(*scores) is Decision.AGREE
