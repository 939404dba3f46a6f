"""What was done to the seeds, in a campaign's summary, its `show` and its export."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import ended, store_of

from edgeflare.analysis import summarize
from edgeflare.cli.display.tables import print_summary
from edgeflare.reports import export_campaign
from edgeflare.types import Status

JPEG = {"operator": "jpeg", "params": {"quality": 37}}
TURNED = {"operator": "rotation", "params": {"degrees": 4.2}}
GONE = {"operator": "operator-that-was-uninstalled", "params": {"size": 3}}


def campaign(folder: Path, steps: Sequence[Sequence[dict[str, Any]]]) -> Path:
    """A campaign whose seed n was found by steps[n]; the last seed's search ended first, with nothing after it."""
    ids = [f"set/{number}.png" for number in range(len(steps) + 1)]
    both = {"answers": (np.array([0.9, 0.1]), np.array([0.1, 0.9]))}
    with store_of(folder, seeds=ids) as store:
        ended(store, ids[-1], Status.EXHAUSTED, mutations=[JPEG])
        for name, mutations in reversed(list(zip(ids, steps, strict=False))):
            ended(store, name, trigger=10, search_queries=1, mutations=mutations, **both)
    return folder


def test_corruptions_count_by_triggering_input_most_frequent_first(tmp_path: Path) -> None:
    steps = [[JPEG, TURNED, JPEG], [TURNED], [GONE], []]
    summary = summarize(campaign(tmp_path / "c", steps))
    assert list(summary.corruptions.items()) == [("rotation", 2), ("jpeg", 1)]
    told = json.loads(json.dumps(summary.to_json()))
    assert told["corruptions"] == {"rotation": 2, "jpeg": 1}
    turned = "rotated by 4.2 degrees counter-clockwise"
    assert [one["words"] for one in told["triggers"]] == [
        *(["JPEG quality 37", turned, "JPEG quality 37"], [turned]),
        *(["operator-that-was-uninstalled (size=3)"], []),
    ]


def test_the_first_triggers_come_in_the_order_of_the_seeds(tmp_path: Path) -> None:
    summary = summarize(campaign(tmp_path / "c", [[JPEG]] * 12))
    assert [one.seed_id for one in summary.triggers] == [f"set/{n}.png" for n in range(10)]
    assert {(one.original_label, one.deployed_label) for one in summary.triggers} == {(0, 1)}


def test_a_long_chain_takes_two_lines_at_most_unless_all_of_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    idle = {"operator": "median-blur", "params": {"kernel": 1}}
    noise = {"operator": "multiplicative-noise", "params": {"mean": 1.0123, "variance": 0.0123}}
    summary = summarize(campaign(tmp_path / "c", [[noise, idle] * 20 + [JPEG]]))
    print_summary(summary, False)
    _, _, rows = capsys.readouterr().out.partition("what was done to it")
    told = [line for line in rows.splitlines()[1:] if line.strip(" ─━")]
    assert len(told) <= 2
    assert "earlier" in told[0]
    print_summary(summary, False, wide=True)
    everything = capsys.readouterr().out
    assert everything.count("variance=0.0123") == 20
    assert "kernel" not in everything


def test_every_exported_line_has_the_words_of_its_steps(tmp_path: Path) -> None:
    export_campaign(campaign(tmp_path / "c", [[JPEG, GONE], []]), tmp_path / "out")
    lines = (tmp_path / "out" / "triggers.jsonl").read_text().splitlines()
    assert [json.loads(line)["words"] for line in lines] == [
        ["JPEG quality 37", "operator-that-was-uninstalled (size=3)"],
        [],
    ]
