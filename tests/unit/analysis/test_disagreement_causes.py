"""What a trigger of a replicated fleet is put down to."""

import numpy as np
import pytest
from stores import compared_campaign, ended, pooled_campaign, replayed, store_of

from edgeflare.analysis.findings import findings
from edgeflare.store import Store
from edgeflare.types import Decision

PI = {"board": "pi", "arch": "aarch64", "os": "Debian", "runtime": {"version": "2.1"}}


def causes(store: Store) -> list[tuple[str, str, str]]:
    with store:
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
    assert causes(compared_campaign(tmp_path / "c", PI, PI | change)) == [
        ("0", "host", "compression"),
        ("0", "board", "compression"),
        ("1", "host", cause),  # "board" agrees with the original
        ("1", "board", cause),  # a tie on "host"
        ("2", "board", "not attributed"),  # "host" could not answer it
        ("3", "host", "not attributed"),  # "board" was not asked yet
    ]


def test_devices_that_share_the_seeds_attribute_nothing(tmp_path):
    assert {cause for *_, cause in causes(pooled_campaign(tmp_path / "c"))} == {"not attributed"}


JETSON, LATER = {"board": "jetson"}, {"runtime": {"version": "2.2"}}


@pytest.mark.parametrize(
    ("changes", "agreeing", "cause"),
    [
        # the two most alike tell: "b" triggers, "c" doesn't
        ((JETSON | {"os": "Ubuntu"}, {}, LATER), {"c"}, "runtime"),
        # one that agrees is enough to rule the compression out
        (({}, JETSON, {}), {"b"}, "hardware"),
        (({}, JETSON, {}), set(), "compression"),
    ],
)
def test_of_three_devices(tmp_path, changes, agreeing, cause):
    prints = {name: PI | change for name, change in zip("abc", changes, strict=True)}
    store = store_of(tmp_path / "c", seeds=1, replicas="abc")
    store.state.fingerprints = {name: store.add_device(prints[name], name) for name in prints}
    ended(store, 0, trigger=9, deployed=np.array([0.25, 0.75]), replica="a")
    for name in "bc":
        decision = Decision.AGREE if name in agreeing else Decision.DEVIATION
        replayed(store, 0, "a", name, 9, decision)
    assert causes(store) == [("0", "a", cause)]
