"""The figures of campaigns of several devices, reckoned by hand, and what is exported of them."""

import json

import numpy as np
import pytest
from stores import ended, pooled_campaign, replicated_campaign, store_of

from edgeflare.analysis import DeviceFigures, Failure, Transfer, summarize
from edgeflare.reports import export_campaign
from edgeflare.types import Status


def exported(store, folder):
    report = export_campaign(store, folder)
    lines = (folder / "triggers.jsonl").read_text().splitlines()
    return report, [json.loads(line) for line in lines]


def test_a_pool_has_a_row_for_each_device(tmp_path):
    with pooled_campaign(tmp_path / "c") as store:
        summary = summarize(store)
        report, (*_, row) = exported(store, tmp_path / "out")
    assert summary.by_device == (
        DeviceFigures("pi-1", "", 3, 3, 3, 0, 80, 1.0),
        DeviceFigures("pi-2", "", 2, 2, 1, 1, 27, 0.5),
    )
    assert (summary.replicas, summary.transfers) == ((), ())
    assert (summary.finished, summary.unfinished) == (5, 1)
    died = "the agent died three times: Segmentation fault"
    assert summary.failures == (Failure("s/4.png", "pi-2", died),)
    assert report.by_status == {"found": 4, "failed": 1}
    assert (row["status"], row["device_name"], row["replica"]) == ("failed", "pi-2", "")
    assert (row["detail"], row["deployed_scores"]) == (died, None)
    assert row["trigger_sample"] != row["seed_sample"]


def test_replicas_are_counted_apart_and_compared(tmp_path):
    with replicated_campaign(tmp_path / "c") as store:
        summary = summarize(store)
        _, rows = exported(store, tmp_path / "out")
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
    assert (data["transfers"][0]["deviating"], data["by_device"][1]["queries"]) == (1, 150)
    assert [(row["seed_id"][2], row["replica"], row["device_name"]) for row in rows] == [
        *((number, "jetson", "jetson") for number in "01"),
        *((number, "pi #1", "pi #1") for number in "012"),
    ]
    assert rows[0]["files"]["trigger"] == "images/00000-s-0-jetson-trigger.png"
    assert [row["seed_deployed_scores"] for row in rows[1:3]] == [[0.5, 0.5], [0.75, 0.25]]
    names = {name for row in rows for name in row["files"].values()}
    assert len(names) == 4 * len(rows)
    assert all((tmp_path / "out" / name).is_file() for name in names)


def test_only_the_first_failures_are_kept(tmp_path):
    ends = [{"seed": n, "status": Status.FAILED, "detail": "no"} for n in range(25)]
    with store_of(tmp_path / "c", ends, seeds=25) as store:
        summary = summarize(store)
    assert summary.by_status["failed"] == 25
    assert [failure.seed_id for failure in summary.failures] == [f"s/{n}.png" for n in range(20)]


def test_devices_of_nearly_one_name_have_files_of_their_own(tmp_path):
    names, even = ["pi-1", "pi 1", "pi#1"], (np.array([0.5, 0.5]),) * 2
    with store_of(tmp_path / "c", seeds=1, answers=even, replicas=names) as store:
        for name in names:
            ended(store, 0, Status.SEED_DEVIATES, answers=even, replica=name, device_name=name)
        _, rows = exported(store, tmp_path / "out")
    assert len({row["files"]["seed"] for row in rows}) == 3
