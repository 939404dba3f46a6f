"""Campaigns of candidates, written into stores by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, FrontPoint, Status

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
        store.add_seeds(SeedInput(f"s/{n}.png", _image(n), 0) for n in images)
        store.complete_seeds([], [])
        store.set_fact("replicas", list(replicas))
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
        trigger = store.put_sample(_image(255))
        for replica in replicas:
            numbered = list(zip(images, ended, strict=True))
            store.add_seed_answers([_answer(n, one) for n, one in numbered], replica)
            for number, one in numbered:
                if one is not None:
                    store.add_outcome(_outcome(number, one, trigger, digest, replica))
    return folder


def _scores(one: Ended) -> np.ndarray:
    return np.array([0.5 + one.disagreement / 2, 0.5 - one.disagreement / 2])


def _answer(number: int, one: Ended | None) -> SeedAnswer:
    seed = f"s/{number}.png"
    if one is not None and one.status is Status.SEED_DEVIATES:
        return SeedAnswer(seed, _scores(one), _scores(one)[::-1], Decision.DEVIATION)
    right = one is None or one.right
    return SeedAnswer(seed, SURE, SURE if right else SURE[::-1], Decision.AGREE)


def _outcome(number: int, one: Ended, trigger: str, digest: str, replica: str) -> OutcomeRecord:
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


def _image(number: int) -> np.ndarray:
    return np.full((2, 2, 1), number, np.uint8)
