"""Searches with gradients of the original: nearer with fewer host queries, the same in every process."""

import sys
from pathlib import Path

import numpy as np
import pytest
from campaigns import found_in
from command import DEMO
from small_models import damaged_onnx

from edgeflare import CampaignConfig, config_from, resume_campaign, run_campaign
from edgeflare.campaign import provenance
from edgeflare.errors import UsageError
from edgeflare.store import Store
from edgeflare.types import Status
from edgeflare_whitebox.strategies.constraints import CONSTRAINTS

pytestmark = pytest.mark.usefixtures("own_home")

GRADIENTS = {"gradients": True}


def config(
    out: Path, options: dict[str, object], strategy: str = "boundary", **more: object
) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": 10},
        "search": {"strategy": strategy, "options": options, "timeout_s": 0},
        "survey": {"enabled": False},
        "workers": 0,
        "out": out,
        **more,
    }
    return config_from(values, "test")


def figures(folder: Path) -> tuple[int, float, float]:
    """Triggers, host-only queries a search, and the median L2."""
    with Store.open(folder) as store:
        outcomes = list(store.outcomes())
    found = [one for one in outcomes if one.l2 is not None]
    host = float(np.mean([one.host_only_queries for one in outcomes]))
    return len(found), host, float(np.median([one.l2 or 0.0 for one in found]))


@pytest.mark.torch
def test_gradients_lead_nearer_with_fewer_host_queries(tmp_path: Path) -> None:
    found, host, distance = figures(run_campaign(config(tmp_path / "with", GRADIENTS)))
    found_before, host_before, before = figures(run_campaign(config(tmp_path / "without", {})))

    assert found >= found_before
    assert host < 0.5 * host_before
    assert distance < before


@pytest.mark.torch
def test_workers_find_the_same_and_a_resumed_campaign_keeps_the_option(tmp_path: Path) -> None:
    alone = run_campaign(config(tmp_path / "alone", GRADIENTS))
    limited = config(tmp_path / "workers", GRADIENTS, workers=2, fleet={"total_queries": 34})
    run_campaign(limited)
    resume_campaign(limited.out, changes={"fleet": {"total_queries": None}})

    assert found_in(limited.out) == found_in(alone)


def test_without_torch_the_campaign_does_not_begin(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(UsageError, match=r"install 'edgeflare\[torch\]'"):
        run_campaign(config(tmp_path / "out", GRADIENTS))

    assert not (tmp_path / "out").exists()


@pytest.mark.torch
def test_an_original_that_is_no_onnx_file_is_refused_at_the_start(tmp_path: Path) -> None:
    original = {"path": DEMO / "deployed.tflite"}

    with pytest.raises(UsageError, match="ONNX file"):
        run_campaign(config(tmp_path / "out", GRADIENTS, original=original))

    assert not (tmp_path / "out").exists()


@pytest.mark.torch
def test_pytorchs_version_belongs_to_what_a_campaign_is_resumed_with(tmp_path, monkeypatch) -> None:
    stopped = config(tmp_path / "c", GRADIENTS, fleet={"total_queries": 34})
    run_campaign(stopped)
    installed = provenance.version
    monkeypatch.setattr(
        provenance, "version", lambda name: "0.0" if name == "torch" else installed(name)
    )

    with pytest.raises(UsageError, match=r"is 0\.0"):
        resume_campaign(stopped.out, changes={"fleet": {"total_queries": None}})


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A further original: the demo's with other weights in a part of it."""
    return damaged_onnx(tmp_path / "damaged.onnx", 0.3)


@pytest.mark.torch
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_constrained_descent_finds_images_that_deviate_once_written_and_read(
    tmp_path: Path, constraint: str
) -> None:
    out = run_campaign(config(tmp_path / "c", {"constraint": constraint}, "gradient"))

    with Store.open(out) as store:
        seeds = {seed.id: store.get_sample(seed.sample) for seed in store.seeds()}
        found = [
            (seeds[one.seed_id], store.get_sample(one.trigger))
            for one in store.outcomes()
            if one.status is Status.FOUND and one.trigger
        ]
    assert len(found) >= 7
    np.savez(tmp_path / "found.npz", images=np.array([trigger for _, trigger in found]))
    again = config(tmp_path / "again", {}, "none", seeds={"path": tmp_path / "found.npz"})
    with Store.open(run_campaign(again)) as store:
        assert {one.status for one in store.outcomes()} == {Status.SEED_DEVIATES}
    for seed, trigger in found:
        change = trigger.astype(int) - seed
        if constraint == "blackout":
            assert change.max() <= 0
        elif constraint == "occlusion":
            rows, columns, _ = np.nonzero(change)
            assert max(np.ptp(rows), np.ptp(columns)) < round(0.35 * min(seed.shape[:2]))


@pytest.mark.torch
def test_deepxplore_asks_about_what_the_hosts_models_differ_on(
    tmp_path: Path, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options: dict[str, object] = {
        "others": damaged.name,
        "constraint": "blackout",
    }  # relative to this folder
    alone = run_campaign(config(tmp_path / "alone", options, "deepxplore"))
    limited = config(
        tmp_path / "workers", options, "deepxplore", workers=2, fleet={"total_queries": 34}
    )
    run_campaign(limited)
    monkeypatch.chdir("/")
    resume_campaign(limited.out, changes={"fleet": {"total_queries": None}})

    assert found_in(limited.out) == found_in(alone)
    with Store.open(alone) as store:
        outcomes = list(store.outcomes())
    assert sum(one.status is Status.FOUND for one in outcomes) >= 2
    assert all(one.host_only_queries >= 4 for one in outcomes)  # two models, both ways


@pytest.mark.torch
def test_a_further_original_that_was_changed_is_named_on_resuming(tmp_path, damaged) -> None:
    options = {"others": [str(damaged)]}
    stopped = config(tmp_path / "c", options, "deepxplore", fleet={"total_queries": 14})
    run_campaign(stopped)
    damaged_onnx(damaged, 0.5)

    with pytest.raises(UsageError, match=r"1, damaged\.onnx"):
        resume_campaign(stopped.out, changes={"fleet": {"total_queries": None}})
    damaged.unlink()
    with pytest.raises(UsageError, match=r"damaged\.onnx"):
        resume_campaign(stopped.out, changes={"fleet": {"total_queries": None}}, force=True)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "option 'others'"),
        ({"others": "nowhere.onnx"}, "file .*nowhere.onnx"),
        ({"others": [str(DEMO / "original.onnx")]}, "original itself"),
    ],
)
def test_deepxplore_without_a_further_original_does_not_begin(tmp_path, options, sentence) -> None:
    with pytest.raises(UsageError, match=sentence):
        run_campaign(config(tmp_path / "out", options, "deepxplore"))

    assert not (tmp_path / "out").exists()
