"""What the reader of a campaign would refuse is not written; what earlier versions wrote is read."""

import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from stored_json import change

from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.errors import StoreError
from edgeflare.explanation.results import (
    ExplainedFinding,
    Explanation,
    LayerFigures,
    Layers,
    RungAnswer,
    TensorFigures,
    stored_explanation,
)
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import Status

NAN = float("nan")
DEEP: list[Any] = []
for _ in range(60):
    DEEP = [DEEP]
FIGURES = TensorFigures(1.0, None, None)
LAYER = LayerFigures("conv", ("conv",), "Conv", 0.1, 0.1, 0.1, 0, FIGURES, FIGURES)
FINDING = ExplainedFinding(
    "a",
    id="trigger:a",
    original_label=0,
    deployed_label=1,
    l2=0.0,
    sample="0" * 64,
    device="pi",
    cause="compression",
    rung="compression",
    answers=(RungAnswer("original", False, -0.5), RungAnswer("compression", True, 0.5)),
)
LAYERS = Layers("a.onnx", "b.onnx", (LAYER,), {"trigger:a": (1.0,)}, (), 0.0)
EXPLANATION = Explanation((FINDING,), (), 0, 4, (), LAYERS)


def outcome(**changes: Any) -> OutcomeRecord:
    return OutcomeRecord("a", Status.FOUND, 1, original_margin=0.5, **changes)


WRITES: dict[str, Callable[[Store], object]] = {
    "fact, NaN": lambda store: setattr(store.state, "wall_s", NAN),
    "fact, too deep": lambda store: setattr(store.state, "devices", [{"name": "a", "deep": DEEP}]),
    "fact, half a character": lambda store: setattr(store.state, "class_names", ["\ud800"]),
    "fact, no JSON": lambda store: setattr(
        store.state, "devices", [{"name": "a", "any": object()}]
    ),
    "configuration": lambda store: store.set_campaign({"search": {"tolerance": math.inf}}),
    "configuration, type": lambda store: store.set_campaign({"devices": "pi"}),
    "models": lambda store: store.set_models({"name": 7}, {}),
    "environment": lambda store: store.add_environment({"load": NAN}),
    "device": lambda store: store.add_device({"mhz": math.inf}, "pi"),
    "outcome, infinity": lambda store: store.add_outcome(outcome(l2=math.inf)),
    "outcome, mutations": lambda store: store.add_outcome(outcome(mutations=[{"by": NAN}])),
    "telemetry": lambda store: store.add_telemetry(
        [DeviceMinute("pi", datetime.now(timezone.utc), 1, temperature_mean_c=math.inf)]
    ),
    "result": lambda store: store.add_result(
        "explain", replace(EXPLANATION, layers=replace(LAYERS, changed=NAN))
    ),
    "units": lambda store: store.add_result("units", EXPLANATION, units=lambda: [{"score": NAN}]),
}


def content(store: Store) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(store.folder / "campaign.sqlite")) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}


@pytest.mark.parametrize("what", WRITES)
def test_what_could_not_be_read_again_is_not_written(sqlite_store: Store, what: str) -> None:
    before = content(sqlite_store)
    with pytest.raises(StoreError, match="read again"):
        WRITES[what](sqlite_store)
    assert content(sqlite_store) == before


def test_a_stored_nan_counts_as_not_known(sqlite_store: Store) -> None:
    sqlite_store.add_result("explain", EXPLANATION)
    assert stored_explanation(sqlite_store) == EXPLANATION
    assert sqlite_store.notices() == []
    change(
        sqlite_store.folder / "campaign.sqlite",
        """UPDATE analyses SET result = replace(result, '"mean": 0.1', '"mean": NaN')""",
        """UPDATE analyses SET result = replace(result, '-0.5', '-Infinity')""",
        """INSERT INTO facts VALUES ('wall_s', 'NaN'), ('class_names', '["NaN"]')""",
    )
    found = stored_explanation(sqlite_store)
    assert found is not None
    assert (found.layers, found.findings[0].answers[0].margin) == (None, None)
    assert (sqlite_store.state.wall_s, sqlite_store.state.class_names) == (None, ["NaN"])
    notices = sqlite_store.notices()
    assert ["explain" in one or "wall_s" in one for one in notices] == [True, True]
    assert sqlite_store.result("explain", Explanation) is None  # without parts to leave out
    sqlite_store.add_result("explain", EXPLANATION)
    assert stored_explanation(sqlite_store) == EXPLANATION


@pytest.mark.parametrize(
    ("fact", "named"),
    [
        ('{"partners": [{"id": "a", "sample": 7}]}', "partners"),
        ('[{"id": "a", "sample": "' + "b" * 5000 + '"}, {"id": "a", "sample": 7}]', "1.sample: "),
        ('[{"id": "a", "sample": NaN}]', "0.sample: "),
    ],
)
def test_a_damaged_document_names_the_field_alone(
    sqlite_store: Store, fact: str, named: str
) -> None:
    database = sqlite_store.folder / "campaign.sqlite"
    change(database, "INSERT INTO facts VALUES ('partners', ?)", values=[fact])
    with pytest.raises(StoreError) as error:
        _ = sqlite_store.state.partners
    text = str(error.value).replace(str(sqlite_store.folder), "")
    assert named in text
    assert len(text) < 250


def test_an_explanation_of_an_earlier_version_counts_until_there_is_another(
    sqlite_store: Store,
) -> None:
    sqlite_store.add_result("explanation", EXPLANATION)
    assert stored_explanation(sqlite_store) == EXPLANATION
    newer = replace(EXPLANATION, left_out=1)
    sqlite_store.add_result("explain", newer)
    assert stored_explanation(sqlite_store) == newer
