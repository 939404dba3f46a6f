"""The answers of several devices, side by side, out of a store of more than one page."""

import numpy as np

from edgeflare.store import OutcomeRecord, ReplayRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, Status

ORIGINAL = np.array([0.75, 0.25])
SEEDS = 150


def scores(number: int) -> np.ndarray:
    return np.array([number / 256, 1 - number / 256])


def image(number: int) -> np.ndarray:
    return np.full((2, 2, 1), number, np.uint8)


def test_every_seed_comes_once_in_order_with_all_answers(tmp_path, database):
    with Store.create(tmp_path / "c", {}, database=database) as store:
        store.add_seeds(SeedInput(f"{n}", image(n)) for n in range(SEEDS))
        for name, shift in (("b", 1), ("a", 0), ("stranger", 2)):
            store.add_seed_answers(
                [
                    SeedAnswer(f"{n}", ORIGINAL, scores(n + shift), Decision.AGREE)
                    for n in reversed(range(shift, SEEDS))
                ],
                name,
            )
        found = list(store.comparisons(["a", "b"]))
    assert [one.seed_id for one in found] == [str(n) for n in range(SEEDS)]
    assert set(found[0].answers) == {"a"}
    for number, one in enumerate(found[1:], start=1):
        assert set(one.answers) == {"a", "b"}
        assert (one.answers["a"] == scores(number)).all()
        assert (one.answers["b"] == scores(number + 1)).all()
        assert one.triggers == {}


def test_an_own_finding_counts_more_than_a_replay_and_no_answer_is_left_out(tmp_path, database):
    with Store.create(tmp_path / "c", {}, database=database) as store:
        store.add_seeds(SeedInput(f"{n}", image(n)) for n in range(SEEDS))
        same, other = store.put_sample(image(200)), store.put_sample(image(201))
        seed, both = f"{SEEDS - 1}", {"original": ORIGINAL, "deployed": scores(1)}
        for name, status, trigger in (
            ("a", Status.FOUND, same),
            ("b", Status.FOUND, same),
            ("c", Status.UNSTABLE, other),
        ):
            store.add_outcome(OutcomeRecord(seed, status, 0, replica=name, trigger=trigger, **both))
        for replica, on_device, answer, decision in (
            ("a", "b", scores(9), Decision.TIE),
            ("a", "c", np.empty(0), Decision.UNDECIDED),
            ("b", "c", scores(3), Decision.AGREE),
        ):
            store.add_replay(ReplayRecord(seed, replica, on_device, same, answer, None, decision))
        *before, last = store.comparisons(["a", "b", "c"])
    assert not any(one.triggers for one in before)
    assert set(last.triggers) == {same}
    answers = last.triggers[same]
    assert {name: (one.decision, one.found) for name, one in answers.items()} == {
        "a": (Decision.DEVIATION, True),
        "b": (Decision.DEVIATION, True),
        "c": (Decision.AGREE, False),
    }
    assert (answers["b"].deployed == scores(1)).all()
    assert (answers["c"].deployed == scores(3)).all()
