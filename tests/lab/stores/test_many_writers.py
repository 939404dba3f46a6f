"""Many processes add to one campaign at once: nothing is lost, and nothing there twice."""

from collections import Counter

import numpy as np
import pytest
from postgres_server import start_program

from edgeflare.store import SeedInput, Store

pytestmark = pytest.mark.extended

SAMPLE = np.zeros((2, 2, 1), np.uint8)
WRITERS = 10

ADD = """
import sys
from pathlib import Path

from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import Status

writer, writers = int(sys.argv[2]), int(sys.argv[3])
with Store.open(Path(sys.argv[1])) as store:
    ids = [seed.id for seed in store.seeds()]
    start = len(ids) * writer // writers
    for seed in ids[start:] + ids[:start]:
        store.add_outcome(OutcomeRecord(seed, Status.EXHAUSTED, writer, replica=f"pi {writer}"))
"""

ADD_THE_SAME = """
import sys
from pathlib import Path

import numpy as np

from edgeflare.campaign.status import add_queries
from edgeflare.store import (
    CampaignState, OutcomeRecord, ReplayRecord, SeedAnswer, Store, SurveyedSeed, SurveyRecord
)
from edgeflare.types import Decision, Status

writer = int(sys.argv[2])
scores = np.array([float(writer), 0.5])
with Store.open(Path(sys.argv[1])) as store:
    ids = sorted(store.seed_ids(), reverse=writer % 2 == 0)
    sample = store.put_sample(np.full((2, 2, 1), 7, np.uint8))
    for turn in range(5):
        store.add_seed_answers([SeedAnswer(one, scores, scores, Decision.AGREE) for one in ids])
        add_queries(store, CampaignState.seed_queries, {"pi": 1, f"pi {writer}": 2})
        device = store.add_device({"board": f"pi {turn}"}, f"pi {turn}")
        store.add_environment({"numpy": f"{turn}"})
        added = [
            store.add_outcome(OutcomeRecord(one, Status.EXHAUSTED, writer), keep_first=True)
            for one in ids
        ]
        print(sum(added))
        for one in ids:
            store.add_replay(ReplayRecord(one, "", "pi", sample, scores, 0, Decision.AGREE))
        store.add_survey(
            [SurveyRecord(one, 0, "noise", 1, {}, sample, scores, scores, Decision.AGREE) for one in ids],
            [SurveyedSeed(one, 1) for one in ids],
            keep_first=True,
        )
"""


def finish(processes):
    said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return said


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_ten_writers_at_once_lose_nothing(tmp_path, database_url, count):
    with Store.create(tmp_path / "c", {}, database=database_url) as store:
        store.add_seeds(SeedInput(f"s{n}", SAMPLE) for n in range(count))
        finish([start_program(ADD, store.folder, n, WRITERS) for n in range(WRITERS)])
        rows = store.columns.outcomes()
        assert len(rows.position) == WRITERS * count
        for n in range(WRITERS):
            own = rows.replica.among(f"pi {n}")
            assert own.sum() == len(store.finished_seed_ids(f"pi {n}")) == count


def test_what_several_add_at_once_is_there_once(tmp_path, database):
    with Store.create(tmp_path / "c", {}, database=database) as store:
        store.add_seeds(SeedInput(f"s{n}", SAMPLE) for n in range(20))
        said = finish([start_program(ADD_THE_SAME, store.folder, n) for n in range(4)])
        assert sum(int(line) for text in said for line in text.split()) == 20
        assert Counter(one.seed_id for one in store.outcomes()) == dict.fromkeys(
            store.seed_ids(), 1
        )
        assert len(list(store.replays())) == len(list(store.survey())) == 20
        assert len(list(store.surveyed_seeds())) == 20
        assert all(seed.outputs is not None for seed in store.seeds())
        assert store.state.seed_queries == {"pi": 20, **{f"pi {n}": 10 for n in range(4)}}
        assert len(store.devices()) == len(store.environments()) == 5
