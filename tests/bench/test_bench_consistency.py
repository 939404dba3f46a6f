"""What the report says where cells of one pair don't belong together."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from benches import bench_of, fill_cell, suite_of
from shown_numbers import numbers

from edgeflare.campaign.provenance import check_forced
from edgeflare.store import Store
from edgeflare.types import Status
from edgeflare_bench.cells import Bench, Cell, cells
from edgeflare_bench.report import bench_report

CHANGED = Cell("One pair", "b", 1)
FINGERPRINT = {"board": "Pi | 5", "cpu_flags": ["neon"]}


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Two pairs with four cells each, all alike."""
    bench = bench_of(tmp_path_factory.mktemp("alike") / "bench", suite_of(["One pair", "Other"]))
    for cell in cells(bench.suite):
        fill_cell(bench, cell, [(Status.FOUND, 10), (Status.FOUND, 20)])
    return bench


@pytest.fixture
def bench(alike: Bench, tmp_path: Path) -> Bench:
    """A copy that a test may change."""
    return replace(alike, folder=shutil.copytree(alike.folder, tmp_path / "bench"))


def test_of_cells_that_are_alike_nothing_is_reported(alike: Bench) -> None:
    assert bench_report(alike).notices == ()


def test_a_model_that_was_replaced_is_reported_with_its_cells(bench: Bench) -> None:
    with Store.open(bench.campaign(CHANGED)) as store:
        models = store.models
        store.set_models(models["original"], models["deployed"] | {"sha256": "cc"})
    report = bench_report(bench)
    (notice,) = report.notices
    assert numbers(notice) == "1 256 3 256"
    assert [one["deployed"]["sha256"] for one in report.models["One pair"]] == ["bb", "cc"]
    assert len(report.models["Other"]) == 1


def test_a_model_that_was_only_moved_is_the_same(bench: Bench) -> None:
    with Store.open(bench.campaign(CHANGED)) as store:
        models = store.models
        store.set_models(models["original"] | {"path": "/elsewhere/o.onnx"}, models["deployed"])
    report = bench_report(bench)
    assert (len(report.models["One pair"]), report.notices) == (1, ())


def test_a_device_that_changed_is_reported_with_its_cells(bench: Bench) -> None:
    with Store.open(bench.campaign(CHANGED)) as store:
        store.add_device(FINGERPRINT | {"board": "Pi 4"}, "pi-1")
    (notice,) = bench_report(bench).notices
    assert numbers(notice) == "1 1 1 4 3 0"


def test_pairs_on_different_devices_are_not_compared(bench: Bench) -> None:
    for cell in cells(bench.suite):
        if cell.pair == "Other":
            with Store.open(bench.campaign(cell)) as store:
                store.add_device(FINGERPRINT | {"board": "Pi 4"}, "pi")
    assert bench_report(bench).notices == ()


def test_a_campaign_that_went_on_all_the_same_is_reported(bench: Bench) -> None:
    text = check_forced(["the deployed model /m/d.tflite has changed"], force=True)
    assert text is not None
    with Store.open(bench.campaign(CHANGED)) as store:
        store.add_notice("something else")
        store.add_notice(text)
    assert bench_report(bench).notices == (f"One-pair/b/1: {text}",)
