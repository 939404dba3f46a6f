"""Searches with gradients of the original: nearer with fewer host queries, the same in every process."""

import sys
from pathlib import Path

import numpy as np
import pytest
from campaigns import found_in
from command import DEMO

from edgeflare import CampaignConfig, config_from, resume_campaign, run_campaign
from edgeflare.campaign import provenance
from edgeflare.errors import UsageError
from edgeflare.store import Store

pytestmark = pytest.mark.usefixtures("own_home")

GRADIENTS = {"gradients": True}


def config(out: Path, options: dict[str, object], **more: object) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": 10},
        "search": {"strategy": "boundary", "options": options, "timeout_s": 0},
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


def test_without_torch_the_campaign_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(UsageError, match=r"pip install 'edgeflare\[torch\]'"):
        run_campaign(config(tmp_path / "out", GRADIENTS))

    assert not (tmp_path / "out").exists()


@pytest.mark.torch
def test_an_original_that_is_no_onnx_file_is_refused_at_the_start(tmp_path: Path) -> None:
    original = {"path": DEMO / "deployed.tflite"}

    with pytest.raises(UsageError, match="give it as an ONNX file, or leave gradients out"):
        run_campaign(config(tmp_path / "out", GRADIENTS, original=original))

    assert not (tmp_path / "out").exists()


@pytest.mark.torch
def test_pytorchs_version_belongs_to_what_a_campaign_is_resumed_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = config(tmp_path / "c", GRADIENTS, fleet={"total_queries": 34})
    run_campaign(stopped)
    installed = provenance.version
    monkeypatch.setattr(
        provenance, "version", lambda name: "0.0" if name == "torch" else installed(name)
    )

    with pytest.raises(UsageError, match=r"torch was .*, is 0\.0"):
        resume_campaign(stopped.out, changes={"fleet": {"total_queries": None}})
