"""The figures of a campaign, reckoned by hand."""

import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest
from stores import ended

from edgeflare.analysis import LabelPair, Spread, summarize
from edgeflare.errors import StoreError
from edgeflare.store import Store
from edgeflare.types import FrontPoint


def test_a_campaign_that_ended_in_every_way(finished):
    summary = summarize(finished)
    assert (summary.seeds, summary.finished, summary.unfinished, summary.skipped) == (10, 9, 1, 1)
    once = dict.fromkeys(("seed-deviates", "unstable", "nonfinite", "exhausted", "timeout"), 1)
    assert summary.by_status == {"found": 4, **once, "gave-up": 0, "failed": 0}
    assert (summary.searched, summary.found, summary.success_rate) == (8, 4, 0.5)
    assert summary.ties == 1
    assert summary.queries_found == Spread(count=4, mean=40.0, median=25.0, p90=pytest.approx(79))
    searched = Spread(count=8, mean=112.5, median=50.0, p90=pytest.approx(248))
    assert summary.queries_searched == searched
    assert summary.seconds_found == Spread(count=4, mean=2.5, median=2.5, p90=pytest.approx(3.7))
    assert summary.seconds_searched.mean == pytest.approx(46 / 8)
    counts = {"seed": 9, "search": 900, "confirmation": 8, "host_only": 12}
    assert summary.total_queries == counts | {"survey": 0, "measuring": 0}
    assert summary.label_pairs == (LabelPair(1, 0, 3), LabelPair(0, 1, 1))
    assert (summary.original_margin, summary.deployed_margin) == (0.5, 1.0)
    assert summary.linf == (9 + 60) / 2
    assert 9 / 255 < summary.l2 < 62 / 255
    assert [device["name"] for device in summary.devices] == ["bench pi"]
    assert summary.models["deployed"]["sha256"] == "bb"
    data = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert data["label_pairs"][0] == {"original": 1, "deployed": 0, "count": 3}
    assert data["queries_found"]["mean"] == 40.0
    with pytest.raises(FrozenInstanceError):
        summary.found = 7
    finished.close()
    assert summarize(finished.folder) == summary
    with pytest.raises(StoreError, match="campaign folder"):
        summarize(finished.folder / "missing")


def test_a_trigger_is_counted_where_the_search_went_on_for_a_more_severe_one(finished):
    front = FrontPoint(3, 0.1, 0.5, 4), FrontPoint(55, 0.4, 0.7, 6)
    counts = {"search_queries": 60, "seed_queries": 1}
    ended(finished, "digits/9.png", trigger=1, front=front, **counts)
    summary = summarize(finished)
    assert (summary.queries_found.count, summary.queries_found.median) == (5, 20.0)
    assert summary.to_json()["queries_found"]["mean"] == (10 + 20 + 30 + 100 + 3) / 5
    assert summary.queries_searched.mean == (900 + 60) / 9
    assert summary.total_queries["search"] == 960


def test_a_campaign_with_nothing_finished(tmp_path):
    with Store.create(tmp_path / "c", {}) as store:
        summary = summarize(store)
    assert (summary.success_rate, summary.queries_found, summary.l2) == (None, None, None)
    json.dumps(summary.to_json(), allow_nan=False)


def test_a_summary_needs_no_opencv():
    program = "import sys; import edgeflare.analysis.summary; sys.exit('cv2' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", program], env=environment).returncode == 0
