"""What is put into a campaign folder comes back from it, after closing too."""

import threading
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pytest

from edgeflare.errors import StoreError
from edgeflare.store import Device, OutcomeRecord, SeedRecord, SkippedRecord, Store
from edgeflare.types import Decision, Outputs, Status

SAMPLE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


def full_outcome(store, **changes):
    outcome = OutcomeRecord(
        seed_id="a",
        status=Status.FOUND,
        chain_seed=(1 << 120) + 7,
        seed_queries=1,
        search_queries=17,
        confirmation_queries=2,
        host_only_queries=4,
        seconds=0.1 + 0.2,
        device=store.devices()[0].digest,
        trigger=store.put_sample(SAMPLE),
        original=np.array([0.1, 0.9]),
        deployed=np.array([0.5000000001, 0.4999999999]),
        original_label=1,
        deployed_label=0,
        original_margin=0.8,
        deployed_margin=2e-10,
        l2=1.25,
        linf=11,
        mutations=({"operator": "gaussian-noise", "params": {"seed": 1 << 60, "sigma": 0.5}},),
        detail="confirmed twice",
        confirmed=2,
        finished_at=datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc),
    )
    return replace(outcome, **changes)


def same(one, other):
    arrays = ("original", "deployed")
    for name in arrays:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
    empty = dict.fromkeys(arrays)
    return replace(one, **empty) == replace(other, **empty)


def test_an_outcome_comes_back_whole_after_reopening(store):
    outcome = full_outcome(store)
    store.add_outcome(outcome)
    store.close()
    with Store.open(store.folder) as reopened:
        (read,) = reopened.outcomes()
        assert reopened.environments()[read.environment] == {"numpy": "2.0"}
        assert same(replace(read, environment=None), outcome)
        assert read.original.dtype == np.float64
        assert np.array_equal(reopened.get_sample(read.trigger), SAMPLE)
        assert reopened.finished_seed_ids() == {"a"}


def test_not_a_number_and_infinity_come_back(store):
    strange = np.array([np.nan, np.inf, -np.inf, 0.0])
    store.add_outcome(full_outcome(store, deployed=strange, deployed_margin=None))
    (read,) = store.outcomes()
    assert np.array_equal(read.deployed, strange, equal_nan=True)


def test_an_outcome_without_a_trigger_comes_back(store):
    outcome = OutcomeRecord("a", Status.EXHAUSTED, 5, search_queries=100)
    store.add_outcome(outcome)
    (read,) = store.outcomes()
    assert replace(read, environment=None) == outcome
    assert read.finished_at.tzinfo is not None


def test_seeds_keep_order_label_and_answers(store):
    store.add_seeds([(f"folder/ü {n}.png", SAMPLE + n, None) for n in range(3)])
    outputs = Outputs(np.array([0.25, 0.75]), np.array([0.5, 0.5]), Decision.TIE)
    store.set_seed_outputs("folder/ü 1.png", outputs)
    seeds = list(store.seeds())
    assert [(seed.id, seed.position, seed.label) for seed in seeds] == [
        ("a", 0, 3),
        ("folder/ü 0.png", 1, None),
        ("folder/ü 1.png", 2, None),
        ("folder/ü 2.png", 3, None),
    ]
    assert np.array_equal(store.get_sample(seeds[3].sample), SAMPLE + 2)
    assert isinstance(seeds[0], SeedRecord)
    assert seeds[0].outputs is None
    assert seeds[2].outputs.decision is Decision.TIE
    assert np.array_equal(seeds[2].outputs.original, outputs.original)
    assert np.array_equal(seeds[2].outputs.deployed, outputs.deployed)


def test_more_seeds_than_a_page_come_in_order(store):
    store.add_seeds([(f"s{n}", SAMPLE, n) for n in range(1200)])
    assert [seed.label for seed in store.seeds()] == [3, *range(1200)]


def test_a_seed_of_which_only_one_model_was_asked(store):
    store.set_seed_outputs("a", Outputs(np.array([1.0]), None, Decision.UNDECIDED))
    (seed,) = store.seeds()
    assert seed.outputs.deployed is None


def test_equal_samples_are_one_file_and_others_are_others(store):
    digests = {
        store.put_sample(SAMPLE),
        store.put_sample(SAMPLE.copy()),
        store.put_sample(np.asfortranarray(SAMPLE)),
    }
    assert len(digests) == 1
    different = {
        store.put_sample(SAMPLE.reshape(4, 3, 1)),
        store.put_sample(SAMPLE.astype(np.float32)),
        store.put_sample(SAMPLE + 1),
    }
    assert len(digests | different) == 4
    (digest,) = digests
    files = list((store.folder / "samples").glob(f"*/{digest}*"))
    assert files == [store.folder / "samples" / digest[:2] / f"{digest}.npy"]
    assert np.array_equal(np.load(files[0]), SAMPLE)


def test_campaign_models_environment_devices_skipped_and_notices(store):
    store.set_campaign({"seed": 2, "budget": {"queries": 500}})
    store.set_models({"sha256": "aa"}, {"sha256": "bb"})
    first = store.environment
    store.add_environment({"numpy": "2.1"})
    store.add_skipped("b.png", "it is damaged")
    store.add_skipped("b.png", "it is damaged")
    store.add_notice("one")
    store.add_notice("two")
    again = store.add_device({"board": "pi"}, "another name")
    store.close()
    with Store.open(store.folder) as reopened:
        assert reopened.campaign == {"seed": 2, "budget": {"queries": 500}}
        assert reopened.models == {"original": {"sha256": "aa"}, "deployed": {"sha256": "bb"}}
        assert reopened.environment == {"numpy": "2.1"}
        assert list(reopened.environments().values()) == [first, {"numpy": "2.1"}]
        assert reopened.skipped() == [SkippedRecord("b.png", "it is damaged")] * 2
        assert reopened.notices() == ["one", "two"]
        assert reopened.devices() == [Device(again, "bench pi", {"board": "pi"})]
        assert reopened.id == store.id
        assert reopened.created_at == store.created_at


def test_many_threads_add_at_once(store):
    store.add_seeds([(f"s{n}", SAMPLE, None) for n in range(40)])
    failures = []

    def add(numbers):
        try:
            for number in numbers:
                trigger = store.put_sample(SAMPLE + number % 5)
                store.add_outcome(full_outcome(store, seed_id=f"s{number}", trigger=trigger))
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=add, args=(range(k, 40, 8),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.finished_seed_ids() == {f"s{n}" for n in range(40)}


def test_another_database_by_url(tmp_path):
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    with Store.create(tmp_path / "c", {"seed": 5}, url=url) as store:
        store.add_seed("a", SAMPLE)
        assert [path.name for path in store.folder.iterdir()] == ["samples"]
    with Store.open(tmp_path / "c", url=url) as store:
        assert [seed.id for seed in store.seeds()] == ["a"]
    with pytest.raises(StoreError, match="holds a campaign already"):
        Store.create(tmp_path / "d", {}, url=url)
