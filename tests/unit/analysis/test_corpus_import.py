"""A trigger corpus fed with campaigns and replays, read from stores written by hand."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import ended, store_of

from edgeflare import StoreError, UsageError
from edgeflare.analysis import add_to_corpus, corpus_summary, note_replay, remove_from_corpus
from edgeflare.store import Store
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.location import is_corpus
from edgeflare.store.state import ReplayOrigin, StoredReplay
from edgeflare.types import Sample, Status

START = datetime(2026, 3, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)
AGREE = np.array([0.75, 0.25, 0.0])
OTHER = np.array([0.25, 0.75, 0.0])


def image(value: int) -> Sample:
    return np.full((4, 4, 1), value, np.uint8)


def open_store(folder: Path, name: str, original: str, **more: Any) -> Store:
    digest = name.encode().hex().ljust(64, "0")[:64]
    models = {"sha256": original * 32}, {"name": name, "sha256": digest}
    return store_of(folder, answers=(AGREE, AGREE), models=models, finished=True, **more)


def add(
    store: Store, seed: int | str, level: int | None, status: Status = Status.FOUND, **other: Any
) -> None:
    fields = {"l2": 1.5, "linf": 100, "device_name": "pi", "finished_at": START} | other
    trigger = None if level is None else image(level)
    ended(store, seed, status, trigger=trigger, answers=(AGREE, OTHER), **fields)


def campaign(
    folder: Path,
    *,
    seeds: int = 3,
    found: Iterable[int] = (0, 1),
    name: str = "int8.tflite",
    original: str = "aa",
    first: int = 100,
) -> Path:
    """Seeds that are images of their number; what is `found` from them is 100 levels brighter."""
    about = {"seeds": seeds, "sample": image, "label": lambda number: 0}
    with open_store(folder, name, original, **about) as store:
        for number in found:
            add(store, number, first + number)
    return folder


def replay(
    folder: Path,
    source: Path,
    inputs: dict[int, tuple[int, bool, Status]],
    *,
    days: int = 1,
    name: str = "int8.tflite",
    kind: str = "trigger",
    source_kind: str = "campaign",
) -> Path:
    """A replay, so many days after START, of these seeds' inputs: image, whether it deviated, and how it ended now."""
    source_id = None
    if source_kind == "campaign" and source.is_dir():
        with Store.open(source) as there:
            source_id = there.id
    about = {"kind": kind, "replica": "", "label": 0, "original_label": 0, "l2": 1.5, "looks": {}}
    entries = [
        {"id": f"{kind}:s/{seed}.png", "seed_id": f"s/{seed}.png", "deviated": deviated}
        | {"deployed_label": int(deviated), **about}
        for seed, (_, deviated, _) in inputs.items()
    ]
    levels = [level for level, *_ in inputs.values()]
    names = [one["id"] for one in entries]
    more = {"seeds": names, "sample": lambda number: image(levels[number])}
    origin = ReplayOrigin(source_kind, str(source), campaign=source_id)
    with open_store(folder, name, "aa", replay=StoredReplay(origin, entries), **more) as store:
        for one, (level, _, status) in zip(names, inputs.values(), strict=True):
            trigger = level if status is Status.SEED_DEVIATES else None
            add(store, one, trigger, status, finished_at=START + days * DAY, l2=0.0, linf=0)
    return folder


def states(corpus: Path) -> dict[int, bool]:
    with Corpus.open(corpus) as there:
        return {int(one.seed_id[2]): one.deviated for one in there.inputs()}


def entry(corpus: Path, number: int) -> tuple[Any, Sample, Sample]:
    """The entry of the seed of this number, its sample and that of its seed."""
    with Corpus.open(corpus) as there:
        one = next(one for one in there.entries() if one.seed_id == f"s/{number}.png")
        return one, there.get_sample(one.sample), there.get_sample(one.seed_sample)


FIXED, STILL = Status.GAVE_UP, Status.SEED_DEVIATES
BOTH = {0: (100, True, FIXED), 1: (101, True, STILL)}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return tmp_path / "corpus"


def test_every_confirmed_trigger_of_a_campaign_is_added_once(tmp_path: Path, corpus: Path) -> None:
    folder = campaign(tmp_path / "a", seeds=6)
    with Store.open(folder) as store:
        add(store, 2, None, Status.SEED_DEVIATES, l2=None, linf=None)
        for number, status in ((3, Status.UNSTABLE), (4, Status.NONFINITE), (5, Status.EXHAUSTED)):
            add(store, number, 200 + number, status)
    added = add_to_corpus(corpus, folder)
    assert (added.new, added.known, added.near, added.noted, added.entries) == (3, 0, 0, 0, 3)
    assert added.notices == ()
    again = add_to_corpus(corpus, folder)
    assert (again.new, again.known, again.entries) == (0, 3, 3)
    first, sample, seed = entry(corpus, 0)
    assert (sample == image(100)).all()
    assert (seed == image(0)).all()
    assert (first.model, first.device, first.l2, first.seed_label) == ("int8.tflite", "pi", 1.5, 0)
    assert (first.original_sha256, first.found_at) == ("aa" * 32, START)
    itself, *_ = entry(corpus, 2)
    assert itself.sample == itself.seed_sample
    assert (itself.l2, itself.linf, itself.status) == (0.0, 0, Status.SEED_DEVIATES)


def test_a_campaign_that_runs_gives_what_it_has_and_later_the_rest(
    tmp_path: Path, corpus: Path
) -> None:
    folder = campaign(tmp_path / "a")
    with Store.open(folder) as store:
        store.state.finished = False
    added = add_to_corpus(corpus, folder)
    assert added.new == 2
    assert added.notices == (f"{folder} is not finished: what it found so far was added",)
    with Store.open(folder) as store:
        add(store, 2, 102)
        store.state.finished = True
    later = add_to_corpus(corpus, folder)
    assert (later.new, later.known, later.notices) == (1, 2, ())


def test_a_campaign_without_triggers_leaves_the_corpus_to_any_form(
    tmp_path: Path, corpus: Path
) -> None:
    added = add_to_corpus(corpus, campaign(tmp_path / "a", found=()))
    assert (added.new, added.entries, corpus_summary(corpus).shape) == (0, 0, None)


def test_another_original_is_added_with_a_notice_another_shape_is_not(
    tmp_path: Path, corpus: Path
) -> None:
    add_to_corpus(corpus, campaign(tmp_path / "a"))
    added = add_to_corpus(corpus, campaign(tmp_path / "b", original="cc", first=150))
    assert added.new == 2
    assert "corpus' triggers" in added.notices[0]
    assert corpus_summary(corpus).originals == {"aa" * 32: 2, "cc" * 32: 2}
    about = {"seeds": 1, "sample": lambda number: np.zeros((4, 4, 3), np.uint8)}
    with open_store(tmp_path / "c", "int8.tflite", "aa", **about) as store:
        ended(store, 0, trigger=np.ones((4, 4, 3), np.uint8), answers=(AGREE, OTHER), l2=1.0)
    with pytest.raises(UsageError, match="3 classes"):
        add_to_corpus(corpus, tmp_path / "c")


def test_nothing_is_made_for_a_folder_that_is_no_campaign(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(StoreError, match="campaign folder"):
        add_to_corpus(corpus, tmp_path / "a")
    assert not corpus.exists()
    folder = campaign(tmp_path / "b")
    with pytest.raises(StoreError, match="empty folder"):
        add_to_corpus(folder, folder)
    assert not is_corpus(folder)


def test_a_replay_reports_what_became_of_the_entries(tmp_path: Path, corpus: Path) -> None:
    source = campaign(tmp_path / "a", seeds=5, found=range(5))
    add_to_corpus(corpus, source)
    ends = (FIXED, STILL, Status.UNSTABLE, Status.FAILED, Status.NONFINITE)
    inputs = {number: (100 + number, True, status) for number, status in enumerate(ends)}
    folder = replay(tmp_path / "r", source, inputs)
    assert note_replay(corpus, folder) == 2
    assert states(corpus) == {number: number != 0 for number in range(5)}
    with pytest.raises(StoreError, match="no replay"):
        note_replay(corpus, source)
    with pytest.raises(StoreError, match="no corpus"):
        note_replay(tmp_path / "nowhere", folder)


def test_a_replay_older_than_the_last_look_changes_nothing(tmp_path: Path, corpus: Path) -> None:
    source = campaign(tmp_path / "a")
    add_to_corpus(corpus, source)
    for days, status in ((2, STILL), (1, FIXED)):
        inputs = {0: (100, True, status)}
        note_replay(corpus, replay(tmp_path / f"r{days}", source, inputs, days=days))
    assert states(corpus)[0]


def test_the_new_triggers_of_a_replay_are_added_with_the_seeds_they_came_from(
    tmp_path: Path, corpus: Path
) -> None:
    source = campaign(tmp_path / "a")
    triggers = replay(tmp_path / "r", source, BOTH, name="new.tflite")
    added = add_to_corpus(corpus, triggers)
    assert (added.new, added.noted, added.entries) == (1, 1, 1)
    seeds = replay(tmp_path / "s", source, {2: (2, False, STILL)}, kind="seed")
    assert [add_to_corpus(corpus, seeds).new for _ in range(2)] == [1, 0]
    came, _, seed = entry(corpus, 1)
    assert (seed == image(1)).all()
    assert (came.linf, came.l2, came.model) == (100, pytest.approx(4 * 100 / 255), "new.tflite")
    itself, *_ = entry(corpus, 2)
    assert itself.seed_sample == itself.sample
    inputs = {0: (100, False, STILL)}
    again = replay(tmp_path / "t", triggers, inputs, source_kind="replay")
    assert add_to_corpus(corpus, again).new == 1
    assert (entry(corpus, 0)[2] == image(0)).all()


def test_a_replay_of_one_corpus_feeds_another(tmp_path: Path, corpus: Path) -> None:
    add_to_corpus(corpus, campaign(tmp_path / "a"))
    folder = replay(tmp_path / "r", corpus, {1: (101, True, STILL)}, source_kind="corpus")
    assert add_to_corpus(tmp_path / "other", folder).new == 1
    assert (entry(tmp_path / "other", 1)[2] == image(1)).all()


def test_triggers_whose_seeds_are_missing_are_reported(tmp_path: Path, corpus: Path) -> None:
    folder = replay(tmp_path / "r", tmp_path / "gone", {1: (101, True, STILL)})
    added = add_to_corpus(corpus, folder)
    assert added.new == 0
    assert "1 triggers" in added.notices[0]


def test_a_replay_added_before_its_campaign_is_to_be_added_again(
    tmp_path: Path, corpus: Path
) -> None:
    source = campaign(tmp_path / "a", seeds=2)
    folder = replay(tmp_path / "r", source, BOTH)
    (notice,) = add_to_corpus(corpus, folder).notices
    assert f"{folder}: the corpus" in notice
    assert f"{source}, then {folder}" in notice
    assert add_to_corpus(corpus, source).notices == ()
    again = add_to_corpus(corpus, folder)
    assert (again.noted, again.notices) == (2, ())
    assert states(corpus) == {0: False, 1: True}


@pytest.fixture
def noted(tmp_path: Path, corpus: Path) -> Callable[..., Path]:
    """Adds a campaign, and what a replay with the model "half" said of its first trigger."""

    def add_both(**more: Any) -> Path:
        source = campaign(tmp_path / "a", **more)
        add_to_corpus(corpus, source)
        note_replay(corpus, replay(tmp_path / "r", source, {0: (100, True, FIXED)}), model="half")
        return corpus

    return add_both


def test_a_model_that_the_corpus_does_not_know_is_not_removed(noted: Callable[..., Path]) -> None:
    corpus = noted()
    with pytest.raises(UsageError, match="model 'nope'"):
        remove_from_corpus(corpus, model="nope", dry_run=True)
    assert remove_from_corpus(corpus, model="half").entries == 0
    assert remove_from_corpus(corpus, model="int8.tflite").entries == 2
    with pytest.raises(UsageError, match="knows none"):
        remove_from_corpus(corpus, model="int8.tflite")


def test_the_figures_of_a_corpus(tmp_path: Path, noted: Callable[..., Path]) -> None:
    corpus = noted(seeds=4, found=range(4))
    add_to_corpus(corpus, campaign(tmp_path / "b", name="fp16.tflite"), model="half")
    figures = corpus_summary(corpus)
    assert (figures.entries, figures.seeds, figures.campaigns, figures.sightings) == (4, 4, 2, 6)
    assert (figures.shape, figures.classes, figures.per_pair, figures.near) == ((4, 4, 1), 3, 3, 0)
    assert figures.models == {"int8.tflite": 4, "half": 2}
    assert [tuple(pair) for pair in figures.pairs] == [(0, 1, 4)]
    assert [
        (one.model, one.device, one.deviating, one.agreeing, one.unseen, one.looked_at)
        for one in figures.targets
    ] == [("half", "pi", 1, 1, 2, START + DAY), ("int8.tflite", "pi", 4, 0, 0, START)]
    assert figures.found_first == figures.found_last == START
    samples = [one.stat().st_size for one in corpus.glob("samples/*/*")]
    assert len(samples) == 8
    assert figures.size == sum(samples) + (corpus / "corpus.sqlite").stat().st_size
    told = figures.to_json()
    assert told["targets"][0]["looked_at"] == (START + DAY).isoformat()
    assert told["pairs"] == [{"original_label": 0, "deployed_label": 1, "entries": 4}]
    assert remove_from_corpus(corpus, pair=(0, 1)).entries == 4
    empty = corpus_summary(corpus)
    assert (empty.entries, empty.pairs, empty.targets, empty.found_last) == (0, (), (), None)
