"""A campaign in which a search ended in every way, with limits or without, and a real one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import demo, ended, finished, ran, store_of  # noqa: F401

from edgeflare.store import Store
from edgeflare.types import FrontPoint, Status

Made = Callable[..., Store]


@pytest.fixture
def every_status(tmp_path: Path) -> Made:
    """Makes the campaign "night": two triggers of classes 0 -> 1 and 1 -> 2, and one seed for each other end."""

    def make(limits: dict[str, Any] | None = None, **config: Any) -> Store:
        others = list(Status)[1:]
        store = store_of(
            tmp_path / "night",
            seeds=["near", "far", *(status.value for status in others), "to-do"],
            sample=lambda number: np.full((4, 4, 1), number, np.uint8),
            label=lambda number: number % 3,
            answers=(np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.1])),
            devices={"pi.bench": {"board": "pi"}},
            config={"limits": limits or {}, **config},
            models=({"name": "net.onnx"}, {"name": "net.tflite"}),
        )
        common: dict[str, Any] = {"device": "pi.bench", "search_queries": 7, "seconds": 0.25}
        for name, labels, l2, margins in (
            ("near", (0, 1), 0.5, (0.01, 0.0625)),
            ("far", (1, 2), 2.0, (0.25, None)),
        ):
            sure = dict(zip(("original_margin", "deployed_margin"), margins, strict=True))
            ended(
                *(store, name),
                trigger=np.full((4, 4, 1), 200 + int(l2), np.uint8),
                answers=tuple(np.eye(3)[label] for label in labels),
                front=(FrontPoint(2, 0.1, l2, 3),),
                **{"l2": l2, "linf": 3, **sure, **common},
            )
        itself = {"original_label": 2, "deployed_label": 0, "original_margin": 0.5, "l2": 0.0}
        for status in others:
            more: dict[str, Any] = {"detail": f"why {status.value}"}
            if status is Status.SEED_DEVIATES:
                more = itself
            if status is Status.NONFINITE:
                more["deployed"] = np.array([np.nan, np.inf, 0.0])
            ended(store, status.value, status, **common, **more)
        store.state.finished = True
        return store

    return make
