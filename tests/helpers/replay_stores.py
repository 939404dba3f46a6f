"""A replay's folder, written by hand: one input for each end that its outcome may have."""

from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.campaign.replay_states import REPLAY, input_to_json
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.store.replay_input import Look, ReplayInput, ReplayKind
from edgeflare.types import Decision, Status

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


def replay_input(identity: str, kind: ReplayKind, value: int = 0, **more: Any) -> ReplayInput:
    sample = np.full((4, 4, 1), value, np.uint8)
    values: dict[str, Any] = {
        "deviated": kind == "trigger",
        "seed_id": identity.partition(":")[2].partition("@")[0],
        "original_label": 0,
        "deployed_label": 1 if kind == "trigger" else 0,
        "label": 2,
        "l2": 1.5 if kind == "trigger" else 0.0,
    }
    return ReplayInput(identity, sample, kind, **{**values, **more})


def replay_store(
    folder: Path,
    *,
    replicas: tuple[str, ...] = ("",),
    looks: dict[str, Look] | None = None,
    sha256: str = "bb",
    done: int = len(ENDS),
    **fact: Any,
) -> Store:
    """Write a replay in which the first `done` inputs were asked about, by each of the replicas alike."""
    store = Store.create(folder, {"search": {"strategy": "none"}}, environment={"numpy": "2"})
    inputs = [
        replay_input(name, kind, number, looks=looks or {})
        for number, (name, (kind, _, _)) in enumerate(ENDS.items())
    ]
    store.add_seeds(SeedInput(one.id, one.sample) for one in inputs)
    store.set_models(
        {"name": "original.onnx", "sha256": "aa"}, {"name": "deployed.onnx", "sha256": sha256}
    )
    models = {"original": {"sha256": "aa"}, "deployed": {"sha256": "bb"}}
    source = {"kind": "campaign", "folder": "/there", "campaign": "0" * 32, "models": models}
    store.set_fact("replicas", list(replicas))
    store.set_fact(
        REPLAY, {"source": source, "inputs": [input_to_json(one) for one in inputs], **fact}
    )
    for replica in replicas:
        device = store.add_device({"board": replica}, replica or "pi")
        for name, (_, status, answer) in list(ENDS.items())[:done]:
            if answer is not None:
                store.add_seed_answers([SeedAnswer(name, *answer)], replica)
            store.add_outcome(_outcome(name, status, answer, device, replica))
    return store


def _outcome(name: str, status: Status, answer: Any, device: str, replica: str) -> OutcomeRecord:
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
