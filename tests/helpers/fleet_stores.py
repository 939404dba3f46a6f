"""Campaigns of several devices, written into stores by hand."""

from pathlib import Path

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
