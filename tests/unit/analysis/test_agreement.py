"""What two devices do differently with the same model, reckoned by hand."""

import json

import numpy as np
import pytest
from stores import AGREE, compared_campaign, ended, pooled_campaign, replayed, store_of

from edgeflare.analysis import Compared, EveryDevice, FingerprintDifference, summarize
from edgeflare.analysis.agreement import cause_of, what_differs
from edgeflare.store import SeedAnswer
from edgeflare.types import Decision

RUNTIME = {"name": "tflite", "package": "ai-edge-litert", "version": "2.1", "delegate": "XNNPACK"}
PI = {"board": "pi", "arch": "aarch64", "cpu_flags": ["asimd"], "os": "Debian", "runtime": RUNTIME}


def test_each_input_is_compared_once(tmp_path):
    with compared_campaign(tmp_path / "c", PI, {**PI, "board": "rock"}) as store:
        summary = summarize(store)
    (found,) = summary.agreements
    assert (found.first, found.second, found.cause) == ("host", "board", "hardware")
    assert found.seeds == Compared(3, 1, 1, 0, 1, 0.25, "s/2.png")
    assert found.triggers == Compared(3, 1, 2, 0, 2, 0.375, "s/1.png")
    assert (found.on_both, found.only_first, found.only_second, found.narrowly) == (1, 1, 1, 1)
    assert [(one.seed_id, one.on_device) for one in found.examples] == [
        ("s/1.png", "host"),
        ("s/1.png", "board"),
    ]
    assert len({one.trigger for one in found.examples}) == 2
    data = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    (pair,) = data["agreements"]
    assert (pair["seeds"]["largest_difference"], pair["cause"]) == (0.25, "hardware")
    assert pair["differences"] == [
        {"field": "board", "first": "pi", "second": "rock", "side": "hardware"}
    ]
    assert data["every_device"] == {"devices": 2, "answered": 3, "on_all": 1}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, "unexplained"),
        ({"arch": "x86_64"}, "hardware"),
        ({"cpu_flags": ["asimd", "i8mm"]}, "hardware"),
        ({"arch": "x86_64", "os": "Ubuntu"}, "hardware"),
        ({"runtime": {**RUNTIME, "delegate": None}}, "runtime"),
        ({"runtime": {**RUNTIME, "version": "2.2"}, "numpy": "2"}, "runtime"),
        ({"runtime": {**RUNTIME, "threads": 4}}, "runtime"),
        ({"runtime": {**RUNTIME, "gpu": "Orin"}}, "hardware"),
        ({"board": "rock", "runtime": {**RUNTIME, "threads": 4}}, "hardware or runtime"),
        ({"os": "Ubuntu"}, "system"),
    ],
)
def test_the_cause_is_what_differs_between_the_two(change, cause):
    found = what_differs(PI, {**PI, **change})
    assert cause_of(found) == cause
    assert cause_of(what_differs({**PI, **change}, PI)) == cause


def test_what_differs_is_reported_with_both_values():
    other = {**PI, "board": None, "runtime": {**RUNTIME, "delegate": None}}
    assert what_differs(PI, other) == (
        FingerprintDifference("board", "pi", None, "hardware"),
        FingerprintDifference("runtime.delegate", "XNNPACK", None, "runtime"),
    )
    assert what_differs(PI, PI) == ()


def test_a_model_of_labels_alone_has_no_differences_of_scores(tmp_path):
    with compared_campaign(tmp_path / "c") as store:
        store.set_models({}, {"output": {"kind": "label"}})
        (found,) = summarize(store).agreements
    for compared in (found.seeds, found.triggers):
        assert (compared.largest_difference, compared.largest_on) == (None, None)
    assert (found.seeds.labels_differ, found.triggers.labels_differ) == (1, 2)


def test_nan_is_counted_and_never_subtracted(tmp_path):
    nothing = np.array([np.nan, 0.5])
    of = {"a": [nothing, nothing, AGREE[0]], "b": [nothing, *AGREE]}
    with store_of(tmp_path / "c", seeds=3, replicas="ab") as store:
        for name, answers in of.items():
            store.add_seed_answers(
                [
                    SeedAnswer(f"s/{n}.png", AGREE[0], scores, Decision.AGREE)
                    for n, scores in enumerate(answers)
                ],
                name,
            )
        (found,) = summarize(store).agreements
    assert found.seeds == Compared(3, 1, 0, 2, 0, 0.25, "s/2.png")


def test_devices_that_share_the_seeds_are_not_compared(tmp_path):
    with pooled_campaign(tmp_path / "c") as store:
        summary = summarize(store)
    assert (summary.agreements, summary.every_device) == ((), None)


def test_of_three_devices_each_pair_is_compared_by_its_own_triggers(tmp_path):
    with store_of(tmp_path / "c", seeds=2, replicas="abc") as store:
        for number, agreeing in ((0, ""), (1, "b")):  # 0: on all three; 1: on a and c
            ended(store, number, trigger=100 + number, answers=AGREE, replica="a")
            for name in "bc":
                decision = Decision.AGREE if name in agreeing else Decision.DEVIATION
                replayed(store, number, "a", name, 100 + number, decision)
        summary = summarize(store)
    counts = {
        (one.first, one.second): (one.triggers.inputs, one.on_both, one.only_first, one.only_second)
        for one in summary.agreements
    }
    assert counts == {
        ("a", "b"): (2, 1, 1, 0),
        ("a", "c"): (2, 2, 0, 0),
        ("b", "c"): (0, 0, 0, 0),  # neither found anything
    }
    assert summary.every_device == EveryDevice(devices=3, answered=2, on_all=1)
