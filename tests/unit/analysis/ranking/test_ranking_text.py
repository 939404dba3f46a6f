"""What a ranking tells beside its order: why a tie is one, and that a candidate is the original."""

from pathlib import Path

from stores import Ended, candidate

from edgeflare import rank_campaigns
from edgeflare.types import Status

SEEDS = 8


def steady(level: float, seeds: int = SEEDS) -> list[Ended]:
    return [Ended(level)] * seeds


class TestTies:
    def test_a_tie_for_want_of_seeds_says_so(self, tmp_path: Path) -> None:
        folders = [
            candidate(tmp_path / name, steady(level, 3)) for name, level in (("a", 0.1), ("b", 0.9))
        ]
        ranking = rank_campaigns(folders)
        assert ranking.duels[0].too_few
        assert (ranking.duels[0].differing, ranking.duels[0].needed) == (3, 6)
        assert "6 seeds" in (ranking.verdict)

    def test_a_tie_for_want_of_seeds_that_differ_says_so(self, tmp_path: Path) -> None:
        same, levels = steady(0.1, 4), {"a": 0.1, "b": 0.9, "c": 0.9}
        folders = [
            candidate(tmp_path / name, [*same, *[Ended(level)] * 5])
            for name, level in levels.items()
        ]
        two, three = rank_campaigns(folders[:2]), rank_campaigns(folders)
        said = (
            "Too few seeds differ between a and b: 5 of 9, and a verdict at this confidence needs"
        )
        assert f"{said} 6" in two.verdict
        assert not two.notes[1:]  # said once
        notes = [one for one in three.notes if "Too few" in one]
        assert notes[0].startswith(f"{said} 7")
        assert len(notes) == 2  # b and c are alike


class TestTheOriginal:
    def test_a_candidate_that_answers_otherwise_is_not_taken_for_the_original(
        self, tmp_path: Path
    ) -> None:
        ended = [Ended(status=Status.GAVE_UP)] * SEEDS
        ended[0] = ended[0]._replace(right=False)
        folders = [
            candidate(tmp_path / "hard", ended),
            candidate(tmp_path / "pruned", steady(0.5), deployed="cc"),
        ]
        assert rank_campaigns(folders).notes == ()
