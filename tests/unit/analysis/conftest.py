"""A campaign with one outcome of every kind."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgeflare.distances import l2, linf
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, FrontPoint, Status

_QUIET = {"seed_queries": 1, "seconds": 9.0}


def _digit(value: int) -> np.ndarray:
    image = np.zeros((28, 28, 1), np.uint8)
    image[6:22, 10 + value : 14 + value] = 200
    return image


@pytest.fixture
def finished(tmp_path: Path) -> Iterator[Store]:
    """Ten seeds: four found (10, 20, 30, 100 search queries), one of every other status, one to do."""
    with Store.create(tmp_path / "campaign", {"seed": 4}, environment={"numpy": "2"}) as store:
        ids = [f"digits/{n}.png" for n in range(10)]
        store.add_seeds(SeedInput(name, _digit(n % 4), n) for n, name in enumerate(ids))
        store.set_models({"sha256": "aa"}, {"sha256": "bb"})
        device = store.add_device({"board": "pi"}, "bench pi")
        store.add_skipped("broken.png", "it is damaged")
        scores = (np.array([0.75, 0.25]), np.array([0.5, 0.5]))
        store.add_seed_answers([SeedAnswer(ids[0], *scores, Decision.TIE)])
        found = [(10, 1, 0, 5), (20, 1, 0, 9), (30, 0, 1, 60), (100, 1, 0, 254)]
        for number, (queries, original, deployed, change) in enumerate(found):
            seed = _digit(number)
            trigger = seed.copy()
            trigger[0, 0] += change
            trigger[6, 10 + number] -= change // 5
            store.add_outcome(
                OutcomeRecord(
                    ids[number],
                    Status.FOUND,
                    number,
                    seed_queries=1,
                    search_queries=queries,
                    confirmation_queries=2,
                    host_only_queries=3,
                    round_trips=queries - 1,
                    front=(FrontPoint(queries, 0.5, l2(seed, trigger), linf(seed, trigger)),),
                    seconds=float(number + 1),
                    device=device,
                    device_name="bench pi",
                    trigger=store.put_sample(trigger),
                    original=np.eye(2)[original] * 0.5 + 0.25,
                    deployed=np.eye(2)[deployed],
                    original_label=original,
                    deployed_label=deployed,
                    original_margin=0.5,
                    deployed_margin=1.0,
                    l2=l2(seed, trigger),
                    linf=linf(seed, trigger),
                    mutations=({"operator": "average"},),
                    confirmed=2,
                )
            )
        nothing = np.array([np.nan, np.inf])
        itself = store.put_sample(_digit(0))
        for record in (
            OutcomeRecord(ids[4], Status.EXHAUSTED, 4, search_queries=500, **_QUIET),
            OutcomeRecord(ids[5], Status.TIMEOUT, 5, search_queries=140, **_QUIET),
            OutcomeRecord(ids[6], Status.UNSTABLE, 6, search_queries=60, trigger=itself, **_QUIET),
            OutcomeRecord(
                ids[7], Status.NONFINITE, 7, search_queries=40, deployed=nothing, **_QUIET
            ),
            OutcomeRecord(ids[8], Status.SEED_DEVIATES, 8, trigger=itself, **_QUIET),
        ):
            store.add_outcome(record)
        yield store
