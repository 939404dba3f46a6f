"""Campaigns, replays and corpora written into stores by hand.

Campaigns of several devices, campaigns of candidates and measures of two equal candidates, a replay with
one input for each outcome, triggering inputs for a corpus, and the fixture `finished`.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.analysis.ranking.paired_tests import Duel, duels_between
from edgeflare.metrics import l2, linf
from edgeflare.statistics import bootstrap_interval, mean_ranks
from edgeflare.store import OutcomeRecord, ReplayRecord, SeedAnswer, SeedInput, Store
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.corpus.records import Added, DeviceAnswer, Form, TriggerRecord
from edgeflare.store.records import ReplayInput, ReplayKind, ReplayResult
from edgeflare.types import Decision, FrontPoint, Sample, Skipped, Status

AGREE = (np.array([0.75, 0.25]), np.array([0.5, 0.5]))


def pooled_campaign(folder: Path) -> Store:
    """Six seeds in a pool of two like devices: five done; on one seed "pi-2" can't answer."""
    store = _campaign(folder, "split", 6)
    digest = store.add_device({"board": "pi"}, "pi-1")
    store.add_seed_answers([SeedAnswer(f"s/{n}.png", *AGREE, Decision.AGREE) for n in range(6)])
    for number, device in enumerate(("pi-1", "pi-2", "pi-1", "pi-1")):
        _found(store, number, 10 * (number + 1), digest, device)
    store.add_outcome(
        OutcomeRecord(
            "s/4.png",
            Status.FAILED,
            4,
            search_queries=7,
            device=digest,
            device_name="pi-2",
            trigger=store.put_sample(_fleet_image(44)),
            detail="the agent died three times: Segmentation fault",
        )
    )
    return store


def replicated_campaign(folder: Path) -> Store:
    """Three seeds searched by "pi #1" and by "jetson"; the first has all of them, the other has two.

    Of the three triggers of "pi #1" two trigger on "jetson", too; the other way round one of two does.
    """
    store = _campaign(folder, "replicate", 3)
    store.state.replicas = ["pi #1", "jetson"]
    for name, found in (("pi #1", 3), ("jetson", 2)):
        digest = store.add_device({"board": name}, name)
        scores = AGREE if name == "jetson" else (AGREE[0], AGREE[0])
        store.add_seed_answers(
            [SeedAnswer(f"s/{n}.png", *scores, Decision.AGREE) for n in range(3)], name
        )
        for number in range(found):
            _found(store, number, 5 if name == "jetson" else 50, digest, name, replica=name)
    for number, decision in enumerate((Decision.DEVIATION, Decision.AGREE, Decision.DEVIATION)):
        _replayed(store, number, "pi #1", "jetson", decision)
    for number, decision in enumerate((Decision.TIE, Decision.DEVIATION)):
        _replayed(store, number, "jetson", "pi #1", decision)
    return store


def compared_campaign(folder: Path, *prints: dict[str, Any]) -> Store:
    """Four seeds searched by "host" and by "board", which have these fingerprints; differences are exact.

    Seeds: 0 bit-equal, 1 differs by 1/16, 2 by 1/4 with another label, 3 is not answered by "board".
    Triggers: of 0 both found one and the same; of 1 "host" found one on which "board" agrees with the
    original (1/8 apart), "board" another that is a tie on "host" (3/8 apart); 2 deviates
    itself on "board", and "host" could not answer it; what "host" found of 3 "board" was not asked yet.
    """
    store = _campaign(folder, "replicate", 4)
    names = ("host", "board")
    store.state.replicas = list(names)
    digests = {
        name: store.add_device(one, name)
        for name, one in zip(names, prints or ({}, {}), strict=True)
    }
    store.state.fingerprints = digests
    original = np.array([0.75, 0.25, 0.0])
    host = [[0.5, 0.25, 0.25]] * 4
    board = [[0.5, 0.25, 0.25], [0.5, 0.3125, 0.1875], [0.25, 0.5, 0.25]]
    for name, answers in zip(names, (host, board), strict=True):
        store.add_seed_answers(
            [
                SeedAnswer(f"s/{n}.png", original, np.array(scores), Decision.AGREE)
                for n, scores in enumerate(answers)
            ],
            name,
        )

    def found(number: int, sample: int, by: str, scores: list[float]) -> None:
        store.add_outcome(
            OutcomeRecord(
                f"s/{number}.png",
                Status.SEED_DEVIATES if sample == number else Status.FOUND,
                number,
                device=digests[by],
                device_name=by,
                replica=by,
                trigger=store.put_sample(_fleet_image(sample)),
                original=original,
                deployed=np.array(scores),
                confirmed=2,
            )
        )

    def replayed(number: int, sample: int, by: str, on: str, *answer: Any) -> None:
        scores, decision = answer
        trigger = store.put_sample(_fleet_image(sample))
        store.add_replay(
            ReplayRecord(f"s/{number}.png", by, on, trigger, np.array(scores), None, decision)
        )

    for by, on in (names, names[::-1]):
        found(0, 100, by, [0.25, 0.75, 0.0])
        replayed(0, 100, by, on, [0.25, 0.75, 0.0], Decision.DEVIATION)
    found(1, 101, "host", [0.4375, 0.5625, 0.0])
    replayed(1, 101, "host", "board", [0.5625, 0.4375, 0.0], Decision.AGREE)
    found(1, 201, "board", [0.125, 0.875, 0.0])
    replayed(1, 201, "board", "host", [0.5, 0.5, 0.0], Decision.TIE)
    found(2, 2, "board", [0.25, 0.5, 0.25])
    replayed(2, 2, "board", "host", [], Decision.UNDECIDED)
    found(3, 103, "host", [0.25, 0.75, 0.0])
    return store


def _campaign(folder: Path, mode: str, seeds: int) -> Store:
    store = Store.create(folder, {"fleet": {"mode": mode}}, environment={"numpy": "2"})
    store.add_seeds(SeedInput(f"s/{number}.png", _fleet_image(number)) for number in range(seeds))
    runtime = {"name": "onnx", "version": "1"}
    store.set_models(
        {"name": "original.onnx", "sha256": "aa", "runtime": runtime},
        {"name": "deployed.onnx", "sha256": "bb", "runtime": runtime},
    )
    return store


def _fleet_image(value: int) -> np.ndarray:
    return np.full((4, 4, 1), value, np.uint8)


def _found(
    store: Store, number: int, queries: int, digest: str, device: str, replica: str = ""
) -> None:
    store.add_outcome(
        OutcomeRecord(
            f"s/{number}.png",
            Status.FOUND,
            number,
            search_queries=queries,
            seconds=1.0,
            device=digest,
            device_name=device,
            replica=replica,
            trigger=store.put_sample(_fleet_image(100 + number)),
            original=np.array([0.9, 0.1]),
            deployed=np.array([0.2, 0.8]),
            original_label=0,
            deployed_label=1,
            confirmed=2,
        )
    )


def _replayed(store: Store, number: int, replica: str, on_device: str, decision: Decision) -> None:
    trigger = store.put_sample(_fleet_image(100 + number))
    store.add_replay(
        ReplayRecord(f"s/{number}.png", replica, on_device, trigger, AGREE[1], 0, decision)
    )


SURE = np.array([0.75, 0.25])


class Ended(NamedTuple):
    """How a seed's search ended: with a trigger of this disagreement, or otherwise by its status."""

    disagreement: float = 0.25
    queries: int = 10
    status: Status = Status.FOUND
    right: bool = True
    first: int | None = None


def candidate(
    folder: Path,
    ended: Sequence[Ended | None],
    *,
    original: str = "aa",
    deployed: str = "bb",
    search: Mapping[str, Any] | None = None,
    kind: str = "probabilities",
    first_sample: int = 0,
    device: str = "pi",
    replicas: Sequence[str] = ("",),
) -> Path:
    """Write the campaign of a candidate called like its folder; None is a seed that is not finished.

    All seeds are labelled 0, which the original always says. With `replicas` all of them end alike.
    """
    campaign = {"search": {"strategy": "boundary", **(search or {})}}
    with Store.create(folder, campaign) as store:
        images = range(first_sample, first_sample + len(ended))
        store.add_seeds(SeedInput(f"s/{n}.png", _candidate_image(n), 0) for n in images)
        store.complete_seeds([], [])
        store.state.replicas = list(replicas)
        output = {"kind": kind}
        store.set_models(
            {"name": "original.onnx", "path": "/o.onnx", "sha256": original, "bytes": 9},
            {
                "name": f"{folder.name}.onnx",
                "path": f"/{folder.name}.onnx",
                "sha256": deployed,
                "bytes": 1234,
                "output": output,
            },
        )
        digest = store.add_device({"board": device}, device)
        trigger = store.put_sample(_candidate_image(255))
        for replica in replicas:
            numbered = list(zip(images, ended, strict=True))
            store.add_seed_answers([_answer(n, one) for n, one in numbered], replica)
            for number, one in numbered:
                if one is not None:
                    store.add_outcome(_candidate_outcome(number, one, trigger, digest, replica))
    return folder


def _scores(one: Ended) -> np.ndarray:
    return np.array([0.5 + one.disagreement / 2, 0.5 - one.disagreement / 2])


def _answer(number: int, one: Ended | None) -> SeedAnswer:
    seed = f"s/{number}.png"
    if one is not None and one.status is Status.SEED_DEVIATES:
        return SeedAnswer(seed, _scores(one), _scores(one)[::-1], Decision.DEVIATION)
    right = one is None or one.right
    return SeedAnswer(seed, SURE, SURE if right else SURE[::-1], Decision.AGREE)


def _candidate_outcome(
    number: int, one: Ended, trigger: str, digest: str, replica: str
) -> OutcomeRecord:
    found = one.status is Status.FOUND
    return OutcomeRecord(
        f"s/{number}.png",
        one.status,
        number,
        search_queries=0 if one.status is Status.SEED_DEVIATES else one.queries,
        confirmation_queries=2,
        device_seconds=0.001 * (2 + one.queries),
        device=digest,
        trigger=trigger if found else None,
        original=_scores(one) if found else None,
        deployed=_scores(one)[::-1] if found else None,
        l2=1.5 if found else None,
        front=() if one.first is None else (FrontPoint(one.first, 0.1, 1.0, 3),),
        replica=replica,
    )


def _candidate_image(number: int) -> np.ndarray:
    return np.full((2, 2, 1), number, np.uint8)


SAME = (np.array([0.8, 0.1, 0.1]), np.array([0.7, 0.2, 0.1]), Decision.AGREE)
OTHER = (np.array([0.8, 0.1, 0.1]), np.array([0.1, 0.7, 0.2]), Decision.DEVIATION)
TIE = (np.array([0.8, 0.1, 0.1]), np.array([0.4, 0.4, 0.2]), Decision.TIE)

ENDS: dict[str, tuple[ReplayKind, Status, Any]] = {
    "trigger:a": ("trigger", Status.GAVE_UP, SAME),
    "trigger:b": ("trigger", Status.SEED_DEVIATES, OTHER),
    "trigger:c": ("trigger", Status.GAVE_UP, TIE),
    "trigger:d": ("trigger", Status.UNSTABLE, OTHER),
    "trigger:e": ("trigger", Status.FAILED, None),
    "trigger:f": ("trigger", Status.NONFINITE, None),
    "seed:g": ("seed", Status.SEED_DEVIATES, OTHER),
    "seed:h": ("seed", Status.GAVE_UP, SAME),
}
"""How each input of `replay_store` ended: its kind, the status, and both models' answers."""


def replay_input(identity: str, kind: ReplayKind, **more: Any) -> ReplayInput:
    values: dict[str, Any] = {
        "deviated": kind == "trigger",
        "seed_id": identity.partition(":")[2].partition("@")[0],
        "original_label": 0,
        "deployed_label": 1 if kind == "trigger" else 0,
        "label": 2,
        "l2": 1.5 if kind == "trigger" else 0.0,
    }
    return ReplayInput(id=identity, kind=kind, **{**values, **more})


def replay_store(
    folder: Path,
    *,
    replicas: tuple[str, ...] = ("",),
    looks: dict[str, ReplayResult] | None = None,
    sha256: str = "bb",
    done: int = len(ENDS),
    **fact: Any,
) -> Store:
    """Write a replay in which the first `done` inputs were asked about, by each of the replicas alike."""
    store = Store.create(folder, {"search": {"strategy": "none"}}, environment={"numpy": "2"})
    inputs = [replay_input(name, kind, looks=looks or {}) for name, (kind, _, _) in ENDS.items()]
    store.add_seeds(
        SeedInput(one.id, np.full((4, 4, 1), number, np.uint8)) for number, one in enumerate(inputs)
    )
    store.set_models(
        {"name": "original.onnx", "sha256": "aa"}, {"name": "deployed.onnx", "sha256": sha256}
    )
    models = {"original": {"sha256": "aa"}, "deployed": {"sha256": "bb"}}
    source = {"kind": "campaign", "folder": "/there", "campaign": "0" * 32, "models": models}
    store.state.replicas = list(replicas)
    store.state.replay = {"source": source, "inputs": list(inputs), **fact}
    for replica in replicas:
        device = store.add_device({"board": replica}, replica or "pi")
        for name, (_, status, answer) in list(ENDS.items())[:done]:
            if answer is not None:
                store.add_seed_answers([SeedAnswer(name, *answer)], replica)
            store.add_outcome(_replayed_outcome(name, status, answer, device, replica))
    return store


def _replayed_outcome(
    name: str, status: Status, answer: Any, device: str, replica: str
) -> OutcomeRecord:
    scores: dict[str, Any] = {}
    if status is Status.SEED_DEVIATES:
        scores = {"original": answer[0], "deployed": answer[1], "confirmed": 2}
    return OutcomeRecord(
        name,
        status,
        0,
        device=device,
        device_name=replica or "pi",
        replica=replica,
        detail="the agent died" if status is Status.FAILED else "",
        **scores,
    )


CAP = 2000
_NOT_FOUND = 0.025
_LARGE = 200_000
"""So many values tell the true mean."""

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _zero_inflated(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    return np.where(rng.random(count) < 0.8, 0, rng.uniform(0, 1, count))


def _capped(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw queries, infinite for the 2.5 % of searches that find nothing."""
    found = np.ceil(np.minimum(rng.lognormal(3, 1, count), CAP))
    return np.where(rng.random(count) < _NOT_FOUND, np.inf, found)


MEASURES: dict[str, Draw] = {
    "normal": lambda rng, count: rng.normal(0.5, 0.1, count),
    "zero-inflated": _zero_inflated,
    "lognormal": lambda rng, count: rng.lognormal(3, 1, count),
    "capped": _capped,
}


class Rates(NamedTuple):
    """Shares of the draws: `wrong` verdicts, and intervals that leave out the true difference (0) or the true mean."""

    wrong: float
    difference_left_out: float
    mean_left_out: float


def equal_duel(measure: str, rng: np.random.Generator, seeds: int) -> Duel:
    """Compare two candidates whose values are drawn alike, as a ranking does: what is capped by its ranks."""
    drawn = {name: MEASURES[measure](rng, seeds) for name in "ab"}
    ranks = mean_ranks([[[one] for one in of] for of in drawn.values()])
    counted = {name: np.minimum(of, CAP).tolist() for name, of in drawn.items()}
    tested = dict(zip(drawn, ranks, strict=True)) if measure == "capped" else None
    (duel,) = duels_between(counted, level=0.95, more_is_better=True, tested=tested)
    return duel


def simulated(measure: str, seeds: int, draws: int) -> Rates:
    """Return how often verdicts and intervals at 95 % are wrong, with so many seeds."""
    rng = np.random.default_rng([seeds, draws])
    true = float(np.minimum(MEASURES[measure](rng, _LARGE), CAP).mean())
    wrong = difference = mean = 0
    for _ in range(draws):
        duel = equal_duel(measure, rng, seeds)
        wrong += duel.verdict != "tie"
        difference += not duel.interval[0] <= 0 <= duel.interval[1]
        values = np.minimum(MEASURES[measure](rng, seeds), CAP)
        low, high = bootstrap_interval([[one] for one in values])
        mean += not low <= true <= high
    return Rates(wrong / draws, difference / draws, mean / draws)


FORM = Form((2, 2, 1), 10)
DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def picture(value: int) -> Sample:
    """An image of the corpus' form with this value, up to 65535, in its first pixels."""
    return np.array([value % 256, value // 256, 0, 0], np.uint8).reshape(FORM.shape)


def digest(value: int) -> str:
    """The digest of the picture of this value."""
    return _digest_of(picture(value))


def trigger_record(
    value: int, *, seed: int = 0, pair: tuple[int, int] = (4, 9), **other: Any
) -> TriggerRecord:
    """The picture `value` as a trigger, found from the picture of the value 1000 + `seed`."""
    fields: dict[str, Any] = {
        "seed_id": f"s/{seed}.png",
        "seed_label": pair[0],
        "status": Status.FOUND,
        "original_margin": 0.25,
        "deployed_margin": 0.5,
        "l2": 1.0,
        "linf": 9,
        "original_sha256": "a" * 64,
        "deployed_sha256": "b" * 64,
        "model": "int8",
        "device": "pi",
        "campaign": "c" * 32,
        "found_at": START + timedelta(minutes=value),
    }
    return TriggerRecord(
        sample=digest(value),
        seed_sample=digest(1000 + seed),
        original_label=pair[0],
        deployed_label=pair[1],
        **fields | other,
    )


def add(corpus: Corpus, *sightings: TriggerRecord, values: Iterable[int] = range(1100)) -> Added:
    """Add sightings of the pictures of these values."""
    samples = {digest(value): picture(value) for value in values}
    return corpus.add(sightings, FORM, samples.__getitem__)


def device_answer(value: int, *, deviated: bool, at: datetime, **other: Any) -> DeviceAnswer:
    """What a target said of the picture `value`."""
    fields: dict[str, Any] = {
        "model": "int8",
        "device": "pi",
        "deployed_sha256": "b" * 64,
        "original_label": 4,
        "deployed_label": 9 if deviated else 4,
        "replay": "d" * 32,
    }
    return DeviceAnswer(digest(value), deviated=deviated, looked_at=at, **fields | other)


def _digest_of(sample: Sample) -> str:
    buffer = io.BytesIO()
    np.save(buffer, sample, allow_pickle=False)
    return sha256(buffer.getvalue()).hexdigest()


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
        store.complete_seeds([Skipped("broken.png", "it is damaged")], [])
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
