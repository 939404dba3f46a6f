"""The boundary search beside models that return text: where the original returns other words."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from search_models import Listened, hearers, recording, text_of_light

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy
from edgeflare.types import Decision, Sample, Transcript
from edgeflare_mutators import Mutation, replay

SOUNDS = ("gain", "white-noise")
SEEDS = range(10)


def agreed(models: Listened) -> list[Sample]:
    samples = [recording(number) for number in SEEDS]
    return [one for one in samples if models.outputs(one).decision is Decision.AGREE]


def searched(
    drift: float, number: int = 0, operators: tuple[str, ...] = SOUNDS, **options: Any
) -> list[Listened]:
    samples = agreed(Listened(*hearers(drift, number)))
    assert len(samples) >= 5
    return [
        Listened(*hearers(drift, number)).listen(sample, place, operators, **options)
        for place, sample in enumerate(samples)
    ]


def natural(**options: Any) -> dict[str, Any]:
    return {"crossing": "natural", **options}


@pytest.mark.rounding
@pytest.mark.parametrize("drift", [0.1, 0.5, 2.0])
def test_few_queries_find_a_recording_that_both_hear_differently(drift: float) -> None:
    runs = searched(drift, **natural())
    for run in runs:
        assert run.outputs(run.found).decision is Decision.DEVIATION
        assert any(np.array_equal(sample, run.found) for sample, _ in run.queries)
        assert run.kept_back == 0
    assert np.mean([len(run.queries) for run in runs]) <= 3
    assert np.median([run.host for run in runs]) <= 25


def test_after_the_first_answer_the_deployed_models_margin_gives_the_side() -> None:
    counts = [len(run.queries) for number in range(2) for run in searched(0.5, number, **natural())]
    assert max(counts) <= 6
    assert np.mean(np.array(counts) <= 2) >= 0.75


@pytest.mark.parametrize("operators", [SOUNDS, ("time-stretch", "tempo"), ("white-noise",)])
def test_a_finding_replays_from_the_seed_by_the_operators_that_were_named(operators) -> None:
    models = Listened(*hearers(1.0))
    sample = agreed(models)[0]
    run = Listened(*hearers(1.0)).listen(sample, 3, operators, crossing="natural")
    if run.outcome.sample is None:
        assert operators != SOUNDS
        return
    steps = [Mutation.from_json(step) for step in run.outcome.mutations]
    assert {step.operator for step in steps} <= set(operators)
    assert np.array_equal(replay(sample, steps), run.found)


@pytest.mark.rounding
def test_without_operators_named_the_words_keep_their_time_unless_nothing_else_changes_them() -> (
    None
):
    models = Listened(*hearers(0.5))
    keeping = {"white-noise", "room", "band-pass"}
    used, moved = set(), []
    for number, sample in enumerate(agreed(models)):
        run = Listened(*hearers(0.5)).listen(sample, number)
        operators = {step["operator"] for step in run.outcome.mutations}
        used |= operators
        if not operators <= keeping:
            moved.append(sample)
    assert used >= keeping
    assert 1 <= len(moved) <= len(agreed(models)) / 3


def test_an_oracle_that_compares_scores_has_texts_searched_by_their_distance() -> None:
    original, _ = hearers(0.0)
    models = Listened(original, original)
    seed = replace(models.seed(recording(0)), compares_scores=True)
    models.answer(build_strategy("boundary", {"effort": 4})(seed, np.random.default_rng(0)))
    assert "the tolerance" in models.outcome.reason
    assert models.queries


def test_a_finding_keeps_within_the_bound_that_is_stated() -> None:
    farther = []
    for number, sample in enumerate(agreed(Listened(*hearers(0.5)))[:3]):
        free = Listened(*hearers(0.5)).listen(sample, number, SOUNDS, crossing="natural")
        bound = 0.5 * float(np.linalg.norm(free.found - sample))
        run = Listened(*hearers(0.5)).listen(
            sample, number, SOUNDS, crossing="natural", max_l2=bound
        )
        for asked, _ in run.queries:
            assert np.linalg.norm(asked - sample) <= bound
        farther.append(run.outcome.sample is None and "max_l2" in run.outcome.reason)
        assert run.outcome.sample is not None or farther[-1]


def test_several_candidates_go_out_in_one_request() -> None:
    runs = searched(0.3, **natural(candidates=4))
    assert max(len(ask.samples) for run in runs for ask in run.asks) == 2
    assert all(run.outputs(run.found).decision is Decision.DEVIATION for run in runs)


def test_inputs_of_which_the_original_is_less_sure_than_the_floor_are_not_asked_about() -> None:
    for number, sample in enumerate(agreed(Listened(*hearers(2.0), floor=0.1))[:4]):
        run = Listened(*hearers(2.0), floor=0.1).listen(sample, number, SOUNDS, crossing="natural")
        assert run.kept_back == 0
        assert run.queries


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device_budget": 5}, "device_budget means nothing for transcripts"),
        ({"tied_classes": 3}, "tied_classes means nothing for transcripts"),
        ({"min_ssim": 0.5}, "min_ssim means nothing for transcripts"),
        ({"crossing": "least-l2"}, "crossing least-l2 needs class scores"),
        ({"crossing": "mutants"}, "crossing mutants needs class scores"),
    ],
)
def test_options_for_class_scores_are_refused(options: dict[str, Any], words: str) -> None:
    models = Listened(*hearers(0.5))
    with pytest.raises(UsageError, match=f"boundary: {words}"):
        models.listen(agreed(models)[0], **options)


def test_operators_for_images_are_refused() -> None:
    models = Listened(*hearers(0.5))
    with pytest.raises(UsageError, match="mutates images"):
        models.listen(agreed(models)[0], 0, ("jpeg",), crossing="natural")


def test_a_non_finite_answer_of_the_original_is_put_to_both_models() -> None:
    inner, deployed = hearers(0.5)
    sample = agreed(Listened(inner, deployed))[0]

    def original(one: Sample) -> Transcript:
        heard = inner(one)
        if np.array_equal(one, sample):
            return heard
        return Transcript(heard.pieces, np.full_like(heard.scores, np.nan))

    run = Listened(original, deployed).listen(sample, 0, SOUNDS, crossing="natural")
    assert run.outcome is None
    assert [ask.of for ask in run.asks] == ["original", "both"]
    assert np.array_equal(run.asks[0].samples[0], run.asks[1].samples[0])


def test_a_user_is_told_of_operators_that_have_no_strength() -> None:
    with pytest.raises(UsageError, match="gaussian-blur"):
        build_strategy("boundary", {"crossing": "natural"}, ("gaussian-blur",))


def picture(number: int) -> Sample:
    """An image of four stripes of different brightness."""
    rng = np.random.default_rng((number, 9))
    stripes = np.repeat(rng.integers(70, 180, 4), 8)[None, :, None]
    noise = rng.integers(-10, 11, (16, 32, 3))
    return (stripes + noise).astype(np.uint8)


def pictured(
    drift: float = 2.0, operators: tuple[str, ...] = (), **options: Any
) -> dict[int, Listened]:
    """The searches from pictures on which both models agree, by the pictures' numbers."""
    runs = {}
    for number in range(8):
        run = Listened(*text_of_light(drift))
        if run.outputs(picture(number)).decision is Decision.AGREE:
            runs[number] = run.listen(picture(number), number, operators, **options)
    assert len(runs) >= 5
    return runs


@pytest.mark.rounding
def test_images_of_text_are_searched_by_smooth_noise_with_few_queries() -> None:
    runs = pictured(**natural())
    for run in runs.values():
        assert run.found.dtype == np.uint8
        assert run.outputs(run.found).decision is Decision.DEVIATION
    assert np.mean([len(run.queries) for run in runs.values()]) <= 3
    smooth = [run for run in runs.values() if run.outcome is not None and not run.outcome.mutations]
    assert len(smooth) >= len(runs) / 2


def test_what_named_corruptions_do_to_an_image_replays() -> None:
    found = 0
    for number, run in pictured(operators=("haze", "brightness"), **natural()).items():
        if run.outcome.sample is not None:
            found += 1
            steps = [Mutation.from_json(step) for step in run.outcome.mutations]
            assert {step.operator for step in steps} <= {"haze", "brightness"}
            assert np.array_equal(replay(picture(number), steps), run.found)
    assert found >= 4
