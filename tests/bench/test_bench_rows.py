import json
import sys
from pathlib import Path

import pytest
from benches import bench_of, fill_cell, image, suite_of
from skimage import metrics

from edgeflare.errors import StoreError
from edgeflare.types import Status
from edgeflare_bench.cells import Bench, Cell
from edgeflare_bench.searches import COLUMNS, Similarities, read_cell

CELL = Cell("One pair", "a", 1)
ENDED = [(Status.FOUND, 30), (Status.FOUND, 8), (Status.EXHAUSTED, 50), (Status.SEED_DEVIATES, 0)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = bench_of(tmp_path / "bench", suite_of())
    fill_cell(bench, CELL, ENDED)
    return bench


def test_they_come_in_the_order_of_the_seeds(bench: Bench) -> None:
    rows = read_cell(bench, CELL, Similarities()).rows
    assert [(row.seed_id, row.status, row.queries) for row in rows] == [
        ("seed-0", "found", 30),
        ("seed-1", "found", 8),
        ("seed-2", "exhausted", 50),
        ("seed-3", "seed-deviates", 0),
    ]
    assert {(row.pair, row.strategy, row.repeat) for row in rows} == {tuple(CELL)}


def test_a_triggering_input_is_described(bench: Bench) -> None:
    first, second, *_ = read_cell(bench, CELL, Similarities()).rows
    trigger = image(0)
    trigger[0, 0] += 10
    similarity = metrics.structural_similarity(image(0)[..., 0], trigger[..., 0], data_range=255)
    assert (first.searched, first.found, first.seconds) == (True, True, 3.0)
    assert (first.l2, first.linf) == (pytest.approx(10 / 255), 10)
    assert first.ssim == pytest.approx(similarity)
    assert (first.original_margin, first.deployed_margin) == pytest.approx((0.8, 0.4))
    assert (first.original_label, first.deployed_label, first.seed_label_kept) == (0, 1, True)
    assert (second.original_label, second.deployed_label, second.seed_label_kept) == (1, 0, False)
    assert first.trigger is not None
    assert first.trigger != second.trigger


def test_what_was_done_is_reported_in_words(bench: Bench, tmp_path: Path) -> None:
    first, second, exhausted, _ = read_cell(bench, CELL, Similarities()).rows
    assert (first.words, second.words) == ("original 0, device 1", "original 1, device 0")
    assert exhausted.words is None
    natural = bench_of(tmp_path / "natural", suite_of())
    steps = [
        {"operator": "jpeg", "params": {"quality": 37}},
        {"operator": "rotation", "params": {"degrees": -4.2}},
        *[{"operator": "operator-that-was-uninstalled", "params": {}}] * 4,
    ]
    fill_cell(natural, CELL, ENDED, mutations=steps)
    told = read_cell(natural, CELL, Similarities()).rows[0].words
    gone = " + ".join(["operator-that-was-uninstalled"] * 4)
    assert told == f"1 earlier + rotated by 4.2 degrees clockwise + {gone}: original 0, device 1"


def test_what_it_cost_is_counted(bench: Bench) -> None:
    first, *_, exhausted, deviates = read_cell(bench, CELL, Similarities()).rows
    counted = [
        (row.host_queries, row.device_queries, row.round_trips)
        for row in (first, exhausted, deviates)
    ]
    assert counted == [(60, 1 + 30 + 2, 15), (100, 51, 25), (0, 1, 0)]


def test_the_margins_on_the_way_are_kept(bench: Bench) -> None:
    first, *_, exhausted, _ = read_cell(bench, CELL, Similarities()).rows
    (point,) = first.front
    assert (point.queries, point.margin, point.linf) == (30, 0.4, 10)
    assert first.smaller_margin == pytest.approx(0.4)
    assert (exhausted.front, exhausted.smaller_margin) == ((), None)
    told = json.loads(json.dumps(first.to_json()))
    assert told["front"] == [{"queries": 30, "margin": 0.4, "l2": first.l2, "linf": 10}]
    assert [told[name] for name in COLUMNS[:7]] == [*CELL, "seed-0", "found", True, True]


def test_without_a_triggering_input_there_is_nothing_to_describe(bench: Bench) -> None:
    *_, exhausted, deviates = read_cell(bench, CELL, Similarities()).rows
    assert (exhausted.searched, exhausted.found) == (True, False)
    assert (deviates.searched, deviates.found) == (False, False)
    for row in (exhausted, deviates):
        assert (row.l2, row.ssim, row.original_margin, row.seed_label_kept, row.trigger) == (
            *(None,) * 5,
        )


def test_a_cell_that_has_not_started_has_none(bench: Bench) -> None:
    assert read_cell(bench, CELL._replace(repeat=0), Similarities()).rows == []


def test_of_the_campaign_itself_the_rest_is_read(bench: Bench) -> None:
    records = read_cell(bench, CELL, Similarities())
    assert records.ties == {"seed-0"}
    assert dict(records.queries) == {"seed": 4, "search": 88, "confirmation": 4, "host_only": 176}
    assert [device.name for device in records.devices] == ["pi-1"]


def test_a_damaged_campaign_is_reported(bench: Bench) -> None:
    (bench.campaign(CELL) / "campaign.sqlite").write_bytes(b"SQLite format 3\0" + b"?" * 4000)
    with pytest.raises(StoreError, match="damaged"):
        read_cell(bench, CELL, Similarities())


class TestSimilaritiesOfAnEarlierReport:
    def _earlier(self, bench: Bench, pair: str, trigger: str | None, value: str) -> Similarities:
        (bench.folder / "searches.csv").write_text(
            f"pair,seed_id,trigger,ssim\n{pair},seed-0,{trigger},{value}\n", encoding="utf-8"
        )
        return Similarities(bench.folder)

    def test_they_are_taken_over(self, bench: Bench) -> None:
        first = read_cell(bench, CELL, Similarities()).rows[0]
        earlier = self._earlier(bench, "One pair", first.trigger, "0.125")
        assert read_cell(bench, CELL, earlier).rows[0].ssim == 0.125

    @pytest.mark.parametrize(("pair", "trigger"), [("One pair", "other"), ("Other pair", None)])
    def test_those_of_other_inputs_are_not(self, bench, pair, trigger) -> None:
        first = read_cell(bench, CELL, Similarities()).rows[0]
        earlier = self._earlier(bench, pair, trigger or first.trigger, "0.125")
        assert read_cell(bench, CELL, earlier).rows[0].ssim == first.ssim

    @pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"pair,ssim\nx,1\n", b"a,b\n1,2\n"])
    def test_a_file_that_is_none_is_left_aside(self, bench: Bench, content: bytes) -> None:
        (bench.folder / "searches.csv").write_bytes(content)
        rows = read_cell(bench, CELL, Similarities(bench.folder)).rows
        assert rows == read_cell(bench, CELL, Similarities()).rows

    def test_without_the_library_the_new_ones_are_unknown(self, bench, monkeypatch) -> None:
        first = read_cell(bench, CELL, Similarities()).rows[0]
        similarities = self._earlier(bench, "One pair", first.trigger, "0.125")
        monkeypatch.setitem(sys.modules, "skimage", None)
        rows = read_cell(bench, CELL, similarities).rows
        assert [row.ssim for row in rows] == [0.125, None, None, None]
        assert "pip install 'edgeflare[bench]'" in similarities.notice
