"""What a trigger of a replicated fleet is put down to."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import compared_campaign, pooled_campaign

from edgeflare.analysis.findings import findings
from edgeflare.store import OutcomeRecord, ReplayRecord, SeedInput, Store
from edgeflare.types import Decision, Status

PI = {"board": "pi", "arch": "aarch64", "os": "Debian", "runtime": {"version": "2.1"}}


def causes(store: Store) -> list[tuple[str, str, str]]:
    return [(one.seed.id[2:3], one.outcome.replica, one.cause) for one in findings(store)]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"board": "jetson"}, "hardware"),
        ({"runtime": {"version": "2.2"}}, "runtime"),
        ({"board": "jetson", "runtime": {"version": "2.2"}}, "hardware or runtime"),
        ({"os": "Ubuntu"}, "system"),
        ({}, "unexplained"),
    ],
)
def test_on_both_it_is_the_compression_and_on_one_what_differs(tmp_path, change, cause):
    with compared_campaign(tmp_path / "c", PI, PI | change) as store:
        found = causes(store)
    assert found == [
        ("0", "host", "compression"),
        ("0", "board", "compression"),
        ("1", "host", cause),  # "board" agrees with the original
        ("1", "board", cause),  # a tie on "host"
        ("2", "board", "not attributed"),  # "host" could not answer it
        ("3", "host", "not attributed"),  # "board" was not asked yet
    ]


def test_devices_that_share_the_seeds_attribute_nothing(tmp_path):
    with pooled_campaign(tmp_path / "c") as store:
        assert {cause for *_, cause in causes(store)} == {"not attributed"}


def three_devices(folder: Path, prints: dict[str, dict[str, Any]], agreeing: set[str]) -> Store:
    """One trigger, found on the first of the devices."""
    first, *others = prints
    store = Store.create(folder, {})
    store.state.replicas = list(prints)
    store.state.fingerprints = {name: store.add_device(prints[name], name) for name in prints}
    store.add_seeds([SeedInput("s/0", np.zeros((2, 2, 1), np.uint8))])
    trigger = store.put_sample(np.ones((2, 2, 1), np.uint8))
    scores = np.array([0.25, 0.75])
    store.add_outcome(
        OutcomeRecord("s/0", Status.FOUND, 0, trigger=trigger, deployed=scores, replica=first)
    )
    for name in others:
        decision = Decision.AGREE if name in agreeing else Decision.DEVIATION
        store.add_replay(ReplayRecord("s/0", first, name, trigger, scores, 1, decision))
    return store


def test_of_several_devices_the_two_most_alike_tell_the_cause(tmp_path):
    prints = {
        "far": PI | {"board": "jetson", "os": "Ubuntu"},
        "near": PI,
        "nearest": PI | {"runtime": {"version": "2.2"}},
    }
    with three_devices(tmp_path / "c", prints, agreeing={"nearest"}) as store:
        assert causes(store) == [("0", "far", "runtime")]  # "near" triggers, "nearest" doesn't


def test_some_devices_that_agree_are_enough_to_rule_the_compression_out(tmp_path):
    prints = {"a": PI, "b": PI | {"board": "jetson"}, "c": PI}
    with three_devices(tmp_path / "c", prints, agreeing={"b"}) as store:
        assert causes(store) == [("0", "a", "hardware")]
    with three_devices(tmp_path / "d", prints, agreeing=set()) as store:
        assert causes(store) == [("0", "a", "compression")]
