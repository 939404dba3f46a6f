"""DFLARE and DiffChaser from audio seed inputs, driven by hand."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy, check_operators
from edgeflare.types import Answer, Decision, Outcome, Outputs, Sample, Search, Seed, Transcript
from edgeflare_mutators import Mutation, corruptions, default_pool, replay

RATE = 8000
SAMPLE = np.random.default_rng(5).uniform(-0.5, 0.5, RATE // 2).astype(np.float32)
IMAGE = np.zeros((8, 8, 1), np.uint8)
SCORES = Outputs(np.array([0.8, 0.2]), np.array([0.8, 0.2]), Decision.AGREE)
HEARD = Transcript((" yes", " no"), np.array([[0.9, 0.05], [0.8, 0.1]]))
WORDS = Outputs(HEARD, HEARD, Decision.AGREE)
SMALL = {"population": 8, "batch": 8}

WITHOUT = """
import sys
sys.modules["audiomentations"] = None
import numpy as np
from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy
from edgeflare.types import Decision, Outputs, Seed
seed = Seed("a", np.zeros(9, np.float32), Outputs(np.ones(2) / 2, np.ones(2) / 2, Decision.AGREE), rate=8000)
for name, operators in (("dflare", ()), ("diffchaser", ()), ("dflare", ("white-noise", "room"))):
    try:
        next(build_strategy(name, {}, operators)(seed, np.random.default_rng(0)))
        print("asked")
    except UsageError as error:
        print(error)
"""


def start(
    name: str,
    outputs: Outputs = SCORES,
    operators: tuple[str, ...] = (),
    number: int = 0,
    sample: Sample = SAMPLE,
    **options: Any,
) -> Search:
    seed = Seed("a", sample, outputs, rate=None if sample.ndim == 3 else RATE)
    return build_strategy(name, options, operators)(seed, np.random.default_rng(number))


def finish(search: Search, outputs: list[Outputs]) -> Outcome:
    with pytest.raises(StopIteration) as stopped:
        search.send(Answer(outputs))
    outcome = stopped.value.value
    assert isinstance(outcome, Outcome)
    return outcome


def sounds(answer: Outputs, top: float) -> Outputs:
    """Return the same answer with the deployed model's (first) top-1 probability changed."""
    if isinstance(answer.deployed, Transcript):
        scores = answer.deployed.scores.copy()
        scores[0, 0] = top
        return answer._replace(deployed=Transcript(answer.deployed.pieces, scores))
    return answer._replace(deployed=np.array([top, 1 - top]))


@pytest.mark.parametrize("name", ["dflare", "dflare-d", "dflare-r"])
@pytest.mark.parametrize("variant", ["text", "reference"])
@pytest.mark.parametrize("outputs", [SCORES, WORDS], ids=["scores", "transcripts"])
def test_every_variant_mutates_audio_and_what_it_finds_replays(name, variant, outputs) -> None:
    search = start(name, outputs, variant=variant)
    ask = next(search)
    for step in range(1, 12):
        assert ask.samples[0].dtype == np.float32
        assert ask.samples[0].shape == SAMPLE.shape
        ask = search.send(Answer([sounds(outputs, 0.8 - 0.01 * step)]))
    outcome = finish(search, [outputs._replace(decision=Decision.DEVIATION)])
    steps = [Mutation.from_json(step) for step in outcome.mutations]
    assert len(steps) == (1 if (name, variant) == ("dflare-d", "reference") else 12)
    assert {step.operator for step in steps} <= set(default_pool("audio"))
    assert outcome.sample is ask.samples[0]
    assert np.array_equal(replay(SAMPLE, steps), outcome.sample)


@pytest.mark.parametrize("name", ["dflare", "diffchaser"])
def test_the_pool_of_audio_is_the_papers_four(name: str) -> None:
    names = set()
    for number in range(40):
        search = start(name, number=number)
        asked = next(search)
        outcome = finish(
            search, [SCORES._replace(decision=Decision.DEVIATION)] * len(asked.samples)
        )
        names.add(outcome.mutations[0]["operator"])
    assert names == set(default_pool("audio"))


def test_diffchaser_makes_no_input_before_the_batch_that_asks_about_it(monkeypatch) -> None:
    made = []
    gain = default_pool("audio")["gain"]
    apply = type(gain).apply
    monkeypatch.setattr(type(gain), "apply", lambda *args: [made.append(1), apply(*args)][1])
    search = start("diffchaser", operators=("gain",), batch=5)
    next(search)
    assert len(made) == 5
    search.send(Answer([SCORES] * 5))
    assert len(made) == 10


def test_one_strategy_serves_images_and_audio() -> None:
    strategy = build_strategy("dflare", {})
    for sample in (SAMPLE, IMAGE, SAMPLE):
        seed = Seed("a", sample, SCORES, rate=RATE if sample.ndim == 1 else None)
        ask = next(strategy(seed, np.random.default_rng(0)))
        assert ask.samples[0].dtype == sample.dtype


@pytest.mark.parametrize("name", ["dflare", "diffchaser"])
def test_operators_that_the_user_names_replace_the_pool(name: str) -> None:
    search = start(name, operators=("tempo",), number=3)
    asked = next(search)
    assert {sample.shape for sample in asked.samples} != {SAMPLE.shape}
    outcome = finish(search, [SCORES._replace(decision=Decision.DEVIATION)] * len(asked.samples))
    assert [step["operator"] for step in outcome.mutations] == ["tempo"]


@pytest.mark.parametrize("name", ["dflare", "dflare-r", "diffchaser"])
def test_operators_of_another_kind_are_refused_before_anything_is_asked(name: str) -> None:
    words = "the operator median-blur mutates images, and the seed inputs are audio; choose of time-stretch, pitch-"
    with pytest.raises(UsageError, match=words):
        next(start(name, operators=("gain", "median-blur")))
    words = "the operator gain mutates audio, and the seed inputs are images; choose of random-pixel-change"
    with pytest.raises(UsageError, match=words):
        next(start(name, operators=("gain",), sample=IMAGE))


@pytest.mark.parametrize("name", ["dflare", "diffchaser"])
def test_a_seed_that_can_not_be_mutated_is_named(name: str) -> None:
    seed = Seed("a.wav", SAMPLE, SCORES, rate=500)
    with pytest.raises(UsageError, match=r"seed a\.wav"):
        next(build_strategy(name, {})(seed, np.random.default_rng(0)))


def test_operators_can_be_checked_before_there_is_a_search() -> None:
    check_operators((), "audio")
    check_operators(tuple(corruptions("audio")), "audio")
    check_operators(tuple(corruptions("image")), "image")
    with pytest.raises(UsageError, match="mutates images"):
        check_operators(("gain", "jpeg"), "audio")
    with pytest.raises(UsageError, match="operator 'hum'"):
        check_operators(("hum",), "audio")


def test_without_audiomentations_a_search_that_needs_it_says_so_before_it_asks() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    default, genetic, extras = done.stdout.splitlines()
    assert "pip install 'edgeflare[audio]'" in default
    assert "pip install 'edgeflare[audio]'" in genetic
    assert extras == "asked"


def generations(search: Search, count: int, outputs: Outputs) -> list[tuple[Sample, ...]]:
    asked = [tuple(next(search).samples)]
    while len(asked) < count:
        asked.append(tuple(search.send(Answer([outputs] * len(asked[-1]))).samples))
    return asked


@pytest.mark.parametrize("outputs", [SCORES, WORDS], ids=["scores", "transcripts"])
def test_a_crossover_takes_every_20_ms_whole_from_one_of_two_parents(outputs: Outputs) -> None:
    search = start("diffchaser", outputs, ("gain", "white-noise"), mutation_rate=0, **SMALL)
    first, second = generations(search, 2, outputs)
    parents = np.stack(first).reshape(len(first), -1, RATE // 50)
    mixed = 0
    for child in second:
        of = (parents == child.reshape(1, -1, RATE // 50)).all(axis=2)  # [parent, segment]
        assert of.any(axis=0).all()
        mixed += not of.all(axis=1).any()
    assert mixed >= 3


def test_a_child_of_parents_of_different_lengths_is_as_long_as_one_of_them() -> None:
    search = start("diffchaser", SCORES, ("tempo",), mutation_rate=0, **SMALL)
    first, second = generations(search, 2, SCORES)
    lengths = {sample.size for sample in first}
    assert len(lengths) > 4
    assert {sample.size for sample in second} <= lengths
    assert all(sample.dtype == np.float32 for sample in second)


def test_a_crossover_of_the_shortest_clips_is_one_of_them() -> None:
    sample = np.full(1, 0.25, np.float32)
    search = start("diffchaser", SCORES, ("gain",), mutation_rate=0, sample=sample, **SMALL)
    first, second = generations(search, 2, SCORES)
    assert {float(child[0]) for child in second} <= {float(parent[0]) for parent in first}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fitness": "targeted", "target": 1}, "targeted fitness"),
        ({"k": 3}, "2 without"),
    ],
)  # fmt: skip
def test_what_transcripts_do_not_have_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        next(start("diffchaser", WORDS, **options))
