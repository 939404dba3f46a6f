"""The store against plain dictionaries, under any sequence of calls, closings and reopenings."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from edgeflare.errors import StoreError
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import Decision, Outputs, Status

IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
SAMPLES = st.integers(0, 255).map(lambda value: np.full((2, 3, 1), value, np.uint8))
SCORES = st.lists(st.floats(), min_size=1, max_size=4).map(np.array)
STATUSES = st.sampled_from(list(Status))
JSON_OBJECTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3)


class StoreMachine(RuleBasedStateMachine):
    """Each rule does to the model what it does to the store."""

    waiting = Bundle("waiting")

    def __init__(self):
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.store = Store.create(self.root / "campaign", {})
        self.seeds = {}
        self.answers = {}
        self.outcomes = {}
        self.notices = []
        self.config = {}

    def teardown(self):
        self.store.close()
        shutil.rmtree(self.root)

    @rule(target=waiting, seed_id=IDS, sample=SAMPLES, label=st.none() | st.integers(0, 9))
    def add_seed(self, seed_id, sample, label):
        if seed_id in self.seeds:
            with pytest.raises(StoreError):
                self.store.add_seed(seed_id, sample, label)
            return multiple()
        self.store.add_seed(seed_id, sample, label)
        self.seeds[seed_id] = (sample, label)
        return seed_id

    @rule(seed_id=waiting, original=SCORES, deployed=SCORES, decision=st.sampled_from(Decision))
    def set_outputs(self, seed_id, original, deployed, decision):
        self.answers[seed_id] = Outputs(original, deployed, decision)
        self.store.set_seed_outputs(seed_id, self.answers[seed_id])

    @rule(
        seed_id=consumes(waiting),
        status=STATUSES,
        number=st.integers(0, 1 << 128),
        sample=SAMPLES,
        scores=SCORES,
        mutations=st.lists(JSON_OBJECTS, max_size=2).map(tuple),
    )
    def add_outcome(self, seed_id, status, number, sample, scores, mutations):
        trigger = self.store.put_sample(sample)
        outcome = OutcomeRecord(
            seed_id, status, number, trigger=trigger, original=scores, mutations=mutations
        )
        self.store.add_outcome(outcome)
        self.outcomes[seed_id] = (outcome, sample)

    @rule(data=st.data())
    def add_an_outcome_twice(self, data):
        if self.outcomes:
            seed_id = data.draw(st.sampled_from(sorted(self.outcomes)))
            with pytest.raises(StoreError):
                self.store.add_outcome(OutcomeRecord(seed_id, Status.TIMEOUT, 0))

    @rule(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9))
    def add_notice(self, text):
        self.notices.append(text)
        self.store.add_notice(text)

    @rule(config=JSON_OBJECTS)
    def set_campaign(self, config):
        self.config = config
        self.store.set_campaign(config)

    @rule()
    def reopen(self):
        self.store.close()
        self.store = Store.open(self.root / "campaign")

    @invariant()
    def agrees(self):
        assert self.store.campaign == self.config
        assert self.store.notices() == self.notices
        assert self.store.finished_seed_ids() == set(self.outcomes)
        seeds = list(self.store.seeds())
        assert [(seed.id, seed.label) for seed in seeds] == [
            (seed_id, label) for seed_id, (_, label) in self.seeds.items()
        ]
        for seed in seeds:
            assert np.array_equal(self.store.get_sample(seed.sample), self.seeds[seed.id][0])
            expected = self.answers.get(seed.id)
            assert (seed.outputs is None) == (expected is None)
            if expected is not None:
                assert seed.outputs.decision is expected.decision
                assert np.array_equal(seed.outputs.original, expected.original, equal_nan=True)
                assert np.array_equal(seed.outputs.deployed, expected.deployed, equal_nan=True)
        outcomes = list(self.store.outcomes())
        assert [outcome.seed_id for outcome in outcomes] == list(self.outcomes)
        for outcome in outcomes:
            expected, sample = self.outcomes[outcome.seed_id]
            assert np.array_equal(outcome.original, expected.original, equal_nan=True)
            assert replace(outcome, original=None) == replace(expected, original=None)
            assert np.array_equal(self.store.get_sample(outcome.trigger), sample)


StoreMachine.TestCase.settings = settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestStoreMachine = StoreMachine.TestCase
