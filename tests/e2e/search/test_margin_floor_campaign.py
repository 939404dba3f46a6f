"""A campaign with a margin floor: its findings, its counts, what a resume finds, what is shown and exported."""

import json
from pathlib import Path

import pytest
from command import DEMO, Ran, edgeflare, must_run

from edgeflare.store import Store
from edgeflare.types import Status

FLOOR = 0.2
PAIR = (
    *("--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite"),
    *("--seeds", DEMO / "seeds.npz", "--limit", 4, "--timeout", 0, "--strategy", "dflare"),
    "--no-survey",
)


def run(home: Path, *flags: object) -> Ran:
    return must_run("run", *PAIR, *flags, "--out", "campaign", home=home)


@pytest.mark.extended
def test_both_models_are_sure_of_every_finding(tmp_path: Path) -> None:
    run(tmp_path, "--margin-floor", FLOOR, "--max-queries", 2000)
    with Store.open(tmp_path / "campaign") as store:
        outcomes = list(store.outcomes())
    found = [one for one in outcomes if one.status is Status.FOUND]
    assert found, "nothing found: nothing is tested"
    for one in found:
        assert one.original_margin is not None
        assert one.deployed_margin is not None
        smaller = min(one.original_margin, one.deployed_margin)
        assert smaller >= FLOOR
        assert [tuple(point) for point in one.front] == [
            (one.search_queries, smaller, one.l2, one.linf)
        ]
    assert all(one.round_trips == one.search_queries for one in outcomes)
    assert sum(one.host_only_queries for one in outcomes) > 0
    shown = edgeflare("show", "campaign", home=tmp_path)
    assert "least 0.2" in " ".join(shown.out.split())
    must_run("export", "campaign", "out", home=tmp_path)
    lines = (tmp_path / "out" / "triggers.jsonl").read_text().splitlines()
    assert [json.loads(line)["front"] for line in lines if '"found"' in line] == [
        [point._asdict() for point in one.front] for one in sorted(found, key=_position)
    ]


def _position(one) -> int:  # type: ignore[no-untyped-def]
    return int("".join(filter(str.isdigit, one.seed_id)))
