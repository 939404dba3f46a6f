"""What is put into a campaign folder comes back from it, after closing too."""

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pytest
from object_stores import samples_in_folder

from edgeflare.campaign.status import queries_before
from edgeflare.errors import StoreError
from edgeflare.store import (
    DeviceRecord,
    OutcomeCounts,
    OutcomeRecord,
    ReplayRecord,
    SeedAnswer,
    SeedInput,
    Skipped,
    Store,
)
from edgeflare.store.state import FaultThreshold, StoredFault
from edgeflare.types import Decision, FrontPoint, Status

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
        round_trips=13,
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
        front=(FrontPoint(3, 1e-10, 2.5, 40), FrontPoint(17, 2e-10, 1.25, 11)),
        mutations=({"operator": "gaussian-noise", "params": {"seed": 1 << 60, "sigma": 0.5}},),
        detail="confirmed twice",
        confirmed=2,
        replica="pi 2",
        device_name="pi 2",
        finished_at=datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc),
    )
    return replace(outcome, **changes)


def same(one, other):
    arrays = ("original", "deployed")
    for name in arrays:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
    empty = dict.fromkeys(arrays)
    return replace(one, **empty) == replace(other, **empty)


@samples_in_folder
def test_the_samples_of_the_seeds_come_in_their_order_and_are_read_when_looked_at(store):
    there = store.seed_count()
    added = [SAMPLE + number for number in (5, 1, 3)]
    digests = store.add_seeds(SeedInput(f"x{n}", sample) for n, sample in enumerate(added))
    samples = store.seed_samples()
    assert len(samples) == there + 3
    for read in (list(samples)[there:], samples[there:], [samples[n] for n in (-3, -2, -1)]):
        assert all(np.array_equal(one, other) for one, other in zip(read, added, strict=True))
    (store.folder / "samples" / digests[1][:2] / f"{digests[1]}.npy").unlink()
    assert np.array_equal(samples[-1], added[2])
    with pytest.raises(StoreError, match="is missing"):
        samples[-2]


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
        assert reopened.finished_seed_ids("pi 2") == {"a"}
        assert reopened.finished_seed_ids() == set()


def test_what_is_not_finite_or_missing_comes_back(store):
    strange = np.array([np.nan, np.inf, -np.inf, 0.0])
    store.add_outcome(full_outcome(store, original=strange, deployed=strange, deployed_margin=None))
    bare = OutcomeRecord("a", Status.EXHAUSTED, 5, search_queries=100)
    store.add_outcome(bare)
    bare_again, read = sorted(store.outcomes(), key=lambda one: one.replica)
    assert np.array_equal(read.deployed, strange, equal_nan=True)
    assert replace(bare_again, environment=None) == bare
    assert bare_again.finished_at.tzinfo is not None


def answer(seed_id, number=0.5, decision=Decision.AGREE):
    return SeedAnswer(seed_id, np.array([number, 1 - number]), np.array([0.5, 0.5]), decision)


def numbered(count):
    return [SeedInput(f"s{n}", SAMPLE, n) for n in range(count)]


def test_seeds_keep_order_label_digest_and_answers(store):
    names = [f"folder/ü {n}.png" for n in range(2)]
    digests = store.add_seeds(
        SeedInput(name, SAMPLE + n, file_sha256=str(n) * 64) for n, name in enumerate(names)
    )
    assert store.add_seeds([]) == []
    store.add_seed_answers([answer(names[1], 0.25, Decision.TIE), answer(names[1], 0.75)])
    store.add_seed_answers([answer(names[1], 0.5)], "pi")
    store.add_seed_answers([])
    seeds = list(store.seeds())
    known = [(seed.id, seed.position, seed.label, seed.file_sha256) for seed in seeds]
    assert known == [
        ("a", 0, 3, None),
        (names[0], 1, None, "0" * 64),
        (names[1], 2, None, "1" * 64),
    ]
    assert [seed.sample for seed in seeds[1:]] == digests
    assert [seed.outputs is None for seed in seeds] == [True, True, False]
    assert seeds[2].outputs.decision is Decision.TIE
    assert seeds[2].outputs.original.tolist() == [0.25, 0.75]
    assert seeds[2].outputs.deployed.tolist() == [0.5, 0.5]
    assert [one.outputs is None for one in store.seeds("pi")] == [True, True, False]


def test_pending_seeds_come_once_and_in_order_while_threads_finish_them(store):
    seeds = numbered(1100)
    store.add_seeds(seeds)
    store.add_seed_answers([answer(seed.id) for seed in seeds])
    mine = [f"s{n}" for n in range(1, 1100, 2)]
    theirs = [f"s{n}" for n in range(0, 1100, 2)]

    def finish(ids):
        for seed_id in ids:
            store.add_outcome(OutcomeRecord(seed_id, Status.EXHAUSTED, 1))

    thread = threading.Thread(target=finish, args=(theirs[::-1],))
    thread.start()
    seen = []
    for seed in store.pending_seeds():
        seen.append(seed)
        if seed.id in mine:
            finish([seed.id])
    thread.join()
    positions = [seed.position for seed in seen]
    assert positions == sorted(set(positions))
    assert {seed.id for seed in seen} >= set(mine)
    assert list(store.pending_seeds()) == []


def test_seeds_are_recorded_and_pending_ones_given_in_a_wanted_order(store):
    names = [f"{number:04}" for number in range(700)]
    order = [names[place] for place in np.random.default_rng(0).permutation(700)]
    inputs = (SeedInput(name, np.full((1, 1, 1), int(name) % 256, np.uint8)) for name in names)
    digests = store.add_seeds(inputs, order)
    assert [one.id for one in store.seeds()] == ["a", *order]
    assert [one.sample for one in store.seeds()][1:] == digests
    scores = np.array([0.5, 0.5])
    store.add_seed_answers([SeedAnswer(name, scores, scores, Decision.TIE) for name in names])
    store.add_outcome(OutcomeRecord(names[3], Status.GAVE_UP, chain_seed=1))
    assert [one.id for one in store.pending_seeds()] == [one for one in order if one != names[3]]
    given = [one.id for one in store.pending_seeds(order=["unknown", *names[::-1]])]
    assert given == [name for name in names[::-1] if name != names[3]]


def test_what_is_iterated_over_is_not_all_in_memory(store):
    scores = np.zeros(1000)
    store.add_seeds(numbered(2000))
    for start in range(0, 2000, 100):
        ids = (f"s{number}" for number in range(start, start + 100))
        store.add_seed_answers([SeedAnswer(one, scores, scores, Decision.AGREE) for one in ids])
    everything = 2000 * 2 * scores.nbytes
    for iterate in (store.seeds, store.pending_seeds):
        tracemalloc.start()
        try:
            assert sum(seed.outputs is not None for seed in iterate()) == 2000
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < everything / 3


def test_what_was_searched_is_counted(store):
    store.add_seeds(numbered(3))
    for seed_id, status, replica, asked, searched in (
        ("a", Status.FOUND, "", {"search_queries": 10, "seed_queries": 1}, True),
        ("s0", Status.SEED_DEVIATES, "", {"seed_queries": 1}, False),
        ("s1", Status.FOUND, "pi", {"search_queries": 5}, True),
        ("s2", Status.GAVE_UP, "pi", {"host_only_queries": 9}, True),
        ("s0", Status.EXHAUSTED, "tv", {}, True),  # couldn't pay its first question
        ("s1", Status.UNSTABLE, "tv", {"confirmation_queries": 1}, False),  # the seed
    ):
        outcome = OutcomeRecord(seed_id, status, 1, replica=replica, **asked)
        assert outcome.searched is searched
        store.add_outcome(outcome)
    assert store.tally() == OutcomeCounts(done=6, found=2, searched=4, queries=15)
    assert store.tally("jetson") == OutcomeCounts(0, 0, 0, 0)


def test_failed_searches_are_removed_and_their_queries_stay_counted(store):
    store.add_seeds([SeedInput("b", SAMPLE), SeedInput("c", SAMPLE)])
    store.state.measuring_queries = {"pi 1": 3, "pi 2": 5}
    for seed_id, status in (("a", Status.FOUND), ("b", Status.FAILED), ("c", Status.FAILED)):
        store.add_outcome(full_outcome(store, seed_id=seed_id, status=status))
    store.remove_failed("pi 2")
    assert store.finished_seed_ids("pi 2") == {"a"}
    assert store.state.measuring_queries == {"pi 1": 3, "pi 2": 5 + 2 * (17 + 2)}
    assert queries_before(store) == {"pi 1": 3, "pi 2": 5 + 3 * (17 + 2)}


def test_replays_come_back_in_order_and_are_kept_once(store):
    trigger = store.put_sample(SAMPLE)
    scores = np.array([np.nan, 0.25])
    replays = [
        ReplayRecord("a", "pi", "jetson", trigger, scores, None, Decision.NONFINITE),
        ReplayRecord("a", "jetson", "pi", trigger, scores, 1, Decision.DEVIATION),
        ReplayRecord("a", "pi", "pi", trigger, scores, 0, Decision.AGREE),
    ]
    for replay in [*replays, replace(replays[0], decision=Decision.TIE)]:
        store.add_replay(replay)
    store.close()
    with Store.open(store.folder) as reopened:
        read = list(reopened.replays())
    # as dicts, since records with arrays can't be compared from Python 3.13 on
    assert [vars(one) | {"deployed": scores} for one in read] == [vars(one) for one in replays]
    for one in read:
        assert np.array_equal(one.deployed, scores, equal_nan=True)


@samples_in_folder
def test_equal_samples_are_one_file_and_others_are_others(store):
    (digest,) = {
        store.put_sample(one) for one in (SAMPLE, SAMPLE.copy(), np.asfortranarray(SAMPLE))
    }
    others = (SAMPLE.reshape(4, 3, 1), SAMPLE.astype(np.float32), SAMPLE + 1)
    assert len({digest, *map(store.put_sample, others)}) == 4
    (file,) = (store.folder / "samples").glob(f"*/{digest}*")
    assert file == store.folder / "samples" / digest[:2] / f"{digest}.npy"
    assert np.array_equal(np.load(file), SAMPLE)


def test_campaign_models_environment_devices_skipped_and_notices(store):
    store.set_campaign({"seed": 2, "budget": {"queries": 500}})
    store.set_models({"sha256": "aa"}, {"sha256": "bb"})
    first = store.environment
    store.add_environment({"numpy": "2.1"})
    store.complete_seeds([Skipped("b.png", "it is damaged")] * 2, [])
    store.add_notice("one")
    store.add_notice("two")
    again = store.add_device({"board": "pi"}, "another name")
    store.close()
    with Store.open(store.folder) as reopened:
        assert reopened.campaign == {"seed": 2, "budget": {"queries": 500}}
        assert reopened.models == {"original": {"sha256": "aa"}, "deployed": {"sha256": "bb"}}
        assert reopened.environment == {"numpy": "2.1"}
        assert list(reopened.environments().values()) == [first, {"numpy": "2.1"}]
        assert reopened.skipped() == [Skipped("b.png", "it is damaged")] * 2
        assert reopened.notices() == ["one", "two"]
        assert reopened.devices() == [DeviceRecord(again, "bench pi", {"board": "pi"})]
        assert reopened.id == store.id
        assert reopened.created_at == store.created_at


def test_facts_are_kept_and_replaced(store):
    assert (store.state.wall_s, store.state.finished) == (None, False)
    device = {"name": "ü", "options": [1, None, 2.5]}
    faults = {"": [StoredFault("w", [FaultThreshold("mean", True, 0.5)], False, None, None, [])]}
    for wall_s, finished in ((1.5, False), (2.0, True)):
        store.state.wall_s, store.state.finished = wall_s, finished
        store.state.devices, store.state.faults = [device], faults
    store.state.partners = None
    store.close()
    with Store.open(store.folder) as reopened:
        assert (reopened.state.wall_s, reopened.state.finished) == (2.0, True)
        assert (reopened.state.devices, reopened.state.faults) == ([device], faults)
        assert reopened.state.partners is None


def test_a_campaign_may_be_given_its_name(tmp_path, database):
    with Store.create(tmp_path / "c", {}, id="0f" * 16, database=database) as store:
        assert store.id == "0f" * 16
    with Store.create(tmp_path / "d", {}) as one, Store.create(tmp_path / "e", {}) as other:
        assert len(one.id) == 32
        assert one.id != other.id


def test_many_threads_add_at_once(store):
    store.add_seeds(numbered(40))
    failures = []

    def add(numbers):
        try:
            for number in numbers:
                trigger = store.put_sample(SAMPLE + number % 5)
                store.add_outcome(full_outcome(store, seed_id=f"s{number}", trigger=trigger))
        except StoreError as error:
            failures.append(error)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, (range(k, 40, 8) for k in range(8))))
    assert failures == []
    assert store.finished_seed_ids("pi 2") == {f"s{n}" for n in range(40)}


@pytest.mark.parametrize("shape", [(28, 28, 1), (2, 3, 3), (1, 1, 1), (64,)])
def test_a_sample_is_read_without_evaluating_its_header(store, monkeypatch, shape):
    """Threads that evaluate Python at once fail at random in CPython 3.11."""
    sample = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    digest = store.put_sample(sample)
    monkeypatch.delattr("numpy.load")
    assert np.array_equal(store.get_sample(digest), sample)
