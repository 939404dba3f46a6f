"""The trend page and its charts."""

import math
import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

from nights import add_night, figures, forty_nights, red, run_of

from edgeflare.nightly.history import History
from edgeflare.nightly.nights import NIGHT_NAME
from edgeflare.nightly.reports import MOST_NIGHTS, charts, write_page
from edgeflare.reports.charts import Line, Point, line_chart


class _Read(HTMLParser):
    """A page's text, links and anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.links += [values[name] for name in ("href", "src") if name in values]
        self.anchors |= {values["id"]} if "id" in values else set()
        self.labels += [values["aria-label"]] if "aria-label" in values else []

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: Path) -> _Read:
    reader = _Read()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def words_of(reader: _Read) -> str:
    return re.sub(r"\s+", " ", " ".join(reader.text))


def test_a_page_of_weeks_shows_the_red_night_and_the_one_with_a_device_away(tmp_path: Path) -> None:
    reader = read(write_page(forty_nights(tmp_path)))
    text = words_of(reader)
    assert "2026-04-06 02:00 UTC" in text
    assert "3 of 191" in text
    assert "SHA-256 was 3f2a91c0" in text
    assert "pi4 can't" in text
    severities = [label for label in reader.labels if label.startswith("Severity")]
    assert any("red on 2026-04-06" in label for label in severities)
    assert any("away on 2026-03-21" in label for label in severities)
    assert text.index("2026-04-09 02:00 UTC") < text.rindex("2026-03-01 02:00 UTC")


def test_every_link_of_the_page_leads_somewhere_and_none_to_a_network(tmp_path: Path) -> None:
    history = History(tmp_path)
    night = add_night(history, 0, run_of("int8", "ssh://me@pi:22"), campaigns=True)
    for folder in (night.campaign(night.runs[0]), night.replayed(night.runs[0])):
        (folder / "report.html").write_text("a report")
    reader = read(write_page(history))
    links = [link for link in reader.links if not link.startswith("data:")]
    for part in ("search", "replay"):
        assert any(link.endswith(f"{part}/report.html") for link in links)
    assert "int8 on ssh://me@pi:22" in words_of(reader)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in reader.anchors
        else:
            assert (tmp_path / link).is_file()


def test_a_red_night_is_named_on_top_until_it_is_green_again(tmp_path: Path) -> None:
    history = History(tmp_path)
    add_night(history, 0, run_of("int8", "pi4"), run_of("big", "pi4"))
    bad = run_of("int8", "pi4", "regression", **red("got worse <b>"))
    add_night(history, 1, bad, run_of("big", "pi4", "regression", **red("big got worse")))
    add_night(history, 2, run_of("int8", "pi4", "away"), run_of("big", "pi4"))
    page = write_page(history)
    text = words_of(read(page))
    top = text[: text.index("Last night:")]
    assert "night of 2026-03-02" in top
    assert "got worse <b>" in top
    assert "big got worse" not in top.replace("int8", "")
    add_night(history, 3, run_of("int8", "pi4"), run_of("big", "pi4"))
    assert "Red: night of" not in words_of(read(write_page(history)))


def test_the_table_has_the_newest_nights_and_says_how_many_are_older(tmp_path: Path) -> None:
    history = History(tmp_path)
    add_night(history, 0, run_of("int8", "pi4", "regression", **red()))
    for day in range(1, MOST_NIGHTS + 2):
        add_night(history, day, run_of("int8", "pi4"))
    page = write_page(history)
    reader = read(page)
    assert page.read_text(encoding="utf-8").count('<th scope="row">') == MOST_NIGHTS
    assert "2 older nights" in words_of(reader)
    assert all(link[1:] in reader.anchors for link in reader.links if link.startswith("#"))


def test_interrupted_and_damaged_nights_are_reported(tmp_path: Path) -> None:
    history = History(tmp_path)
    night = add_night(history, 0, run_of("int8", "pi4"), state="interrupted")
    history.save(night.model_copy(update={"planned": 3}))
    broken = add_night(history, 1, run_of("int8", "pi4"))
    (broken.folder / NIGHT_NAME).write_text("[]")
    text = words_of(read(write_page(history)))
    assert "2 of 3" in text
    assert f"night {broken.folder}" in text


def test_a_chart_breaks_its_line_where_a_night_has_no_value() -> None:
    nights = [
        Point(f"2026-01-0{n}", state)
        for n, state in enumerate(["green", "green", "away", "green", "regression"], 1)
    ]
    chart = line_chart("Severity", nights, [Line("severity", [0.1, 0.2, None, 0.1, 0.4])])
    assert chart.count("<polyline") == 2
    assert chart.count('class="mark green"') == 3
    assert chart.count('class="mark away"') == 1
    assert chart.count('class="mark regression"') == 1
    assert "0.1, highest 0.4" in chart
    assert "red on 2026-01-05" in chart


def test_a_chart_of_nothing_is_none_and_one_night_is_drawn() -> None:
    night = [Point("2026-01-01", "green")]
    assert line_chart("x", night, [Line("x", [None])]) is None
    assert line_chart("x", night, [Line("x", [math.nan])]) is None
    chart = line_chart("x", night, [Line("x", [0.0])], least=0)
    assert chart.count('class="mark green"') == 1
    assert "nan" not in chart


def test_two_nights_of_one_day_have_labels_that_differ(tmp_path: Path) -> None:
    history = History(tmp_path)
    one, other = (
        add_night(history, number, run_of("int8", "pi4", search=figures())) for number in range(2)
    )
    (chart, *_) = charts([one, other], "int8", "pi4")
    assert ">2026-03-01<" in chart.drawing
    later = other.model_copy(update={"started_at": one.started_at + timedelta(hours=9)})
    (chart, *_) = charts([one, later], "int8", "pi4")
    assert ">2026-03-01 02:00<" in chart.drawing
    assert ">2026-03-01 11:00<" in chart.drawing
