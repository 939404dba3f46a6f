"""Campaigns and replays in stores: tiny ones that have run, and others written by the store's own methods.

Where a test is about any campaign of some kind, `ran` gives one of `golden_campaigns`, which runs once for all tests.
Where it is about certain numbers, `store_of` and `ended` write them, and the functions below it do so for those
situations that several tests need.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from example_answers import Both, of_kind, photo
from filelock import FileLock

import edgeflare
from edgeflare.answers.metrics import is_finite, top_label
from edgeflare.answers.oracles import margins
from edgeflare.campaign import demo_config
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.metrics import l2, linf
from edgeflare.store import OutcomeRecord, ReplayRecord, SeedAnswer, SeedInput, Store
from edgeflare.store.records import ReplayInput, ReplayKind, ReplayResult
from edgeflare.types import Decision, FrontPoint, Output, Sample, Skipped, Status

AGREE = (np.array([0.75, 0.25]), np.array([0.5, 0.5]))
RUNTIME = {"name": "onnx", "version": "1.20.0"}


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the folder of a campaign of `golden_campaigns`, or of the "demo" on five digits; nobody changes it."""
    shared = tmp_path_factory.getbasetemp()
    if shared.name.startswith("popen-"):  # one of several processes
        shared = shared.parent

    def demo(home: Path) -> str:
        edgeflare.run_campaign(demo_config(seeds=5, out=home / "demo"))
        return "demo"

    def folder_of(name: str) -> Path:
        home = shared / f"ran-{name}"
        with FileLock(f"{home}.lock"):
            if not (home / "folder").exists():
                home.mkdir()
                folder = demo(home) if name == "demo" else golden(name, home)
                (home / "folder").write_text(folder)
        return home / (home / "folder").read_text()

    def golden(name: str, home: Path) -> str:
        from golden_campaigns import CAMPAIGNS

        return CAMPAIGNS[name](home).folder

    return folder_of


@pytest.fixture
def demo(ran: Callable[[str], Path]) -> Path:
    """The demo's own models on five digits; each of them has a triggering input."""
    return ran("demo")


def image(value: int) -> Sample:
    """Return a picture of one level, uint8 [2, 2, 1]."""
    return np.full((2, 2, 1), value % 256, np.uint8)


def seed_name(number: int | str) -> str:
    """Return the name of the seed of this number; a name is its own."""
    return number if isinstance(number, str) else f"s/{number}.png"


def store_of(
    folder: Path,
    outcomes: Iterable[Mapping[str, Any]] = (),
    *,
    seeds: int | Sequence[str] = 0,
    sample: Callable[[int], Sample] = image,
    label: Callable[[int], int | None] = lambda number: None,
    answers: Callable[[int], Sequence[Any] | None] | Sequence[Any] = lambda number: None,
    replicas: Sequence[str] = ("",),
    devices: Mapping[str, Mapping[str, Any]] | None = None,
    config: Mapping[str, Any] | None = None,
    models: Sequence[Mapping[str, Any]] = ({}, {}),
    rate: int | None = None,
    environment: Mapping[str, Any] | None = None,
    **state: Any,
) -> Store:
    """Write a campaign and return it, open; `outcomes` are what `ended` takes.

    `answers` are both models' answers to a seed, the same for each replica, and the decision unless that is AGREE.
    `models` are what is known of the original and the deployed model beside name, hash and runtime.
    """
    store = Store.create(
        folder, dict(config or {}), environment=dict(environment or {"numpy": "2"})
    )
    names = [seed_name(one) for one in (range(seeds) if isinstance(seeds, int) else seeds)]
    if rate is not None:
        store.set_sample_rate(rate)
    store.add_seeds(SeedInput(name, sample(n), label(n)) for n, name in enumerate(names))
    store.set_models(
        {"name": "original.onnx", "sha256": "aa", "runtime": RUNTIME, **models[0]},
        {"name": "deployed.onnx", "sha256": "bb", "runtime": RUNTIME, **models[1]},
    )
    store.state.replicas = list(replicas)
    for name, value in state.items():
        setattr(store.state, name, value)
    for name, fingerprint in (devices or {}).items():
        store.add_device(dict(fingerprint), name)
    for replica in replicas:
        both = (answers(n) if callable(answers) else answers for n in range(len(names)))
        store.add_seed_answers(
            [
                SeedAnswer(name, one[0], one[1], one[2] if len(one) > 2 else Decision.AGREE)
                for name, one in zip(names, both, strict=True)
                if one is not None
            ],
            replica,
        )
    for one in outcomes:
        ended(store, **one)
    return store


def ended(
    store: Store,
    seed: int | str,
    status: Status = Status.FOUND,
    *,
    trigger: Sample | int | None = None,
    answers: Both | None = None,
    device: str = "",
    **fields: Any,
) -> OutcomeRecord:
    """Add how the search from a seed ended.

    `trigger` is a sample, or the level of `image`; `answers` are what both models say of it, with their labels and
    margins; `device` is the name of one that the store has.
    """
    values: dict[str, Any] = {"chain_seed": 0 if isinstance(seed, str) else seed}
    if trigger is not None:
        values["trigger"] = store.put_sample(
            image(trigger) if isinstance(trigger, int) else trigger
        )
    if answers is not None:
        values |= answered(*answers)
    if device:
        (values["device"],) = (one.digest for one in store.devices() if one.name == device)
        values["device_name"] = device
    outcome = OutcomeRecord(seed_name(seed), status, **values | fields)
    store.add_outcome(outcome)
    return outcome


def answered(original: Output, deployed: Output) -> dict[str, Any]:
    """Return what an outcome has of both models' answers."""
    sure = margins(original, deployed)
    return {
        "original": original,
        "deployed": deployed,
        "original_label": top_label(original),
        "deployed_label": top_label(deployed),
        "original_margin": sure.original,
        "deployed_margin": sure.deployed,
    }


def replayed(
    store: Store, seed: int, by: str, on: str, trigger: int, decision: Decision, *scores: float
) -> None:
    """Add what the device `on` says of a trigger that `by` found; without scores of two classes, AGREE's."""
    answer = np.array(scores) if scores else AGREE[1]
    label = None if decision is Decision.UNDECIDED else 0
    answer = np.empty(0) if decision is Decision.UNDECIDED else answer
    digest = store.put_sample(image(trigger))
    store.add_replay(ReplayRecord(seed_name(seed), by, on, digest, answer, label, decision))


# Several devices


def pooled_campaign(folder: Path) -> Store:
    """Six seeds in a pool of two like devices: five done; on one seed "pi-2" can't answer."""
    store = store_of(
        folder,
        seeds=6,
        answers=AGREE,
        devices={"pi-1": {"board": "pi"}},
        config={"fleet": {"mode": "split"}},
    )
    for number, name in enumerate(("pi-1", "pi-2", "pi-1", "pi-1")):
        _found(store, number, 10 * (number + 1), "pi-1", device_name=name)
    died = "the agent died three times: Segmentation fault"
    fields = {"device": "pi-1", "device_name": "pi-2", "search_queries": 7, "detail": died}
    ended(store, 4, Status.FAILED, trigger=44, **fields)
    return store


def replicated_campaign(folder: Path) -> Store:
    """Three seeds searched by "pi #1" and by "jetson"; the first has all of them, the other has two.

    Of the three triggers of "pi #1" two trigger on "jetson", too; the other way round one of two does.
    """
    names = ("pi #1", "jetson")
    devices = {name: {"board": name} for name in names}
    config = {"fleet": {"mode": "replicate"}}
    store = store_of(folder, seeds=3, replicas=names, devices=devices, config=config)
    for name, found in zip(names, (3, 2), strict=True):
        deployed = AGREE[name == "jetson"]
        store.add_seed_answers(
            [SeedAnswer(seed_name(n), AGREE[0], deployed, Decision.AGREE) for n in range(3)], name
        )
        for number in range(found):
            _found(store, number, 5 if name == "jetson" else 50, name, replica=name)
    for number, decision in enumerate((Decision.DEVIATION, Decision.AGREE, Decision.DEVIATION)):
        replayed(store, number, *names, 100 + number, decision)
    for number, decision in enumerate((Decision.TIE, Decision.DEVIATION)):
        replayed(store, number, *names[::-1], 100 + number, decision)
    return store


def _found(store: Store, number: int, queries: int, device: str, **more: Any) -> None:
    both = np.array([0.9, 0.1]), np.array([0.2, 0.8])
    about = {"answers": both, "search_queries": queries, "seconds": 1.0, "confirmed": 2}
    about |= {"original_margin": None, "deployed_margin": None}
    ended(store, number, trigger=100 + number, device=device, **about, **more)


def compared_campaign(folder: Path, *prints: dict[str, Any]) -> Store:
    """Four seeds searched by "host" and by "board", which have these fingerprints; differences are exact.

    Seeds: 0 bit-equal, 1 differs by 1/16, 2 by 1/4 with another label, 3 is not answered by "board".
    Triggers: of 0 both found one and the same; of 1 "host" found one on which "board" agrees with the
    original (1/8 apart), "board" another that is a tie on "host" (3/8 apart); 2 deviates
    itself on "board", and "host" could not answer it; what "host" found of 3 "board" was not asked yet.
    """
    names, original = ("host", "board"), np.array([0.75, 0.25, 0.0])
    config = {"fleet": {"mode": "replicate"}}
    store = store_of(folder, seeds=4, replicas=names, config=config)
    store.state.fingerprints = digests = {
        name: store.add_device(one, name)
        for name, one in zip(names, prints or ({}, {}), strict=True)
    }
    board = [[0.5, 0.25, 0.25], [0.5, 0.3125, 0.1875], [0.25, 0.5, 0.25]]
    for name, answers in zip(names, ([[0.5, 0.25, 0.25]] * 4, board), strict=True):
        store.add_seed_answers(
            [
                SeedAnswer(seed_name(n), original, np.array(scores), Decision.AGREE)
                for n, scores in enumerate(answers)
            ],
            name,
        )
    same = (0.25, 0.75, 0.0)
    for number, trigger, by, scores in (
        (0, 100, "host", same),
        (0, 100, "board", same),
        (1, 101, "host", (0.4375, 0.5625, 0.0)),
        (1, 201, "board", (0.125, 0.875, 0.0)),
        (2, 2, "board", (0.25, 0.5, 0.25)),
        (3, 103, "host", same),
    ):
        status = Status.SEED_DEVIATES if trigger == number else Status.FOUND
        about = {"original": original, "deployed": np.array(scores), "confirmed": 2}
        about |= {"device": digests[by], "device_name": by, "replica": by}
        record = OutcomeRecord(
            seed_name(number), status, number, trigger=store.put_sample(image(trigger)), **about
        )
        store.add_outcome(record)
    for number, trigger, by, decision, *scores in (
        (0, 100, "host", Decision.DEVIATION, *same),
        (0, 100, "board", Decision.DEVIATION, *same),
        (1, 101, "host", Decision.AGREE, 0.5625, 0.4375, 0.0),
        (1, 201, "board", Decision.TIE, 0.5, 0.5, 0.0),
        (2, 2, "board", Decision.UNDECIDED),
    ):
        (other,) = {*names} - {by}
        replayed(store, number, by, other, trigger, decision, *scores)
    return store


# One device


@pytest.fixture
def finished(tmp_path: Path) -> Iterator[Store]:
    """Ten seeds: four found (10, 20, 30, 100 search queries), one of every other status, one to do."""

    def digit(number: int) -> Sample:
        sample = np.zeros((28, 28, 1), np.uint8)
        sample[6:22, 10 + number % 4 : 14 + number % 4] = 200
        return sample

    ids = [f"digits/{n}.png" for n in range(10)]
    with store_of(
        tmp_path / "campaign",
        seeds=ids,
        sample=digit,
        label=int,
        answers=lambda n: None if n else (*AGREE, Decision.TIE),
        devices={"bench pi": {"board": "pi"}},
        config={"seed": 4},
    ) as store:
        store.complete_seeds([Skipped("broken.png", "it is damaged")], [])
        for number, (queries, original, change) in enumerate(
            ((10, 1, 5), (20, 1, 9), (30, 0, 60), (100, 1, 254))
        ):
            trigger = digit(number)
            trigger[0, 0] += change
            trigger[6, 10 + number] -= change // 5
            far = {"l2": l2(digit(number), trigger), "linf": linf(digit(number), trigger)}
            ended(
                *(store, ids[number]),
                trigger=trigger,
                answers=(np.eye(2)[original] * 0.5 + 0.25, np.eye(2)[1 - original]),
                device="bench pi",
                chain_seed=number,
                seed_queries=1,
                search_queries=queries,
                confirmation_queries=2,
                host_only_queries=3,
                round_trips=queries - 1,
                front=(FrontPoint(queries, 0.5, *far.values()),),
                seconds=float(number + 1),
                mutations=({"operator": "average"},),
                confirmed=2,
                **far,
            )
        for number, status, queries, more in (
            (4, Status.EXHAUSTED, 500, {}),
            (5, Status.TIMEOUT, 140, {}),
            (6, Status.UNSTABLE, 60, {"trigger": digit(0)}),
            (7, Status.NONFINITE, 40, {"deployed": np.array([np.nan, np.inf])}),
            (8, Status.SEED_DEVIATES, 0, {"trigger": digit(0)}),
        ):
            quiet = {"seed_queries": 1, "search_queries": queries, "seconds": 9.0}
            ended(store, ids[number], status, chain_seed=number, **quiet, **more)
        yield store


class Ended(NamedTuple):
    """How a candidate's search ended: with a trigger of this disagreement, or otherwise by its status."""

    disagreement: float = 0.25
    queries: int = 10
    status: Status = Status.FOUND
    right: bool = True
    first: int | None = None

    @property
    def scores(self) -> Both:
        """What both models answer to the trigger."""
        sure = np.array([0.5 + self.disagreement / 2, 0.5 - self.disagreement / 2])
        return sure, sure[::-1]


def candidate(
    folder: Path,
    ends: Sequence[Ended | None],
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
    sure = np.array([0.75, 0.25])

    def answers(number: int) -> Sequence[Any]:
        one = ends[number] or Ended()
        if one.status is Status.SEED_DEVIATES:
            return *one.scores, Decision.DEVIATION
        return sure, sure if one.right else sure[::-1]

    about = {"name": f"{folder.name}.onnx", "path": f"/{folder.name}.onnx", "sha256": deployed}
    with store_of(
        folder,
        seeds=[seed_name(first_sample + number) for number in range(len(ends))],
        sample=lambda number: image(first_sample + number),
        label=lambda number: 0,
        answers=answers,
        replicas=replicas,
        devices={device: {"board": device}},
        config={"search": {"strategy": "boundary", **(search or {})}},
        models=(
            {"path": "/o.onnx", "sha256": original, "bytes": 9},
            {**about, "bytes": 1234, "output": {"kind": kind}},
        ),
    ) as store:
        store.complete_seeds([], [])
        for replica in replicas:
            for number, one in enumerate(ends, start=first_sample):
                if one is None:
                    continue
                fields: dict[str, Any] = {"confirmation_queries": 2, "replica": replica}
                asked = 0 if one.status is Status.SEED_DEVIATES else one.queries
                fields |= {"search_queries": asked, "device_seconds": 0.001 * (2 + one.queries)}
                if one.status is Status.FOUND:
                    scores = dict(zip(("original", "deployed"), one.scores, strict=True))
                    fields |= {"trigger": 255, "l2": 1.5, **scores}
                if one.first is not None:
                    fields["front"] = (FrontPoint(one.first, 0.1, 1.0, 3),)
                ended(store, number, one.status, device=device, **fields)
    return folder


SURE = np.array([0.8, 0.1, 0.1])
SAME = (SURE, np.array([0.7, 0.2, 0.1]), Decision.AGREE)
OTHER = (SURE, np.array([0.1, 0.7, 0.2]), Decision.DEVIATION)
TIE = (SURE, np.array([0.4, 0.4, 0.2]), Decision.TIE)

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


def replay_store(
    folder: Path,
    *,
    replicas: tuple[str, ...] = ("",),
    looks: dict[str, ReplayResult] | None = None,
    sha256: str = "bb",
    done: int = len(ENDS),
) -> Store:
    """Write a replay in which the first `done` inputs were asked about, by each of the replicas alike."""
    inputs = [
        ReplayInput(
            name.partition(":")[2],
            id=name,
            kind=kind,
            deviated=kind == "trigger",
            looks=looks or {},
            original_label=0,
            deployed_label=int(kind == "trigger"),
            label=2,
            l2=1.5 * (kind == "trigger"),
        )
        for name, (kind, _, _) in ENDS.items()
    ]
    models = {"original": {"sha256": "aa"}, "deployed": {"sha256": "bb"}}
    source = {"kind": "campaign", "folder": "/there", "campaign": "0" * 32, "models": models}
    first = list(ENDS.items())[:done]
    store = store_of(
        folder,
        seeds=list(ENDS),
        sample=lambda number: np.full((4, 4, 1), number, np.uint8),
        answers=lambda number: first[number][1][2] if number < done else None,
        replicas=replicas,
        devices={name or "pi": {"board": name} for name in replicas},
        config={"search": {"strategy": "none"}},
        models=({}, {"sha256": sha256}),
        replay={"source": source, "inputs": inputs},
    )
    for replica in replicas:
        for name, (_, status, answer) in first:
            more: dict[str, Any] = {"detail": "the agent died" if status is Status.FAILED else ""}
            if status is Status.SEED_DEVIATES:
                more |= {"original": answer[0], "deployed": answer[1], "confirmed": 2}
            ended(store, name, status, device=replica or "pi", replica=replica, **more)
    return store


# Other kinds of answers


def detection_campaign(
    folder: Path,
    kinds: Sequence[str] = ("lost", "ghost", "class", "shift"),
    *,
    natural: Mapping[int, str] | None = None,
    located: bool = True,
    limits: Mapping[str, Any] | None = None,
    margin_floor: float = 0.0,
    deployed: str = "cd" * 32,
    seeds: int = 0,
    replicas: Sequence[str] = ("",),
) -> Path:
    """Write a campaign of detectors: a trigger for each of the kinds, each from a seed of its own.

    `natural` has the kinds of the seeds, by number, that differ as they are; there are `seeds` of
    them at least. Without `located` the models are of several labels, without boxes. All `replicas`
    answer to the seeds alike; the first one searches.
    """
    natural = natural or {}
    task, kind = ("detection", "detections") if located else ("multi-label", "tags")
    return _campaign(
        folder,
        {"kind": kind, **({"detector": {"kind": "yolo"}} if located else {})},
        [of_kind(one, located=located) for one in kinds],
        lambda number: of_kind(natural.get(number, "none"), located=located),
        {"task": task, "limits": dict(limits or {}), "search": {"margin_floor": margin_floor}},
        deviating=natural,
        deployed=deployed,
        seeds=seeds,
        replicas=replicas,
    )


def value_campaign(
    folder: Path, seeds: Both, trigger: Both, *, task: str = "vector", tolerance: float = 0.1
) -> Path:
    """Write a campaign of models of values with these answers to three seeds and three triggers."""
    settings = {"task": task, "search": {"oracle": "tolerance", "tolerance": tolerance}}
    return _campaign(folder, {"kind": "values"}, [trigger] * 3, lambda number: seeds, settings)


def _campaign(
    folder: Path,
    output: Mapping[str, Any],
    triggers: Sequence[Both],
    seed_answers: Callable[[int], Both],
    settings: Mapping[str, Any],
    *,
    deviating: Iterable[int] = (),
    deployed: str = "cd" * 32,
    seeds: int = 0,
    replicas: Sequence[str] = ("",),
) -> Path:
    files = {name: {"path": f"{name}.onnx"} for name in ("original", "deployed", "seeds")}
    config = CampaignConfig.model_validate({**files, **settings})
    count = max(len(triggers), seeds, *(number + 1 for number in deviating), 1)
    names = [f"photos/{number:02d}.png" for number in range(count)]

    def answers(number: int) -> Sequence[Any]:
        decision = Decision.DEVIATION if number in deviating else Decision.AGREE
        return *seed_answers(number), decision

    about = {"path": "/d.onnx", "bytes": 9, "output": output}
    with store_of(
        folder,
        seeds=names,
        sample=photo,
        answers=answers,
        replicas=replicas,
        devices={"pi-5": {"board": "Raspberry Pi 5"}},
        config=config.model_dump(mode="json"),
        models=({"sha256": "ab" * 32, **about}, {"sha256": deployed, **about}),
    ) as store:
        store.complete_seeds((), [])
        for number, name in enumerate(names):
            fields: dict[str, Any] = {"seed_queries": 1, "search_queries": 5}
            status, seed = Status.EXHAUSTED, photo(number)
            if number in deviating or number < len(triggers):
                itself = number in deviating
                both = seed_answers(number) if itself else triggers[number]
                noise = np.random.default_rng(number).integers(-9, 10, seed.shape)
                trigger = seed if itself else np.clip(seed + noise, 0, 255).astype(np.uint8)
                status = Status.SEED_DEVIATES if itself else Status.FOUND
                status = status if all(map(is_finite, both)) else Status.NONFINITE
                fields |= {"trigger": trigger, "answers": both, "confirmed": 2, "seconds": 0.1}
                fields |= {"search_queries": 0 if itself else 2, "confirmation_queries": 2}
                if not itself:
                    far = {"l2": l2(seed, trigger), "linf": linf(seed, trigger)}
                    least = margins(*both).smaller or 0.0
                    fields |= {**far, "front": (FrontPoint(2, least, **far),)}
            ended(store, name, status, device="pi-5", chain_seed=number, **fields)
        store.state.finished = True
    return folder
