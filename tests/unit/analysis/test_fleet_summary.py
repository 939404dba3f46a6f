"""The figures of campaigns of several devices, reckoned by hand."""

import json

import numpy as np
import pytest
from stores import pooled_campaign, replicated_campaign

from edgeflare.analysis import DeviceFigures, Failure, Transfer, summarize
from edgeflare.reports import export_campaign
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, Status


def test_a_pool_has_a_row_for_each_device(tmp_path):
    with pooled_campaign(tmp_path / "c") as store:
        summary = summarize(store)
    assert summary.by_device == (
        DeviceFigures("pi-1", "", 3, 3, 3, 0, 80, 1.0),
        DeviceFigures("pi-2", "", 2, 2, 1, 1, 27, 0.5),
    )
    assert (summary.replicas, summary.transfers) == ((), ())
    assert (summary.finished, summary.unfinished) == (5, 1)
    assert summary.by_status["failed"] == 1
    assert summary.failures == (
        Failure("s/4.png", "pi-2", "the agent died three times: Segmentation fault"),
    )


def test_replicas_are_counted_apart_and_compared(tmp_path):
    with replicated_campaign(tmp_path / "c") as store:
        summary = summarize(store)
    assert summary.replicas == ("jetson", "pi #1")
    assert (summary.seeds, summary.finished, summary.unfinished) == (3, 5, 1)
    assert summary.by_device == (
        DeviceFigures("jetson", "jetson", 2, 2, 2, 0, 10, 1.0),
        DeviceFigures("pi #1", "pi #1", 3, 3, 3, 0, 150, 1.0),
    )
    assert summary.transfers == (
        Transfer("jetson", "pi #1", 2, 1, 0.5),
        Transfer("pi #1", "jetson", 3, 2, pytest.approx(2 / 3)),
    )
    data = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert data["transfers"][0]["deviating"] == 1
    assert data["by_device"][1]["queries"] == 150


def test_only_the_first_failures_are_kept(tmp_path):
    with Store.create(tmp_path / "c", {}) as store:
        store.add_seeds(SeedInput(str(n), np.zeros((2, 2, 1), np.uint8)) for n in range(25))
        for number in range(25):
            store.add_outcome(OutcomeRecord(str(number), Status.FAILED, number, detail="no"))
        summary = summarize(store)
    assert summary.by_status["failed"] == 25
    assert [failure.seed_id for failure in summary.failures] == [str(n) for n in range(20)]


def test_an_export_of_replicas_names_the_device(tmp_path):
    with replicated_campaign(tmp_path / "c") as store:
        export_campaign(store, tmp_path / "out")
    rows = _rows(tmp_path / "out")
    assert [(row["seed_id"], row["replica"], row["device_name"]) for row in rows] == [
        ("s/0.png", "jetson", "jetson"),
        ("s/1.png", "jetson", "jetson"),
        ("s/0.png", "pi #1", "pi #1"),
        ("s/1.png", "pi #1", "pi #1"),
        ("s/2.png", "pi #1", "pi #1"),
    ]
    assert rows[0]["files"]["trigger"] == "images/00000-s-0-jetson-trigger.png"
    assert rows[2]["files"]["trigger"].startswith("images/00000-s-0-pi-1-")
    assert rows[0]["seed_deployed_scores"] == [0.5, 0.5]
    assert rows[2]["seed_deployed_scores"] == [0.75, 0.25]
    names = {name for row in rows for name in row["files"].values()}
    assert len(names) == 4 * len(rows)
    assert all((tmp_path / "out" / name).is_file() for name in names)


def test_devices_of_nearly_one_name_have_files_of_their_own(tmp_path):
    names = ["pi-1", "pi 1", "pi#1"]
    with Store.create(tmp_path / "c", {}) as store:
        store.add_seeds([SeedInput("a.png", np.zeros((2, 2, 1), np.uint8))])
        store.state.replicas = names
        answers = dict.fromkeys(("original", "deployed"), np.array([0.5, 0.5]))
        for name in names:
            store.add_seed_answers(
                [SeedAnswer("a.png", **answers, decision=Decision.DEVIATION)], name
            )
            about = {"replica": name, "device_name": name, **answers}
            store.add_outcome(OutcomeRecord("a.png", Status.SEED_DEVIATES, 0, **about))
        export_campaign(store, tmp_path / "out")
    assert len({row["files"]["seed"] for row in _rows(tmp_path / "out")}) == 3


def test_an_export_shows_the_input_on_which_a_device_cannot_answer(tmp_path):
    with pooled_campaign(tmp_path / "c") as store:
        report = export_campaign(store, tmp_path / "out")
    assert report.by_status == {"found": 4, "failed": 1}
    row = _rows(tmp_path / "out")[-1]
    assert (row["status"], row["device_name"], row["replica"]) == ("failed", "pi-2", "")
    assert "three times: Segmentation" in row["detail"]
    assert row["trigger_sample"] != row["seed_sample"]
    assert row["deployed_scores"] is None


def _rows(folder):
    return [json.loads(line) for line in (folder / "triggers.jsonl").read_text().splitlines()]
