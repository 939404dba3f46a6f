"""What those who write a strategy test it with."""

import numpy as np

import edgeflare
from edgeflare import Answer, Ask, Decision, Outcome, Seed
from edgeflare.campaign import demo_config
from edgeflare.strategies import build_strategy
from edgeflare_lab.testing import FakeModel, connecting, run_strategy

MODEL = FakeModel.random()
IMAGE = np.random.default_rng(3).integers(0, 256, MODEL.shape, dtype=np.uint8)


def brighter(seed: Seed, rng: np.random.Generator):
    """Tries random images in batches of four; of each the original is asked first."""
    for _ in range(50):
        images = list(rng.integers(0, 256, (4, *seed.sample.shape), dtype=np.uint8))
        yield Ask(images, "original")
        answer: Answer = yield Ask(images)
        for image, outputs in zip(images, answer.outputs, strict=True):
            if outputs.decision is Decision.DEVIATION:
                return Outcome(image)
    return Outcome(None, reason="none of 200")


def test_a_strategy_is_tested_in_a_few_lines_without_a_device() -> None:
    deployed = MODEL.quantised(0.8)
    run = run_strategy(brighter, IMAGE, original=MODEL, deployed=deployed)
    assert run.outcome.sample is not None
    assert MODEL(run.outcome.sample).argmax() != deployed(run.outcome.sample).argmax()
    assert run.queries == run.host_only_queries == 2 * len(run.asked)
    again = run_strategy(brighter, IMAGE, original=MODEL, deployed=deployed)
    np.testing.assert_array_equal(again.outcome.sample, run.outcome.sample)


def test_a_copy_that_is_the_same_is_never_distinguished_and_a_budget_ends_the_search() -> None:
    whole = run_strategy(brighter, IMAGE, original=MODEL, deployed=MODEL)
    assert (whole.outcome, whole.queries) == (Outcome(None, reason="none of 200"), 200)
    short = run_strategy(brighter, IMAGE, original=MODEL, deployed=MODEL, max_queries=10)
    assert short.queries == 8
    assert short.outcome.sample is None


def test_an_answer_that_is_not_finite_ends_the_search() -> None:
    run = run_strategy(
        brighter, IMAGE, original=MODEL, deployed=lambda sample: MODEL(sample) * np.nan
    )
    assert (run.outcome, run.queries) == (None, 4)


def test_a_built_in_strategy_finds_what_a_user_sees() -> None:
    strategy = build_strategy("dflare", {})
    run = run_strategy(strategy, IMAGE, original=MODEL, deployed=MODEL.quantised(0.8))
    assert run.outcome.sample is not None


def test_a_campaign_runs_on_a_fake_device() -> None:
    demo = demo_config()
    fake = FakeModel.random((28, 28, 1), classes=10)
    result = edgeflare.search(
        demo.original.path,
        demo.deployed.path,
        {"path": demo.seeds.path, "limit": 3},
        strategy="none",
        connect=connecting({"local": fake.device()}),
    )
    triggers = list(result.triggers)
    assert triggers
    for trigger in triggers:
        assert trigger.deployed_label == fake(trigger.sample).argmax()
