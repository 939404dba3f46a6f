"""Seeds are stored in the order of their priority: all or none, read twice, and only those within the limit."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.campaign.events import Event, Notice, Reporter, Step
from edgeflare.campaign.seeds import store_seeds
from edgeflare.campaign.settings.models import SeedsConfig
from edgeflare.errors import UsageError
from edgeflare.seeds import SeedSource
from edgeflare.store import Store
from edgeflare.types import SeedInput, Skipped

FOUND = np.array([0.1, np.nan, 0.9, 0.5, 0.9, np.inf, -1.0])


class Source:
    """Seven seeds, of which one file can't be read; counts how many samples were read."""

    total: int | None = 8

    def __init__(self, label: int = 1) -> None:
        self.skipped: list[Skipped] = []
        self.notices: list[str] = []
        self.read = 0
        self._label = label

    def __iter__(self) -> Iterator[SeedInput]:
        self.skipped, self.notices = [], []
        for k in range(7):
            self.read += 1
            yield SeedInput(f"{k}", np.full((2, 2, 1), k, np.uint8), self._label)
        self.skipped.append(Skipped("bad", "it is no picture"))
        self.notices.append("a notice")


def priority(seeds: Iterable[SeedInput]) -> NDArray[np.float64]:
    assert len(list(seeds)) == len(FOUND)
    return FOUND


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "campaign", {}) as created:
        yield created


def stored(source: SeedSource, store: Store, limit: int | None = None) -> list[Event]:
    events: list[Event] = []
    config = SeedsConfig(path=Path("seeds"), prioritise="margin", limit=limit)
    reporter = Reporter(events.append)
    store_seeds(source, config, store, reporter, classes=3, priority=priority)
    return events


def ids(store: Store) -> list[str]:
    return [one.id for one in store.seeds()]


def test_all_are_stored_most_promising_first(store: Store) -> None:
    source = Source()
    events = stored(source, store)
    assert ids(store) == ["5", "2", "4", "3", "0", "6", "1"]
    assert [int(one[0, 0, 0]) for one in store.seed_samples()] == [5, 2, 4, 3, 0, 6, 1]
    assert [one.label for one in store.seeds()] == [1] * 7
    assert store.skipped() == [Skipped("bad", "it is no picture")]
    assert store.notices() == ["a notice"]
    assert any(isinstance(one, Notice) and one.text.startswith("1 file skipped") for one in events)
    assert [one for one in events if isinstance(one, Step)][-1] == Step(7)
    assert store.state.seeds_complete
    assert source.read == 14
    stored(source, store)  # does nothing
    assert source.read == 14


def test_a_limit_stores_no_other_sample_and_stops_reading(store: Store) -> None:
    source = Source()
    stored(source, store, limit=2)
    assert ids(store) == ["5", "2"]
    assert [store.has_sample(store.sample_digest(one.sample)) for one in Source()] == [
        k in (2, 5) for k in range(7)
    ]
    assert source.read == 7 + 6
    assert store.skipped() == [Skipped("bad", "it is no picture")]
    limited = (
        "the 2 seeds are the most promising of 7 by margin: rates and means are about these, not "
        "about all"
    )
    assert store.notices() == ["a notice", limited]


@pytest.mark.parametrize("last", [0, 4, 6])
def test_what_was_interrupted_ends_as_if_it_had_not_been(store: Store, last: int) -> None:
    class Ends(Source):
        def __iter__(self) -> Iterator[SeedInput]:
            for seed in super().__iter__():
                if self.read == 7 + last + 1:
                    raise KeyboardInterrupt
                yield seed

    with pytest.raises(KeyboardInterrupt):
        stored(Ends(), store)
    assert not store.seed_count()
    assert not store.state.seeds_complete
    stored(Source(), store)
    assert ids(store) == ["5", "2", "4", "3", "0", "6", "1"]


def test_what_ended_right_after_the_seeds_gets_the_same_notices(store, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "complete_seeds", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stored(Source(), store, limit=2)
    assert ids(store) == ["5", "2"]
    stored(Source(), store, limit=2)
    assert ids(store) == ["5", "2"]
    assert len(store.notices()) == 2
    assert store.skipped() == [Skipped("bad", "it is no picture")]


def test_a_label_of_no_class_is_refused_and_nothing_stored(store: Store) -> None:
    with pytest.raises(UsageError, match="label"):
        stored(Source(label=3), store)
    assert not store.seed_count()


def test_an_order_of_other_seeds_is_refused_and_nothing_stored(store: Store) -> None:
    config = SeedsConfig(path=Path("seeds"), prioritise="margin")
    with pytest.raises(UsageError, match="6 priorities"):
        store_seeds(
            Source(), config, store, Reporter(lambda _: None), classes=3,
            priority=lambda seeds: priority(seeds)[:6],
        )  # fmt: skip
    assert not store.seed_count()
