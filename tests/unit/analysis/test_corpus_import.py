"""A trigger corpus fed with campaigns and replays, read from stores written by hand."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare import StoreError, UsageError
from edgeflare.analysis import add_to_corpus, corpus_summary, note_replay, remove_from_corpus
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.location import is_corpus
from edgeflare.store.state import ReplayOrigin, StoredReplay
from edgeflare.types import Decision, Status

START = datetime(2026, 3, 1, tzinfo=timezone.utc)
AGREE = np.array([0.75, 0.25, 0.0])
OTHER = np.array([0.25, 0.75, 0.0])


def image(value: int) -> np.ndarray:
    return np.full((4, 4, 1), value, np.uint8)


def campaign(
    folder: Path,
    *,
    seeds: int = 3,
    found: Iterable[int] = (0, 1),
    name: str = "int8.tflite",
    finished: bool = True,
    original: str = "aa",
    first: int = 100,
) -> Path:
    """Seeds that are images of their number; what is `found` from them is 100 levels brighter."""
    with Store.create(folder, {}) as store:
        store.add_seeds(
            SeedInput(f"s/{number}.png", image(number), label=0) for number in range(seeds)
        )
        models_of(store, name, original)
        answered(store, [f"s/{number}.png" for number in range(seeds)])
        for number in found:
            store.add_outcome(outcome(store, f"s/{number}.png", image(first + number)))
        store.state.finished = finished
    return folder


def models_of(store: Store, name: str, original: str = "aa") -> None:
    store.set_models(
        {"name": "original.onnx", "sha256": original * 32},
        {"name": name, "sha256": name.encode().hex().ljust(64, "0")[:64]},
    )


def answered(store: Store, ids: Iterable[str], scores: np.ndarray = AGREE) -> None:
    store.add_seed_answers([SeedAnswer(one, AGREE, scores, Decision.AGREE) for one in ids])


def outcome(store: Store, seed_id: str, sample: np.ndarray | None, **other: Any) -> OutcomeRecord:
    fields: dict[str, Any] = {
        "trigger": None if sample is None else store.put_sample(sample),
        "original": AGREE,
        "deployed": OTHER,
        "original_label": 0,
        "deployed_label": 1,
        "original_margin": 0.5,
        "deployed_margin": 0.5,
        "l2": 1.5,
        "linf": 100,
        "device_name": "pi",
        "finished_at": START,
    }
    return OutcomeRecord(seed_id, Status.FOUND, 0, **fields | other)


def replay(
    folder: Path,
    source: Path,
    inputs: dict[str, tuple[np.ndarray, bool, Status]],
    *,
    at: datetime,
    name: str = "int8.tflite",
    kind: str = "trigger",
    source_kind: str = "campaign",
) -> Path:
    """A replay of these inputs: their image, whether they deviated, and how they ended now."""
    source_id = None
    if source_kind == "campaign" and source.is_dir():
        with Store.open(source) as there:
            source_id = there.id
    with Store.create(folder, {}) as store:
        about = [
            {
                "id": f"{kind}:{seed_id}",
                "kind": kind,
                "deviated": deviated,
                "seed_id": seed_id,
                "replica": "",
                "label": 0,
                "original_label": 0,
                "deployed_label": 1 if deviated else 0,
                "l2": 1.5,
                "looks": {},
            }
            for seed_id, (_, deviated, _) in inputs.items()
        ]
        store.state.replay = StoredReplay(
            ReplayOrigin(source_kind, str(source), campaign=source_id), about
        )
        store.state.finished = True
        store.add_seeds(SeedInput(f"{kind}:{one}", inputs[one][0]) for one in inputs)
        models_of(store, name)
        answered(store, [one["id"] for one in about])
        for one in about:
            status = inputs[one["seed_id"]][2]
            triggers = status is Status.SEED_DEVIATES
            sample = inputs[one["seed_id"]][0] if triggers else None
            record = outcome(store, one["id"], sample, finished_at=at, l2=0.0, linf=0)
            store.add_outcome(replace(record, status=status))
    return folder


def states(corpus: Path) -> dict[str, bool]:
    with Corpus.open(corpus) as there:
        return {one.seed_id: one.deviated for one in there.inputs()}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return tmp_path / "corpus"


def test_every_confirmed_trigger_of_a_campaign_is_added_once(tmp_path: Path, corpus: Path) -> None:
    folder = campaign(tmp_path / "a", seeds=6, found=(0, 1))
    with Store.open(folder) as store:
        seed = outcome(store, "s/2.png", None, l2=None, linf=None)
        store.add_outcome(replace(seed, status=Status.SEED_DEVIATES))
        for number, status in ((3, Status.UNSTABLE), (4, Status.NONFINITE), (5, Status.EXHAUSTED)):
            one = outcome(store, f"s/{number}.png", image(200 + number))
            store.add_outcome(replace(one, status=status))
    added = add_to_corpus(corpus, folder)
    assert (added.new, added.known, added.near, added.noted, added.entries) == (3, 0, 0, 0, 3)
    assert added.notices == ()
    again = add_to_corpus(corpus, folder)
    assert (again.new, again.known, again.entries) == (0, 3, 3)
    with Corpus.open(corpus) as there:
        entries = {entry.seed_id: entry for entry in there.entries()}
        first, itself = entries["s/0.png"], entries["s/2.png"]
        assert (there.get_sample(first.sample) == image(100)).all()
        assert (there.get_sample(first.seed_sample) == image(0)).all()
        assert itself.sample == itself.seed_sample
        assert (itself.l2, itself.linf, itself.status) == (0.0, 0, Status.SEED_DEVIATES)
        assert (first.model, first.device, first.l2, first.seed_label) == (
            "int8.tflite",
            "pi",
            1.5,
            0,
        )
        assert (first.original_sha256, first.found_at) == ("aa" * 32, START)


def test_a_campaign_that_runs_gives_what_it_has_and_later_the_rest(
    tmp_path: Path, corpus: Path
) -> None:
    folder = campaign(tmp_path / "a", finished=False)
    added = add_to_corpus(corpus, folder)
    assert added.new == 2
    assert added.notices == (f"{folder} is not finished: what it found so far was added",)
    with Store.open(folder) as store:
        store.add_outcome(outcome(store, "s/2.png", image(102)))
        store.state.finished = True
    later = add_to_corpus(corpus, folder)
    assert (later.new, later.known, later.notices) == (1, 2, ())


def test_a_campaign_without_triggers_leaves_the_corpus_to_any_form(
    tmp_path: Path, corpus: Path
) -> None:
    added = add_to_corpus(corpus, campaign(tmp_path / "a", found=()))
    assert (added.new, added.entries) == (0, 0)
    assert corpus_summary(corpus).shape is None


def test_another_original_is_added_with_a_notice_another_shape_is_not(
    tmp_path: Path, corpus: Path
) -> None:
    add_to_corpus(corpus, campaign(tmp_path / "a"))
    retrained = campaign(tmp_path / "b", original="cc", first=150)
    added = add_to_corpus(corpus, retrained)
    assert added.new == 2
    assert "corpus' triggers" in added.notices[0]
    assert corpus_summary(corpus).originals == {"aa" * 32: 2, "cc" * 32: 2}
    with Store.create(tmp_path / "c", {}) as store:
        store.add_seeds([SeedInput("s", np.zeros((4, 4, 3), np.uint8))])
        models_of(store, "int8.tflite")
        answered(store, ["s"])
        store.add_outcome(outcome(store, "s", np.ones((4, 4, 3), np.uint8)))
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
    ends = (Status.GAVE_UP, Status.SEED_DEVIATES, Status.UNSTABLE, Status.FAILED, Status.NONFINITE)
    inputs = {
        f"s/{number}.png": (image(100 + number), True, status) for number, status in enumerate(ends)
    }
    folder = replay(tmp_path / "r", source, inputs, at=START + timedelta(days=1))
    assert note_replay(corpus, folder) == 2
    assert states(corpus) == {f"s/{number}.png": number != 0 for number in range(5)}
    with pytest.raises(StoreError, match="no replay"):
        note_replay(corpus, source)
    with pytest.raises(StoreError, match="no corpus"):
        note_replay(tmp_path / "nowhere", folder)


def test_a_replay_older_than_the_last_look_changes_nothing(tmp_path: Path, corpus: Path) -> None:
    source = campaign(tmp_path / "a")
    add_to_corpus(corpus, source)
    inputs = {"s/0.png": (image(100), True, Status.GAVE_UP)}
    for days, status in ((2, Status.SEED_DEVIATES), (1, Status.GAVE_UP)):
        inputs = {"s/0.png": (image(100), True, status)}
        at = START + timedelta(days=days)
        note_replay(corpus, replay(tmp_path / f"r{days}", source, inputs, at=at))
    assert states(corpus)["s/0.png"]


def test_the_new_triggers_of_a_replay_are_added_with_the_seeds_they_came_from(
    tmp_path: Path, corpus: Path
) -> None:
    source = campaign(tmp_path / "a", seeds=3, found=(0, 1))
    at = START + timedelta(days=1)
    triggers = replay(
        tmp_path / "r",
        source,
        {
            "s/0.png": (image(100), True, Status.GAVE_UP),
            "s/1.png": (image(101), True, Status.SEED_DEVIATES),
        },
        at=at,
        name="new.tflite",
    )
    added = add_to_corpus(corpus, triggers)
    assert (added.new, added.noted, added.entries) == (1, 1, 1)
    seeds = replay(
        tmp_path / "s",
        source,
        {"s/2.png": (image(2), False, Status.SEED_DEVIATES)},
        at=at,
        kind="seed",
    )
    assert add_to_corpus(corpus, seeds).new == 1
    assert add_to_corpus(corpus, seeds).new == 0
    with Corpus.open(corpus) as there:
        entries = {entry.seed_id: entry for entry in there.entries()}
        came, itself = entries["s/1.png"], entries["s/2.png"]
        assert (there.get_sample(came.seed_sample) == image(1)).all()
        assert came.linf == 100
        assert came.l2 == pytest.approx(4 * 100 / 255)
        assert came.model == "new.tflite"
        assert itself.seed_sample == itself.sample
    again = replay(
        tmp_path / "t",
        triggers,
        {"s/0.png": (image(100), False, Status.SEED_DEVIATES)},
        at=at,
        source_kind="replay",
    )
    assert add_to_corpus(corpus, again).new == 1
    with Corpus.open(corpus) as there:
        found = next(entry for entry in there.entries() if entry.seed_id == "s/0.png")
        assert (there.get_sample(found.seed_sample) == image(0)).all()


def test_a_replay_of_one_corpus_feeds_another(tmp_path: Path, corpus: Path) -> None:
    add_to_corpus(corpus, campaign(tmp_path / "a"))
    folder = replay(
        tmp_path / "r",
        corpus,
        {"s/1.png": (image(101), True, Status.SEED_DEVIATES)},
        at=START + timedelta(days=1),
        source_kind="corpus",
    )
    assert add_to_corpus(tmp_path / "other", folder).new == 1
    with Corpus.open(tmp_path / "other") as there:
        entry = next(there.entries())
        assert (there.get_sample(entry.seed_sample) == image(1)).all()


def test_triggers_whose_seeds_are_missing_are_reported(tmp_path: Path, corpus: Path) -> None:
    folder = replay(
        tmp_path / "r",
        tmp_path / "gone",
        {"s/1.png": (image(101), True, Status.SEED_DEVIATES)},
        at=START,
    )
    added = add_to_corpus(corpus, folder)
    assert added.new == 0
    assert "1 triggers" in added.notices[0]


def test_a_replay_added_before_its_campaign_is_to_be_added_again(
    tmp_path: Path, corpus: Path
) -> None:
    source = campaign(tmp_path / "a", seeds=2, found=(0, 1))
    inputs = {
        "s/0.png": (image(100), True, Status.GAVE_UP),
        "s/1.png": (image(101), True, Status.SEED_DEVIATES),
    }
    folder = replay(tmp_path / "r", source, inputs, at=START + timedelta(days=1))
    (notice,) = add_to_corpus(corpus, folder).notices
    assert f"{folder}: the corpus" in notice
    assert f"{source}, then {folder}" in notice
    assert add_to_corpus(corpus, source).notices == ()
    again = add_to_corpus(corpus, folder)
    assert (again.noted, again.notices) == (2, ())
    assert states(corpus) == {"s/0.png": False, "s/1.png": True}


def test_a_model_that_the_corpus_does_not_know_is_not_removed(tmp_path: Path, corpus: Path) -> None:
    source = campaign(tmp_path / "a")
    add_to_corpus(corpus, source)
    inputs = {"s/0.png": (image(100), True, Status.GAVE_UP)}
    at = START + timedelta(days=1)
    note_replay(corpus, replay(tmp_path / "r", source, inputs, at=at), model="half")
    with pytest.raises(UsageError, match="model 'nope'"):
        remove_from_corpus(corpus, model="nope", dry_run=True)
    assert remove_from_corpus(corpus, model="half").entries == 0
    assert remove_from_corpus(corpus, model="int8.tflite").entries == 2
    with pytest.raises(UsageError, match="knows none"):
        remove_from_corpus(corpus, model="int8.tflite")


def test_the_figures_of_a_corpus(tmp_path: Path, corpus: Path) -> None:
    source = campaign(tmp_path / "a", seeds=4, found=range(4))
    add_to_corpus(corpus, source)
    add_to_corpus(corpus, campaign(tmp_path / "b", name="fp16.tflite"), model="half")
    inputs = {"s/0.png": (image(100), True, Status.GAVE_UP)}
    at = START + timedelta(days=1)
    note_replay(corpus, replay(tmp_path / "r", source, inputs, at=at), model="half")
    figures = corpus_summary(corpus)
    assert (figures.entries, figures.seeds, figures.campaigns, figures.sightings) == (4, 4, 2, 6)
    assert (figures.shape, figures.classes, figures.per_pair, figures.near) == ((4, 4, 1), 3, 3, 0)
    assert figures.models == {"int8.tflite": 4, "half": 2}
    assert [tuple(pair) for pair in figures.pairs] == [(0, 1, 4)]
    assert [
        (one.model, one.device, one.deviating, one.agreeing, one.unseen, one.looked_at)
        for one in figures.targets
    ] == [("half", "pi", 1, 1, 2, at), ("int8.tflite", "pi", 4, 0, 0, START)]
    assert figures.found_first == figures.found_last == START
    samples = [one.stat().st_size for one in corpus.glob("samples/*/*")]
    assert len(samples) == 8
    assert figures.size == sum(samples) + (corpus / "corpus.sqlite").stat().st_size
    told = figures.to_json()
    assert told["targets"][0]["looked_at"] == at.isoformat()
    assert told["pairs"] == [{"original_label": 0, "deployed_label": 1, "entries": 4}]
    assert remove_from_corpus(corpus, pair=(0, 1)).entries == 4
    empty = corpus_summary(corpus)
    assert (empty.entries, empty.pairs, empty.targets, empty.found_last) == (0, (), (), None)
