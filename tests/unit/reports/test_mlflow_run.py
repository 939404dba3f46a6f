"""What of a campaign is logged into MLflow, and what is refused before."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from command import edgeflare
from page_stores import many_triggers
from stores import replay_store, replicated_campaign

from edgeflare.analysis import summarize
from edgeflare.errors import UsageError
from edgeflare.reports import log_to_mlflow
from edgeflare.reports.mlflow_run import (
    _redacted,
    _without_secrets,
    run_metrics,
    run_params,
    run_tags,
)
from edgeflare.reports.sections.campaign import make_report
from edgeflare.store import Store


def test_metrics_and_params_are_of_the_summary_and_the_settings(tmp_path: Path) -> None:
    with Store.open(many_triggers(tmp_path / "c", 20)) as store:
        summary, params = summarize(store), run_params(store)
    metrics, said = run_metrics(summary), summary.to_json()
    assert metrics["success_rate"] == said["success_rate"]
    for field in ("queries_found.p90", "total_queries.search", "every_device.answered"):
        name, _, part = field.partition(".")
        assert metrics[field] == said[name][part]
    (row,) = (one for one in said["telemetry"] if one["device"] == "pi-5")
    assert metrics["telemetry.pi-5.temperature_max_c"] == row["temperature_max_c"]
    assert metrics["by_device.pi-4.found"] == said["by_device"][0]["found"]
    assert not {"wall_s", "snr_db", "telemetry.pi-5.gpu_load"} & set(metrics)
    assert not [name for name in metrics if name.startswith(("search.", "models", "devices"))]
    expected = {
        "original.name": "original.onnx",
        "deployed.sha256": "cd" * 32,
        "deployed.runtime": "onnx 1.20.0",
        "devices": "pi-4, pi-5",
        "seeds": "seeds.npz",
        "search.strategy": "boundary",
        "fleet.mode": "replicate",
        "search.margin_floor": "0.001",
    }
    assert {name: params[name] for name in expected} == expected
    assert not {"", "null", "None"} & {*params.values()}


def test_no_metric_is_a_truth_value_or_no_number_and_any_name_is_taken(tmp_path: Path) -> None:
    with replicated_campaign(tmp_path / "c") as store:
        summary = replace(summarize(store), l2=float("nan"), linf=float("inf"))
    metrics = run_metrics(summary)
    assert "by_device.pi -1.found" in metrics
    assert not {"l2", "linf"} & set(metrics)
    with replay_store(tmp_path / "replay") as store:
        metrics = run_metrics(summarize(store))
    assert metrics["replay.counts.new"] == 1
    assert "replay.same_deployed" not in metrics


def test_the_tags_say_whether_the_limits_are_kept(every_status) -> None:
    with every_status(limits={"min_l2": 1.0}) as store:
        tags = run_tags(make_report(store))
        assert tags["edgeflare.campaign"] == store.id
    assert tags["edgeflare.limits"] == "crossed"
    assert "crossed: min_l2" in tags["edgeflare.verdict"]


def test_without_mlflow_the_sentence_says_what_to_install(
    every_status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with every_status() as store, pytest.raises(UsageError, match=r"^--mlflow"):
        log_to_mlflow(store)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "campaign with --mlflow"),
        (["--mlflow-uri", "x"], "--mlflow-uri and --mlflow-experiment"),
        (["out", "--mlflow-experiment", "x"], "--mlflow; add"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, arguments: list[str], words: str) -> None:
    ran = edgeflare("export", "c", *arguments, home=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.sentence


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://bob:s3cret@h:5000/mlflow/", "http://h:5000/mlflow/"),
        ("http://s3cret@h", "http://h"),
        ("postgresql://bob:s3/cret@h/db", "postgresql://h/db"),
        ("postgresql://bob:s3@cret@h/db", "postgresql://h/db"),
        ("postgresql://bob:s3%2Fcret@h/db", "postgresql://h/db"),
        ("postgresql://h/db?user=bob&password=s3cret", "postgresql://h/db"),
        ("postgresql://bob:s3?cret@h/db", "postgresql://***"),
        ("postgresql://h/db?password=s3@cret", "postgresql://***"),
        ("http://h/#s3cret", "http://h/"),
        ("sqlite:////tmp/mlflow.db", "sqlite:////tmp/mlflow.db"),
        ("./runs@2", "./runs@2"),
        ("/", "/"),
    ],
)
def test_no_secret_of_the_address_is_shown(uri: str, shown: str) -> None:
    assert _without_secrets(uri) == shown
    endpoint = f"{uri.rstrip('/')}/api/2.0"
    assert _redacted(f"to {endpoint} failed", uri) == f"to {shown.rstrip('/')}/api/2.0 failed"


@pytest.mark.parametrize(
    "uri", ["http://bob:s3%2Fcret@h", "db://bob:s3/cret@h", "db://h?p=s3/cret"]
)
def test_a_secret_alone_is_redacted_in_the_servers_text(uri: str) -> None:
    assert "user bob" in _redacted("user bob, not s3/cret", uri)
