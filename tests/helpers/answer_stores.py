"""Finished campaigns of models without a top-1 class, written into a store: detections, labels, values."""

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.answers.metrics import is_finite
from edgeflare.answers.oracles import margins
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.metrics import l2, linf
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import (
    Decision,
    DetectionRules,
    Detections,
    FrontPoint,
    Output,
    Sample,
    Status,
    ValueRules,
    Values,
)

Both = tuple[Output, Output]

PERSON, DOG, CAT = (0.1, 0.2, 0.4, 0.8), (0.5, 0.5, 0.9, 0.95), (0.62, 0.05, 0.95, 0.4)
"""Boxes of three objects that don't overlap."""
NAMES = ("person", "dog", "cat")
"""The names of classes 0, 1 and 2."""


def detections(*found: tuple[int, float, Sequence[float]], located: bool = True) -> Detections:
    """Return an answer of (label, score, box), in any order; at least 0.5 is detected."""
    ranked = sorted(found, key=lambda one: -one[1])
    return Detections(
        np.array([box for *_, box in ranked], np.float64).reshape(-1, 4),
        np.array([label for label, *_ in ranked], np.int64),
        np.array([score for _, score, _ in ranked], np.float64),
        DetectionRules(located=located),
    )


def of_kind(kind: str, *, located: bool = True) -> tuple[Detections, Detections]:
    """Return two answers with one difference of this kind; "none": without any.

    Lost is a person (0.62 against 0.47), a ghost a dog (0.41 against 0.56); a cat becomes a dog, and
    the box of a person shifts. "broken": the deployed model's scores are NaN.
    """
    person, dog, cat = (0, 0.9, PERSON), (1, 0.8, DOG), (2, 0.7, CAT)
    every = [person, dog, cat]
    one, other = {
        "none": (every, every),
        "broken": (every, [(label, math.nan, box) for label, _, box in every]),
        "lost": ([(0, 0.62, PERSON), dog, cat], [(0, 0.47, PERSON), dog, cat]),
        "ghost": ([person, (1, 0.41, DOG)], [person, (1, 0.56, DOG)]),
        "class": ([person, (2, 0.7, CAT)], [person, (1, 0.66, CAT)]),
        "shift": ([person, dog], [(0, 0.88, (0.16, 0.26, 0.46, 0.86)), dog]),
    }[kind]
    return detections(*one, located=located), detections(*other, located=located)


def photo(number: int) -> Sample:
    """Return a picture of 60 x 80 pixels with three coloured rectangles."""
    generator = np.random.default_rng(number)
    image = generator.integers(60, 90, (60, 80, 3)).astype(np.uint8)
    for box, colour in ((PERSON, (200, 60, 60)), (DOG, (60, 160, 60)), (CAT, (70, 70, 200))):
        left, top, right, bottom = (
            round(share * size) for share, size in zip(box, (80, 60, 80, 60), strict=True)
        )
        image[top:bottom, left:right] = colour
    return image


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
    return _campaign(
        folder,
        "detections" if located else "tags",
        [of_kind(kind, located=located) for kind in kinds],
        lambda number: of_kind(natural.get(number, "none"), located=located),
        {
            "task": "detection" if located else "multi-label",
            "limits": dict(limits or {}),
            "search": {"margin_floor": margin_floor},
        },
        deviating=set(natural),
        deployed=deployed,
        seeds=seeds,
        replicas=replicas,
    )


def values(*elements: float, rules: ValueRules | None = None) -> Values:
    """Return a vector."""
    return Values(np.array(elements, np.float64), rules or ValueRules())


def label_maps(changed: int) -> tuple[Values, Values]:
    """Return two maps of 3 labels, 20 x 24 pixels, that differ in so many of them, row by row."""
    scores = np.zeros((3, 20, 24))
    scores[0] = 0.5
    scores[1, 5:15, 4:12] = scores[2, 8:18, 14:22] = 1.0
    other = scores.copy()
    other.reshape(3, -1)[2, :changed] = 2.0
    rules = ValueRules("labels")
    return Values(scores, rules), Values(other, rules)


def depth_maps(change: float) -> tuple[Values, Values]:
    """Return two maps of one channel, 20 x 24 pixels, whose corner differs by so much."""
    plane = np.linspace(0, 1, 480).reshape(1, 20, 24)
    other = plane.copy()
    other[0, :5, :5] += change
    return Values(plane), Values(other)


def value_campaign(
    folder: Path, seeds: Both, trigger: Both, *, task: str = "vector", tolerance: float = 0.1
) -> Path:
    """Write a campaign of models of values with these answers to three seeds and three triggers."""
    settings = {"task": task, "search": {"oracle": "tolerance", "tolerance": tolerance}}
    return _campaign(folder, "values", [trigger] * 3, lambda number: seeds, settings)


def _campaign(
    folder: Path,
    kind: str,
    triggers: Sequence[Both],
    seed_answers: Callable[[int], Both],
    settings: dict[str, Any],
    *,
    deviating: AbstractSet[int] = frozenset(),
    deployed: str = "cd" * 32,
    seeds: int = 0,
    replicas: Sequence[str] = ("",),
) -> Path:
    config = CampaignConfig.model_validate(
        {
            "original": {"path": "detector.onnx"},
            "deployed": {"path": "detector-int8.onnx"},
            "seeds": {"path": "photos"},
            **settings,
        }
    )
    count = max(len(triggers), seeds, *(number + 1 for number in deviating), 1)
    names = [f"photos/{number:02d}.png" for number in range(count)]
    with Store.create(folder, config.model_dump(mode="json"), environment={}) as store:
        store.add_seeds(SeedInput(name, photo(number)) for number, name in enumerate(names))
        output = {"kind": kind, **({"detector": {"kind": "yolo"}} if kind == "detections" else {})}
        about = {"runtime": {"name": "onnx", "version": "1.20.0"}, "output": output}
        store.set_models(
            {"name": "detector.onnx", "path": "/d.onnx", "sha256": "ab" * 32, "bytes": 9, **about},
            {
                "name": "detector-int8.onnx",
                "path": "/d-int8.onnx",
                "sha256": deployed,
                "bytes": 9,
                **about,
            },
        )
        device = store.add_device({"board": "Raspberry Pi 5"}, "pi-5")
        store.state.replicas = list(replicas)
        store.complete_seeds((), [])
        answers = [seed_answers(number) for number in range(count)]
        for replica in replicas:
            store.add_seed_answers(
                [
                    SeedAnswer(
                        name, *both, Decision.DEVIATION if number in deviating else Decision.AGREE
                    )
                    for number, (name, both) in enumerate(zip(names, answers, strict=True))
                ],
                replica,
            )
        for number, name in enumerate(names):
            if number in deviating:
                store.add_outcome(_outcome(store, name, number, answers[number], device, None))
            elif number < len(triggers):
                noise = np.random.default_rng(number).integers(-9, 10, (60, 80, 3))
                found = np.clip(photo(number).astype(int) + noise, 0, 255).astype(np.uint8)
                store.add_outcome(_outcome(store, name, number, triggers[number], device, found))
            else:
                store.add_outcome(
                    OutcomeRecord(
                        name, Status.EXHAUSTED, number, seed_queries=1, search_queries=5,
                        device=device, device_name="pi-5",
                    )
                )  # fmt: skip
        store.state.finished = True
    return folder


def _outcome(
    store: Store, name: str, number: int, both: Both, device: str, found: Sample | None
) -> OutcomeRecord:
    seed, sure = photo(number), margins(*both)
    itself, broken = found is None, not all(is_finite(answer) for answer in both)
    sample = seed if found is None else found
    apart: dict[str, Any] = {"l2": l2(seed, sample), "linf": linf(seed, sample)}
    return OutcomeRecord(
        name,
        Status.NONFINITE if broken else Status.SEED_DEVIATES if itself else Status.FOUND,
        number,
        seed_queries=1,
        search_queries=0 if itself else 2,
        confirmation_queries=2,
        seconds=0.1,
        device=device,
        device_name="pi-5",
        trigger=store.put_sample(sample),
        original=both[0],
        deployed=both[1],
        original_margin=sure.original,
        deployed_margin=sure.deployed,
        front=() if itself else (FrontPoint(2, sure.smaller or 0.0, **apart),),
        confirmed=2,
        **({} if itself else apart),
    )
