import csv
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from benches import bench_of, fill_cell, suite_of

from edgeflare._internal.text import margin_text, number_text, p_value_text, percent_text
from edgeflare.errors import StoreError
from edgeflare.reports.document import plain, to_markdown
from edgeflare.store import Store
from edgeflare.types import Status
from edgeflare_bench.cells import Bench, Cell, cells
from edgeflare_bench.report import BenchReport, bench_report
from edgeflare_bench.reports.document import bench_document
from edgeflare_bench.reports.writing import write_report
from edgeflare_bench.suite import Suite, suite_from

QUICK = [(Status.FOUND, 10), (Status.FOUND, 1200), (Status.FOUND, 33), (Status.SEED_DEVIATES, 0)]
SLOW = [(Status.FOUND, 60), (Status.TIMEOUT, 80), (Status.UNSTABLE, 45), (Status.SEED_DEVIATES, 0)]


def filled(folder: Path) -> Bench:
    published = [
        {
            "pair": "One pair",
            "strategy": "a",
            "source": "paper | table 4",
            "queries": 83.97,
            "success": 1.0,
            "seconds": 0.513,
        },
        {"pair": "One pair", "strategy": "a", "source": "their code", "queries": 101.7},
    ]
    bench = bench_of(folder, suite_of(published=published))
    for cell in cells(bench.suite):
        fill_cell(bench, cell, QUICK if cell.strategy == "a" else SLOW)
    return bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """For tests that only read it."""
    return filled(tmp_path_factory.mktemp("benches") / "bench")


@pytest.fixture(scope="module")
def report(bench: Bench) -> BenchReport:
    return bench_report(bench)


@pytest.fixture(scope="module")
def paths(report: BenchReport, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_report(report, tmp_path_factory.mktemp("written"))


@pytest.fixture(scope="module")
def written(paths: list[Path]) -> Path:
    return paths[0].parent


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture(scope="module")
def text(written: Path) -> str:
    return (written / "report.md").read_text(encoding="utf-8")


def document(bench: Bench) -> str:
    return to_markdown(bench_document(bench_report(bench)))


def lines_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tables(text: str, heading: str) -> list[list[list[str]]]:
    """The cells of each table below a heading, its own headings first."""
    part = text.split(heading, 1)[1].split("\n## ", 1)[0]
    return [
        [
            line.removeprefix("| ").removesuffix(" |").split(" | ")
            for line in block.splitlines()
            if "---" not in line
        ]
        for block in part.split("\n\n")
        if block.startswith("| ")
    ]


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    return tables(text, heading)[0]


class TestFiles:
    def test_it_writes_all_of_them(self, paths: list[Path], written: Path) -> None:
        assert [path.relative_to(written).as_posix() for path in paths] == [
            *("report.md", "report.json", "summary.csv", "searches.csv", "histograms/One-pair.png"),
            "fronts/One-pair.png",
        ]
        assert {path for path in written.rglob("*") if path.is_file()} == set(paths)
        assert paths[-1].read_bytes().startswith(b"\x89PNG")

    def test_the_json_is_the_report(self, report: BenchReport, written: Path) -> None:
        values = json.loads((written / "report.json").read_text(encoding="utf-8"))
        assert values == json.loads(json.dumps(report.to_json()))

    def test_the_summary_has_a_line_for_each_source(self, written: Path) -> None:
        first, second, other = lines_of(written, "summary.csv")
        assert (first["pair"], first["strategy"], first["found"]) == ("One pair", "a", "6")
        assert float(first["queries_mean"]) == pytest.approx(1243 / 3)
        assert float(first["queries_low"]) < 414 < float(first["queries_high"])
        assert float(first["found_within_5_s"]) == pytest.approx(4 / 6)
        assert float(first["device_queries_mean"]) == pytest.approx(1243 / 3 + 3)
        assert float(first["host_queries_median"]) == 66
        requests = (5 + 600 + 16) / 3
        assert float(first["seconds_mean_at_100_ms"]) == pytest.approx(124.3 / 3 + requests / 10)
        assert (first["published_source"], first["published_queries"]) == (
            *("paper | table 4", "83.97"),
        )
        assert (second["published_source"], second["published_success"]) == ("their code", "")
        assert (other["strategy"], other["timeout"], other["unstable"]) == ("b", "2", "2")
        assert (other["seed_deviates"], other["published_source"]) == ("2", "")

    def test_every_search_has_a_line(self, report: BenchReport, written: Path) -> None:
        lines = lines_of(written, "searches.csv")
        assert len(lines) == len(report.searches) == 16
        for line, row in zip(lines, report.searches, strict=True):
            assert (line["seed_id"], int(line["queries"])) == (row.seed_id, row.queries)
            assert json.loads(line["front"]) == row.to_json()["front"]
            assert line["ssim"] == ("" if row.ssim is None else repr(row.ssim))

    def test_it_takes_the_place_of_an_earlier_one_whose_pictures_do_not_stay(
        self, report: BenchReport, written: Path, tmp_path: Path
    ) -> None:
        folder = tmp_path / "out"
        shutil.copytree(written, folder)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for kind in ("histograms", "fronts"):
            (folder / kind / "Gone.png").write_bytes(b"of a pair that is no longer there")
            (folder / kind / "notes.txt").write_text("the user's own")
        again = write_report(report, folder)
        assert {path: path.read_bytes() for path in again} == before
        assert not list(folder.rglob(".new-*"))
        for kind in ("histograms", "fronts"):
            names = {path.name for path in (folder / kind).iterdir()}
            assert names == {"One-pair.png", "notes.txt"}

    @pytest.mark.usefixtures("no_matplotlib")
    def test_a_folder_that_cannot_be_written_is_reported(self, report, tmp_path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="written"):
            write_report(report, tmp_path / "file")

    @pytest.mark.usefixtures("no_matplotlib")
    def test_a_file_that_cannot_be_replaced_leaves_nothing_half_done(
        self, report: BenchReport, tmp_path: Path
    ) -> None:
        (tmp_path / "summary.csv").mkdir()
        with pytest.raises(StoreError, match=r"summary\.csv.*can't"):
            write_report(report, tmp_path)
        assert not list(tmp_path.glob(".*"))

    @pytest.mark.usefixtures("no_matplotlib")
    def test_without_matplotlib_the_report_says_so(self, report, tmp_path) -> None:
        paths = write_report(report, tmp_path)
        assert [path.name for path in paths] == [
            *("report.md", "report.json", "summary.csv", "searches.csv"),
        ]
        assert "pictures need matplotlib" in (tmp_path / "report.md").read_text("utf-8")
        assert "pictures need" in (tmp_path / "report.json").read_text("utf-8")


class TestDocument:
    def test_ours_stands_next_to_what_was_published(self, text: str) -> None:
        _, first, second = table_rows(text, "## Results")
        assert first[:4] == ["One pair", "a", "100 % (6 of 6)", "414.33"]
        assert first[4].startswith("10.00 to ")
        _, paper, code = table_rows(text, "### Published figures")
        assert paper[2:4] == [r"paper \| table 4", "83.97"]
        assert (paper[5], paper[7]) == ("100 %", "0.513")
        assert code[2:6] == ["their code", "101.70", "414.33", "–"]
        assert second[1:4] == ["b", "33.3 % (2 of 6)", "60.00"]

    def test_figures_of_those_found_are_called_so(self, text: str) -> None:
        header, *_ = table_rows(text, "## Results")
        assert header[5:7] == ["median", "90th percentile"]
        about = text.split("## Results", 1)[1].split("##", 1)[0]
        assert "90th percentile)" in about

    def test_only_shorter_timeouts_are_reported(self, text: str, tmp_path: Path) -> None:
        assert "found within 15" in text
        strategies = [{"name": "a"}, {"name": "b", "timeout_s": 5}]
        short = bench_of(tmp_path / "short", suite_of(strategies=strategies, timeout_s=10))
        for cell in cells(short.suite):
            fill_cell(short, cell, QUICK)
        text = document(short)
        header, first, second = table_rows(text, "## Time")
        assert header[4:6] == ["found within 5 s", "ran out of time"]
        assert (first[4], second[4]) == ("66.7 %", "–")
        assert "queries counts here" in text

    def test_a_correlation_of_means_that_leave_searches_out_says_so(self, tmp_path: Path) -> None:
        bench = bench_of(tmp_path / "bench", suite_of(["P1", "P2"]))
        for cell in cells(bench.suite):
            fill_cell(bench, cell, SLOW if cell.pair == "P2" and cell.strategy == "b" else QUICK)
        text = document(bench)
        header, whole, less = table_rows(text, "## Correlations")
        assert header[-1] == "lowest success"
        assert (whole[-1], less[-1]) == ("100 %", "33.3 %")
        assert "below 100" in text

    def test_every_table_has_as_many_cells_as_headings(self, text: str) -> None:
        for block in text.split("\n\n"):
            if block.startswith("| "):
                counts = {line.replace(r"\|", "").count("|") for line in block.splitlines()}
                assert len(counts) == 1, block

    def test_endings_without_a_trigger_are_reported(self, text: str) -> None:
        row = table_rows(text, "## Time")[2]
        assert row[:2] == ["One pair", "b"]
        assert row[-3:] == ["2", "0", "2 seed-deviates, 2 unstable"]

    def test_comparisons_come_in_words(self, text: str) -> None:
        row = table_rows(text, "## Comparison with a")[1]
        assert row[:5] == ["One pair", "b", "3", "33.3 %", "100 %"]
        assert row[-1] == "can't tell"
        row = table_rows(text, "### Queries")[1]
        assert row[:3] == ["One pair", "b", f"{(60 + 80 + 45) / 1243:.2f}"]
        assert row[-2].split()[1] in {"negligible", "small", "medium", "large"}
        assert "Delaney 2000" in text
        assert "Cohen 1988" in text

    def test_pictures_are_linked(self, text: str, written: Path) -> None:
        links = [line for line in text.splitlines() if line.startswith("![")]
        assert [link.rpartition("](")[2] for link in links] == [
            "histograms/One-pair.png)",
            "fronts/One-pair.png)",
        ]
        for kind in ("histograms", "fronts"):
            assert (written / kind / "One-pair.png").is_file()

    def test_devices_models_and_versions_are_reported(self, text: str) -> None:
        assert "board: Pi" in text
        assert "deployed | d.tflite" in text
        assert "**pi-0, pi-1**" in text
        assert "numpy 2" in text

    def test_different_models_are_all_reported(self, tmp_path: Path) -> None:
        bench = filled(tmp_path / "bench")
        cell = Cell("One pair", "b", 1)
        with Store.open(bench.campaign(cell)) as store:
            models = store.models
            store.set_models(models["original"], models["deployed"] | {"sha256": "cc"})
        text = document(bench)
        assert "deployed | d.tflite" in text
        assert "deployed | d.tflite" in text
        assert text.count("| One pair | original |") == 1
        assert "same models" in text

    def test_commands_work_for_a_folder_with_a_space(self, tmp_path: Path) -> None:
        bench = bench_of(tmp_path / "my bench", suite_of())
        text = document(bench)
        told = re.findall(r"`(edgeflare bench (?:resume|show) .*?)`", text)
        assert [shlex.split(one)[3:] for one in told] == [[str(bench.folder)]] * 2

    def test_what_is_left_and_what_failed_is_reported(self, tmp_path: Path) -> None:
        why = {"One-pair/a/0": "there is no\nmodel file"}
        bench = bench_of(tmp_path / "bench", suite_of(), why)
        fill_cell(bench, Cell("One pair", "b", 0), SLOW[:2], finished=False)
        text = document(bench)
        assert "0 finished, 3" in text
        assert "One-pair/a/0" in text
        assert "- One-pair/b/0: interrupted" in text
        assert "One-pair/a/1: not begun" in text
        assert f"bench resume {bench.folder}`" in text


# Costs and false alarms

EASY = [(Status.FOUND, 10), (Status.FOUND, 30), (Status.FOUND, 20), (Status.SEED_DEVIATES, 0)]
NONE = [(Status.EXHAUSTED, 50), (Status.EXHAUSTED, 50), (Status.GAVE_UP, 4), (Status.TIMEOUT, 8)]


def of_costs(folder: Path, suite: Suite, found_by: str) -> tuple[BenchReport, str]:
    """The report of a bench, and its document, in which these strategies found something."""
    bench = bench_of(folder / "bench", suite)
    for cell in cells(suite):
        fill_cell(bench, cell, EASY if cell.strategy in found_by else NONE)
    report = bench_report(bench)
    return report, to_markdown(bench_document(report))


def control() -> Suite:
    values = suite_of(baseline=None, margin_floor=0.001).model_dump()
    values["pairs"][0].update(control=True, study=None, x=None)
    values["strategies"][1]["margin_floor"] = 0.0
    return suite_from(values, "the test")


def test_one_table_does_where_every_search_found_something(tmp_path: Path) -> None:
    _, text = of_costs(tmp_path, suite_of(), "ab")
    ((header, first, second),) = tables(text, "## Costs\n")
    assert header[-3:] == ["+ 5 ms", "+ 20 ms", "+ 100 ms"]
    assert first == [
        *("One pair", "a", "6", "20.00", "20.0", "23.00", "10.00", "40", "40"),
        *("2.000", "2.050", "2.200", "3.000"),
    ]
    assert second[2:] == first[2:]


def test_those_that_found_nothing_have_a_table_with_what_they_spent(tmp_path: Path) -> None:
    _, text = of_costs(tmp_path, suite_of(), "a")
    found, spent = tables(text, "## Costs\n")
    assert [line[:2] for line in found[1:]] == [["One pair", "a"]]
    assert [line[1:4] for line in spent[1:]] == [["a", "6", "20.00"], ["b", "8", "28.00"]]


def test_a_control_without_a_finding_has_its_bound_instead_of_results(tmp_path: Path) -> None:
    report, text = of_costs(tmp_path, control(), "")
    ((_, first, second),) = tables(text, "## False alarms\n")
    assert first == [
        *(
            "One pair",
            "a",
            "0.001",
            "4",
            "0",
            "0",
            "0 %",
            "52.7 %",
            "4 exhausted, 2 gave-up, 2 timeout",
        ),
    ]
    assert second[:3] == ["One pair", "b", "0"]
    assert [one.upper_bound for one in report.false_alarms] == [pytest.approx(1 - 0.05**0.25)] * 2
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## False alarms", "## Costs", "## Repeat by repeat", "## How it was run"]
    assert not list((tmp_path / "bench").rglob("*.png"))


def test_a_control_s_false_alarms_are_described(tmp_path: Path) -> None:
    report, text = of_costs(tmp_path, control(), "b")
    assert [one.seeds_with for one in report.false_alarms] == [0, 4]
    ((_, _, second),) = tables(text, "## False alarms\n")
    assert second[3:] == ["4", "0", "4", "100 %", "100 %", "0"]
    ((_, described),) = tables(text, "## Quality of the triggering inputs\n")
    assert described[:2] == ["One pair", "b"]
    assert "## Results" not in text


def test_where_nothing_was_found_nothing_is_described(tmp_path: Path) -> None:
    _, text = of_costs(tmp_path, suite_of(), "")
    assert "triggering input" in text
    assert tables(text, "## Quality of the triggering inputs\n") == []
    assert "## Results" in text
    assert "## False alarms" not in text


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (number_text(None), "–"),
        (number_text(5812.47), "5,812.47"),
        (number_text(0.0314159, 3), "0.031"),
        (margin_text(0.314159), "0.314"),
        (margin_text(0.0014), "0.0014"),
        (margin_text(0.000361), "0.00036"),
        (margin_text(3.6e-7), "3.6e-07"),
        (margin_text(0.0), "0.000"),
        (margin_text(None), "–"),
        (percent_text(1.0), "100 %"),
        (percent_text(0.9999), "99.9 %"),
        (percent_text(0.0), "0 %"),
        (percent_text(0.00001), "0.1 %"),
        (percent_text(0.7412), "74.1 %"),
        (p_value_text(0.0004), "< 0.001"),
        (p_value_text(0.03125), "0.031"),
        (p_value_text(None), "–"),
        (plain("a|b\n_c_ <d>"), r"a\|b \_c\_ \<d\>"),
    ],
)
def test_figures_in_words(told: str, words: str) -> None:
    assert told == words
