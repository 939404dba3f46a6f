"""A trigger corpus against plain dictionaries, under any sequence of calls and reopenings."""

import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from corpus_records import FORM, START, add, device_answer, digest, trigger_record
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from edgeflare.store import database as store_database
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.corpus.records import Added, TriggerRecord

MODELS = ("int8", "fp16")
SIGHTINGS = st.builds(
    lambda value, seed, pair, l2, margin, model: trigger_record(
        value,
        seed=seed,
        pair=pair,
        l2=l2 / 4,
        original_margin=margin / 8,
        model=model,
        campaign=model[0] * 32,
    ),
    st.integers(0, 40),
    st.integers(0, 1),
    st.sampled_from([(4, 9), (9, 4)]),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(MODELS),
)


@dataclass
class Known:
    """An entry as plain Python has it."""

    found: TriggerRecord
    number: int
    models: set = field(default_factory=set)
    answers: dict = field(default_factory=dict)

    def note_answer(self, model, when, deviated):
        if model not in self.answers or self.answers[model][0] < when:
            self.answers[model] = (when, deviated)


class CorpusMachine(RuleBasedStateMachine):
    """Each rule does to the model what it does to the corpus."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(store_database, "BATCH", 2)
        self.root = Path(tempfile.mkdtemp())
        self.corpus = Corpus.open(self.root / "corpus", create=True)
        self.entries = {}
        self.at_most = 3
        self.numbers = 0
        self.minutes = 0

    def teardown(self):
        self.corpus.close()
        self.patch.undo()
        shutil.rmtree(self.root)

    def group(self, one):
        def key(of):
            return (of.seed_sample, of.original_label, of.deployed_label)

        there = [known for known in self.entries.values() if key(known.found) == key(one)]
        return sorted(there, key=lambda known: known.number)

    def add_one(self, one):
        """Return whether it was known; forget whoever must go for it."""
        if one.sample not in self.entries:
            self.numbers += 1
            fresh = Known(one, self.numbers)
            group = [*self.group(one), fresh]
            while len(group) > self.at_most:
                first = group[0]
                nearest = min(group, key=lambda known: (known.found.l2, known.number))
                severest = min(group, key=lambda known: (-severity(known.found), known.number))
                ranked = [first, nearest, severest, *group]
                order = [known for n, known in enumerate(ranked) if known not in ranked[:n]]
                going = order[-1]
                group.remove(going)
                self.entries.pop(going.found.sample, None)
            if fresh not in group:
                self.numbers -= 1
                return False
            self.entries[one.sample] = fresh
            known = False
        else:
            known = True
        entry = self.entries[one.sample]
        entry.models.add(one.model)
        entry.note_answer(one.model, one.found_at, True)
        return known

    @rule(found=st.lists(SIGHTINGS, max_size=6))
    def add(self, found):
        before = set(self.entries)
        numbers = self.numbers
        known = sum(self.add_one(one) for one in found)
        new = sum(entry.number > numbers for entry in self.entries.values())
        replaced = len(before - set(self.entries))
        replaced += sum(self.entries[one].number > numbers for one in before & set(self.entries))
        assert add(self.corpus, *found) == Added(new, replaced, known, len(found) - known - new)

    @rule(value=st.integers(0, 40), model=st.sampled_from(MODELS), deviated=st.booleans())
    def note(self, value, model, deviated):
        self.minutes += 100
        when = START + timedelta(minutes=self.minutes)
        known = self.entries.get(digest(value))
        seen = self.corpus.add_answers(
            [device_answer(value, deviated=deviated, at=when, model=model)]
        )
        assert seen == (known is not None)
        if known is not None:
            known.note_answer(model, when, deviated)

    @rule(at_most=st.integers(1, 5))
    def set_per_pair(self, at_most):
        self.at_most = at_most
        self.corpus.set_per_pair(at_most)

    @rule(pair=st.sampled_from([(4, 9), (9, 4)]), dry=st.booleans())
    def remove_pair(self, pair, dry):
        going = {
            name
            for name, known in self.entries.items()
            if (known.found.original_label, known.found.deployed_label) == pair
        }
        assert self.corpus.remove(pair=pair, dry_run=dry).entries == len(going)
        if not dry:
            self.entries = {name: one for name, one in self.entries.items() if name not in going}

    @rule(model=st.sampled_from(MODELS))
    def remove_model(self, model):
        going = {name for name, known in self.entries.items() if known.models == {model}}
        assert self.corpus.remove(model=model).entries == len(going)
        self.entries = {name: one for name, one in self.entries.items() if name not in going}
        for known in self.entries.values():
            known.models.discard(model)
            known.answers.pop(model, None)

    @rule()
    def reopen(self):
        self.corpus.close()
        self.corpus = Corpus.open(self.root / "corpus")

    @invariant()
    def agrees_on_entries(self):
        expected = sorted(self.entries.values(), key=lambda known: known.number)
        entries = list(self.corpus.entries())
        assert [entry.sample for entry in entries] == [known.found.sample for known in expected]
        for entry, known in zip(entries, expected, strict=True):
            assert {name: getattr(entry, name) for name in vars(known.found)} == vars(known.found)
        assert len(self.corpus) == len(expected)
        models = {model for known in expected for model in known.models}
        assert self.corpus.models() == {
            model: sum(model in known.models for known in expected) for model in models
        }

    @invariant()
    def agrees_on_inputs(self):
        for target in (None, "int8/pi", "fp16/pi", "other/pi"):
            given = {one.sample: one.deviated for one in self.corpus.inputs(target)}
            assert given == {
                name: self.deviated(known, target) for name, known in self.entries.items()
            }

    @invariant()
    def has_the_files_of_its_entries_and_no_others(self):
        used = {
            name
            for known in self.entries.values()
            for name in (known.found.sample, known.found.seed_sample)
        }
        there = {path.stem for path in (self.root / "corpus" / "samples").glob("*/*")}
        assert there == used
        assert self.corpus.form in (FORM, None)

    def deviated(self, known, target):
        answers = [
            answer for model, answer in known.answers.items() if target in (None, f"{model}/pi")
        ]
        return max(answers, key=lambda answer: answer[0])[1] if answers else True


def severity(found):
    return min(found.original_margin, found.deployed_margin)


CorpusMachine.TestCase.settings = settings(
    max_examples=12,
    stateful_step_count=14,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestCorpus = CorpusMachine.TestCase
