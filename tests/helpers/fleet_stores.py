"""Campaigns of several devices, written into stores by hand."""

from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.store import OutcomeRecord, ReplayRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, Status

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
            trigger=store.put_sample(_image(44)),
            detail="the agent died three times: Segmentation fault",
        )
    )
    return store


def replicated_campaign(folder: Path) -> Store:
    """Three seeds searched by "pi #1" and by "jetson"; the first has all of them, the other has two.

    Of the three triggers of "pi #1" two trigger on "jetson", too; the other way round one of two does.
    """
    store = _campaign(folder, "replicate", 3)
    store.set_fact("replicas", ["pi #1", "jetson"])
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
    store.set_fact("replicas", list(names))
    digests = {
        name: store.add_device(one, name)
        for name, one in zip(names, prints or ({}, {}), strict=True)
    }
    store.set_fact("fingerprints", digests)
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
                trigger=store.put_sample(_image(sample)),
                original=original,
                deployed=np.array(scores),
                confirmed=2,
            )
        )

    def replayed(number: int, sample: int, by: str, on: str, *answer: Any) -> None:
        scores, decision = answer
        trigger = store.put_sample(_image(sample))
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
    store.add_seeds(SeedInput(f"s/{number}.png", _image(number)) for number in range(seeds))
    runtime = {"name": "onnx", "version": "1"}
    store.set_models(
        {"name": "original.onnx", "sha256": "aa", "runtime": runtime},
        {"name": "deployed.onnx", "sha256": "bb", "runtime": runtime},
    )
    return store


def _image(value: int) -> np.ndarray:
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
            trigger=store.put_sample(_image(100 + number)),
            original=np.array([0.9, 0.1]),
            deployed=np.array([0.2, 0.8]),
            original_label=0,
            deployed_label=1,
            confirmed=2,
        )
    )


def _replayed(store: Store, number: int, replica: str, on_device: str, decision: Decision) -> None:
    trigger = store.put_sample(_image(100 + number))
    store.add_replay(
        ReplayRecord(f"s/{number}.png", replica, on_device, trigger, AGREE[1], 0, decision)
    )
