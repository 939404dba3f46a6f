"""What a replay takes from a campaign, from another replay, and from a corpus."""

from pathlib import Path

import numpy as np
import pytest
from corpus_records import add, trigger_record
from stores import ended, replay_store, replicated_campaign, store_of

from edgeflare.campaign.replay.inputs import replay_source
from edgeflare.errors import StoreError
from edgeflare.store import Store
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.records import ReplayInput, ReplayResult
from edgeflare.types import Decision, Status

AGREE = (np.array([0.75, 0.25]), np.array([0.7, 0.3]))
DIFFER = (np.array([0.75, 0.25]), np.array([0.3, 0.7]))


def image(value: int) -> np.ndarray:
    return np.full((4, 4, 1), value, np.uint8)


def campaign(folder: Path) -> Path:
    """Five seeds: a trigger, a seed that deviates, one that gave up, one that ties and one not answered."""
    answers = [AGREE, (*DIFFER, Decision.DEVIATION), AGREE, (*AGREE, Decision.TIE), None]
    about = {"label": lambda number: 1, "answers": answers.__getitem__}
    names = [f"s{number}" for number in range(5)]
    devices = {"pi": {"board": "pi"}}
    with store_of(folder, seeds=names, sample=image, devices=devices, **about) as store:
        for name, status, sample, l2 in (
            ("s1", Status.SEED_DEVIATES, image(1), 0.0),
            ("s0", Status.FOUND, image(100), 2.5),
            ("s2", Status.GAVE_UP, None, None),
        ):
            pair = {"original_label": 0, "deployed_label": 1, "l2": l2}
            ended(store, name, status, trigger=sample, device="pi", **pair)
    return folder


def inputs_of(folder: Path) -> list[ReplayInput]:
    with replay_source(folder) as source:
        return [one for one, _ in source.selected({one.id for one in source.inputs()})]


def test_triggers_come_before_the_seeds_on_which_the_models_agreed(tmp_path: Path) -> None:
    inputs = inputs_of(campaign(tmp_path / "campaign"))
    assert [(one.id, one.kind, one.deviated) for one in inputs] == [
        ("trigger:s0", "trigger", True),
        ("trigger:s1", "trigger", True),
        ("seed:s0", "seed", False),
        ("seed:s2", "seed", False),
        ("seed:s3", "seed", False),
    ]


def test_an_input_has_its_sample_its_seed_and_what_was_said_of_it(tmp_path: Path) -> None:
    with replay_source(campaign(tmp_path / "campaign")) as source:
        ids = {one.id for one in source.inputs()}
        (trigger, changed), _, (seed, unchanged), *_ = source.selected(ids)
    assert np.array_equal(changed, image(100))
    assert (trigger.seed_id, trigger.label, trigger.l2) == ("s0", 1, 2.5)
    assert (trigger.original_label, trigger.deployed_label) == (0, 1)
    assert np.array_equal(unchanged, image(0))
    assert (seed.original_label, seed.deployed_label, seed.l2) == (0, 0, 0.0)


def test_samples_of_inputs_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "campaign")
    with Store.open(folder) as store:
        lost = next(one.trigger for one in store.outcomes() if one.seed_id == "s0")
    (path,) = (folder / "samples").rglob(f"*{(lost or '')[2:]}*")
    path.unlink()
    with replay_source(folder) as source:
        assert len(list(source.inputs())) == 5
        ((wanted, _),) = source.selected({"trigger:s1"})
        with pytest.raises(StoreError):
            list(source.selected({one.id for one in source.inputs()}))
    assert wanted.id == "trigger:s1"


def test_a_trigger_that_several_devices_found_comes_once_with_what_each_said(tmp_path) -> None:
    replicated_campaign(tmp_path / "fleet").close()
    triggers = [one for one in inputs_of(tmp_path / "fleet") if one.kind == "trigger"]
    assert [one.id for one in triggers] == [f"trigger:s/{n}.png@pi #1" for n in range(3)]
    assert triggers[0].looks == {"pi #1": ReplayResult(True, 1), "jetson": ReplayResult(True, 1)}
    assert triggers[2].looks == {"pi #1": ReplayResult(True, 1), "jetson": ReplayResult(True, 0)}


def test_every_device_of_a_fleet_names_what_it_found(tmp_path: Path) -> None:
    replicated_campaign(tmp_path / "fleet").close()
    with replay_source(tmp_path / "fleet") as source:
        triggers = [one for one in source.inputs() if one.kind == "trigger"]
        on_jetson = [one.id for one in triggers if one.replica == "jetson"]
        selected = [one.id for one, _ in source.selected(on_jetson)]
    assert len(triggers) == 5
    assert (triggers[-1].id, triggers[-1].seed_id) == ("trigger:s/1.png@jetson", "s/1.png")
    assert selected == ["trigger:s/0.png@jetson", "trigger:s/1.png@jetson"]


def test_a_replay_hands_its_inputs_on_as_it_found_them(tmp_path: Path) -> None:
    replay_store(tmp_path / "replay").close()
    deviated = {one.id: one.deviated for one in inputs_of(tmp_path / "replay")}
    assert deviated == {
        "trigger:a": False, "trigger:b": True, "trigger:c": False, "trigger:d": True,
        "trigger:e": True, "trigger:f": True, "seed:g": True, "seed:h": False,
    }  # fmt: skip


def test_what_did_not_answer_steadily_leaves_an_input_as_it_was(tmp_path: Path) -> None:
    replay_store(tmp_path / "replay").close()
    of = {one.id: one for one in inputs_of(tmp_path / "replay")}
    for name in ("trigger:d", "trigger:e", "trigger:f"):
        assert (of[name].original_label, of[name].deployed_label, of[name].looks) == (0, 1, {})


def test_what_was_said_last_comes_last(tmp_path: Path) -> None:
    looks = {"pi": ReplayResult(True, 1), "jetson": ReplayResult(True, 1)}
    replay_store(tmp_path / "replay", looks=looks).close()
    first = inputs_of(tmp_path / "replay")[0]
    assert list(first.looks.items()) == [
        ("jetson", ReplayResult(True, 1)),
        ("pi", ReplayResult(False, 0)),
    ]


def test_an_entry_removed_from_a_corpus_meanwhile_is_left_out(tmp_path: Path) -> None:
    with Corpus.open(tmp_path / "corpus", create=True) as corpus:
        add(corpus, *(trigger_record(n, pair=(4, n % 10), seed=n) for n in range(5)))
        with replay_source(corpus.folder) as source:
            reading = source.selected({one.id for one in source.inputs()})
            assert next(reading)[0].id == "000001/s/0.png"
            corpus.remove(pair=(4, 2))
            assert [one.id[5] for one, _ in reading] == ["2", "4", "5"]


def test_what_a_replay_has_not_asked_about_stays_as_it_was(tmp_path: Path) -> None:
    replay_store(tmp_path / "replay", done=1).close()
    first, second, *_ = inputs_of(tmp_path / "replay")
    assert (first.deviated, first.deployed_label, first.looks) == (
        False,
        0,
        {"pi": ReplayResult(False, 0)},
    )
    assert (second.deviated, second.deployed_label, second.looks) == (True, 1, {})


def test_a_replay_reports_what_each_device_said(tmp_path: Path) -> None:
    replay_store(tmp_path / "replay", replicas=("pi", "jetson")).close()
    first = inputs_of(tmp_path / "replay")[1]
    assert first.looks == {"pi": ReplayResult(True, 1), "jetson": ReplayResult(True, 1)}


def test_a_folder_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="campaign's folder"), replay_source(tmp_path):
        pass
