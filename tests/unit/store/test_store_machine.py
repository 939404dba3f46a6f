"""The store against plain dictionaries, under any sequence of calls, closings and reopenings."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule
from postgres_server import PostgresServer

from edgeflare.errors import StoreError
from edgeflare.store import (
    CampaignState,
    OutcomeCounts,
    OutcomeRecord,
    ReplayRecord,
    SeedAnswer,
    SeedInput,
    Store,
)
from edgeflare.store import database as store_database
from edgeflare.types import Decision, Status

TEXT = st.characters(codec="utf-8", exclude_characters="\0")
IDS = st.text(TEXT, min_size=1, max_size=12)
REPLICAS = st.sampled_from(["", "pi 1", "pi 2"])
SAMPLES = st.integers(0, 255).map(lambda value: np.full((2, 3, 1), value, np.uint8))
SCORES = st.lists(st.floats(), min_size=1, max_size=4).map(np.array)
BOTH_SCORES = st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=4).map(
    lambda pairs: tuple(map(np.array, zip(*pairs, strict=True)))
)
STATUSES = st.sampled_from(list(Status))
DECISIONS = st.sampled_from(list(Decision))
LABELS = st.none() | st.integers(0, 9)
JSON_OBJECTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)
SEEDS = st.builds(SeedInput, IDS, SAMPLES, LABELS, st.none() | st.just("5" * 64))


def same(one, other, *arrays):
    """Whether two records are equal, the named arrays by value, NaN included."""
    nothing = dict.fromkeys(arrays)
    return replace(one, **nothing) == replace(other, **nothing) and all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in arrays
    )


class StoreMachine(RuleBasedStateMachine):
    """Each rule does to the model what it does to the store."""

    seed_ids = Bundle("seed_ids")
    server: PostgresServer | None = None

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(store_database, "BATCH", 2)
        self.root = Path(tempfile.mkdtemp())
        database = None if self.server is None else self.server.new_database()
        self.store = Store.create(self.root / "campaign", {}, database=database)
        self.seeds = {}
        self.answers = {}
        self.outcomes = {}
        self.replays = {}
        self.notices = []
        self.origins = {}
        self.config = {}
        self.iterating = None

    def teardown(self):
        self.store.close()
        self.patch.undo()
        shutil.rmtree(self.root)

    @rule(target=seed_ids, seeds=st.lists(SEEDS, max_size=5))
    def add_seeds(self, seeds):
        ids = [seed.id for seed in seeds]
        if len(set(ids)) < len(ids) or set(ids) & set(self.seeds):
            with pytest.raises(StoreError):
                self.store.add_seeds(seeds)
            return multiple()
        digests = self.store.add_seeds(iter(seeds))
        assert len(digests) == len(seeds)
        self.seeds.update(zip(ids, seeds, strict=True))
        return multiple(*ids)

    @rule(
        ids=st.lists(seed_ids, min_size=1, max_size=4),
        replica=REPLICAS,
        both=BOTH_SCORES,
        decision=DECISIONS,
    )
    def add_answers(self, ids, replica, both, decision):
        answers = [SeedAnswer(seed_id, *both, decision) for seed_id in ids]
        self.store.add_seed_answers(answers, replica)
        for answer in answers:
            self.answers.setdefault((replica, answer.seed_id), answer)

    @rule(
        seed_id=seed_ids,
        replica=REPLICAS,
        status=STATUSES,
        number=st.integers(0, 1 << 128),
        queries=st.tuples(st.integers(0, 2), st.integers(0, 2)),
        sample=SAMPLES,
        scores=SCORES,
        mutations=st.lists(JSON_OBJECTS, max_size=2).map(tuple),
    )
    def add_outcome(self, seed_id, replica, status, number, queries, sample, scores, mutations):
        outcome = OutcomeRecord(
            seed_id,
            status,
            number,
            search_queries=queries[0],
            host_only_queries=queries[1],
            trigger=self.store.put_sample(sample),
            original=scores,
            mutations=mutations,
            replica=replica,
            device_name=replica,
        )
        if (replica, seed_id) in self.outcomes:
            with pytest.raises(StoreError):
                self.store.add_outcome(outcome)
        else:
            self.store.add_outcome(outcome)
            self.outcomes[replica, seed_id] = (outcome, sample)

    @rule(seed_id=seed_ids, replica=REPLICAS, on_device=REPLICAS, scores=SCORES, label=LABELS)
    def add_replay(self, seed_id, replica, on_device, scores, label):
        trigger = self.store.put_sample(self.seeds[seed_id].sample)
        replay = ReplayRecord(
            seed_id, replica, on_device, trigger, scores, label, Decision.DEVIATION
        )
        self.store.add_replay(replay)
        self.replays.setdefault((seed_id, replica, on_device), replay)

    @rule(replica=REPLICAS)
    def begin_iterating(self, replica):
        self.iterating = (replica, self.store.pending_seeds(replica))
        self.last = -1
        self.must_come = set(self.pending(replica))

    @rule()
    def iterate(self):
        if self.iterating is None:
            return
        replica, pending = self.iterating
        seed = next(pending, None)
        missed = self.must_come & set(self.pending(replica))
        position = len(self.seeds) if seed is None else seed.position
        order = list(self.seeds)
        assert not missed & set(order[self.last + 1 : position])
        assert position > self.last
        if seed is None:
            self.iterating = None
        else:
            assert (replica, seed.id) in self.answers
            self.last = position

    @rule(text=st.text(TEXT, max_size=9))
    def add_notice(self, text):
        self.notices.append(text)
        self.store.add_notice(text)

    @rule(key=IDS, value=st.text(TEXT, max_size=9))
    def change_fact(self, key, value):
        self.origins[key] = value
        self.store.state.change(CampaignState.seed_origins, lambda before: {**before, key: value})

    @rule(config=JSON_OBJECTS)
    def set_campaign(self, config):
        self.config = config
        self.store.set_campaign(config)

    @rule()
    def reopen(self):
        self.store.close()
        self.store = Store.open(self.root / "campaign")
        self.iterating = None

    def pending(self, replica):
        return [
            seed_id
            for seed_id in self.seeds
            if (replica, seed_id) in self.answers and (replica, seed_id) not in self.outcomes
        ]

    @invariant()
    def agrees_on_what_is_short(self):
        assert self.store.campaign == self.config
        assert self.store.notices() == self.notices
        assert self.store.state.seed_origins == self.origins

    @invariant()
    def agrees_on_seeds(self):
        assert self.store.seed_ids() == set(self.seeds)
        assert self.store.seed_count() == len(self.seeds)
        first = next(iter(self.answers), ("", ""))[0]
        for asked, replica in (("pi 1", "pi 1"), (None, first)):
            seeds = list(self.store.seeds(asked))
            assert [seed.id for seed in seeds] == list(self.seeds)
            assert [seed.position for seed in seeds] == list(range(len(seeds)))
            for seed in seeds:
                given = self.seeds[seed.id]
                assert (seed.label, seed.file_sha256) == (given.label, given.file_sha256)
                assert np.array_equal(self.store.get_sample(seed.sample), given.sample)
                self.check_outputs(seed.outputs, self.answers.get((replica, seed.id)))

    def check_outputs(self, outputs, answer):
        assert (outputs is None) == (answer is None)
        if answer is not None:
            assert outputs.decision is answer.decision
            assert np.array_equal(outputs.original, answer.original, equal_nan=True)
            assert np.array_equal(outputs.deployed, answer.deployed, equal_nan=True)

    @invariant()
    def agrees_on_outcomes(self):
        outcomes = list(self.store.outcomes())
        assert [(one.replica, one.seed_id) for one in outcomes] == list(self.outcomes)
        for outcome in outcomes:
            expected, sample = self.outcomes[outcome.replica, outcome.seed_id]
            assert same(outcome, expected, "original")
            assert np.array_equal(self.store.get_sample(outcome.trigger), sample)
        assert self.store.tally() == self.tally(outcomes)
        for replica in ("", "pi 1"):
            mine = [one for one in outcomes if one.replica == replica]
            assert self.store.tally(replica) == self.tally(mine)
            assert self.store.finished_seed_ids(replica) == {one.seed_id for one in mine}
            pending = [seed.id for seed in self.store.pending_seeds(replica)]
            assert pending == self.pending(replica)

    @invariant()
    def agrees_on_replays(self):
        replays = list(self.store.replays())
        assert len(replays) == len(self.replays)
        for replay, expected in zip(replays, self.replays.values(), strict=True):
            assert same(replay, expected, "deployed")

    def tally(self, outcomes):
        return OutcomeCounts(
            done=len(outcomes),
            found=sum(one.status is Status.FOUND for one in outcomes),
            searched=sum(one.searched for one in outcomes),
            queries=sum(one.search_queries for one in outcomes),
        )


StoreMachine.TestCase.settings = settings(
    max_examples=8,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestStoreMachine = StoreMachine.TestCase


class StoreMachineOnPostgres(StoreMachine):
    """The same on a server."""


StoreMachineOnPostgres.TestCase.settings = settings(StoreMachine.TestCase.settings, max_examples=4)


@pytest.mark.extended
class TestStoreMachineOnPostgres(StoreMachineOnPostgres.TestCase):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_server, monkeypatch):
        monkeypatch.setattr(StoreMachineOnPostgres, "server", postgres_server)
