"""A ranking on the terminal."""

from pathlib import Path

import pytest
from stores import Ended, candidate

from edgeflare import rank_campaigns
from edgeflare.reports import print_document, ranking_document


def test_the_verdict_comes_first_and_what_failed_below(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "220")
    levels = {"best": 0.1, "same": 0.1, "[worst]": 0.8}
    folders = [candidate(tmp_path / name, [Ended(level)] * 12) for name, level in levels.items()]
    ranking = rank_campaigns(folders)
    print_document(ranking_document(ranking, {"broken": "it can't be [read]"}))
    out = capsys.readouterr().out
    assert "same (12 seeds" in out
    assert "[worst]: disagreement" in out
    assert "0.700 higher [0.700" in out
    rows = [line.split()[:2] for line in out.splitlines()]
    ranked = [row for row in rows if row[-1:] in (["best"], ["same"], ["[worst]"])]
    assert ranked[:3] == [["1", "best"], ["1", "same"], ["3", "[worst]"]]
    assert "ranked: broken" in out
    assert "kB" in out
