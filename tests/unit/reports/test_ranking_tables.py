"""A ranking on the terminal."""

import pytest
from stores import Ended, candidate

from edgeflare import Ranking, rank_campaigns
from edgeflare.reports import print_document, ranking_document


@pytest.fixture(scope="module")
def ranking(tmp_path_factory: pytest.TempPathFactory) -> Ranking:
    folder = tmp_path_factory.mktemp("ranked")
    levels = {"best": 0.1, "same": 0.1, "[worst]": 0.8}
    return rank_campaigns(
        [candidate(folder / name, [Ended(level)] * 12) for name, level in levels.items()]
    )


def printed(
    ranking: Ranking,
    width: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    print_document(ranking_document(ranking, {"broken": "it can't be [read]"}))
    return capsys.readouterr().out


def test_the_verdict_comes_first_and_what_failed_below(
    ranking: Ranking, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = printed(ranking, 220, capsys, monkeypatch)
    assert "same (12 seeds" in out
    assert "[worst]: disagreement" in out
    assert "0.700 higher [0.700" in out
    rows = [line.split()[:2] for line in out.splitlines()]
    assert [row for row in rows if row[-1:] in (["best"], ["same"], ["[worst]"])][:3] == [
        ["1", "best"],
        ["1", "same"],
        ["3", "[worst]"],
    ]
    assert "ranked: broken" in out
    assert "kB" in out


def test_a_narrow_terminal_leaves_out_the_least_needed(
    ranking: Ranking, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = printed(ranking, 60, capsys, monkeypatch)
    table = [line for line in out.splitlines() if line.lstrip().startswith("place")]
    assert "disagreement" in table[0]
    assert "median" not in table[0]
    assert max(len(line) for line in out.splitlines() if "─" in line) <= 60
