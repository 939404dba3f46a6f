"""A campaign in which a search ended in every way, with limits or without, and a real one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import finished  # noqa: F401

import edgeflare
from edgeflare.campaign import demo_config
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, FrontPoint, Status

Made = Callable[..., Store]


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's own models on five digits; each of them has a triggering input."""
    out = tmp_path_factory.mktemp("formats") / "digits"
    return edgeflare.run_campaign(demo_config(seeds=5, out=out))


@pytest.fixture
def every_status(tmp_path: Path) -> Made:
    """Makes the campaign "night": two triggers of classes 0 -> 1 and 1 -> 2, and one seed for each other end."""

    def make(limits: dict[str, Any] | None = None, **config: Any) -> Store:
        store = Store.create(tmp_path / "night", {"limits": limits or {}, **config})
        names = ["near", "far", *(status.value for status in list(Status)[1:]), "to-do"]
        store.add_seeds(
            SeedInput(name, np.full((4, 4, 1), number, np.uint8), number % 3)
            for number, name in enumerate(names)
        )
        answer = (np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.1]))
        store.add_seed_answers([SeedAnswer(name, *answer, Decision.AGREE) for name in names])
        device = store.add_device({"board": "pi"}, "pi.bench")
        store.set_models({"name": "net.onnx", "sha256": "aa"}, {"name": "net.tflite"})
        common: dict[str, Any] = {
            "device": device,
            "device_name": "pi.bench",
            "search_queries": 7,
            "seconds": 0.25,
        }
        for name, labels, l2, margins in (
            ("near", (0, 1), 0.5, (0.01, 0.0625)),
            ("far", (1, 2), 2.0, (0.25, None)),
        ):
            store.add_outcome(
                OutcomeRecord(
                    name,
                    Status.FOUND,
                    1,
                    **common,
                    trigger=store.put_sample(np.full((4, 4, 1), 200 + int(l2), np.uint8)),
                    front=(FrontPoint(2, 0.1, l2, 3),),
                    original=np.eye(3)[labels[0]],
                    deployed=np.eye(3)[labels[1]],
                    original_label=labels[0],
                    deployed_label=labels[1],
                    original_margin=margins[0],
                    deployed_margin=margins[1],
                    l2=l2,
                    linf=3,
                )
            )
        for status in list(Status)[1:]:
            more: dict[str, Any] = {"detail": f"why {status.value}"}
            if status is Status.SEED_DEVIATES:
                more = {"original_label": 2, "deployed_label": 0, "original_margin": 0.5, "l2": 0.0}
            if status is Status.NONFINITE:
                more["deployed"] = np.array([np.nan, np.inf, 0.0])
            store.add_outcome(OutcomeRecord(status.value, status, 1, **common, **more))
        store.state.finished = True
        return store

    return make
