"""Histograms and courses as SVG, and what goes into a page as it is."""

import json
import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.reports.charts import Axis, histogram, time_chart
from edgeflare.reports.html import embedded_json, render

BEGAN = datetime(2026, 11, 21, 2, tzinfo=timezone.utc)


def test_whole_numbers_have_a_bar_each() -> None:
    drawing = histogram([1, 1, 1, 3], "Queries & more", "queries")
    assert drawing.count("<rect") == 2
    assert "<title>1 queries: 3</title>" in drawing
    assert "3, median 1" in drawing


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([0.5, 0.9, 1.1, 30.0], True), ([0.5, 0.9, 1.1, 3.0], False), ([0.0, 0.5, 90.0], False)],
)
def test_skewed_numbers_are_on_a_logarithmic_axis(values: list[float], logarithmic: bool) -> None:
    drawing = histogram(values, "Time", "seconds")
    assert ("(logarithmic)" in drawing) == logarithmic
    counts = [int(one.rpartition(": ")[2]) for one in drawing.split("</title>")[:-1]]
    assert sum(counts) == len(values)


@pytest.mark.parametrize("values", [[2.5], [2.5, 2.5], [0.0], [1e-9, 1e-9]])
def test_equal_numbers_have_one_bar(values: list[float]) -> None:
    assert histogram(values, "L2", "L2").count("<rect") == 1


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ([41.3, 47.9], ["40", "42", "44", "46", "48"]),
        ([0.153, 0.181], ["0.15", "0.16", "0.17", "0.18", "0.19"]),
        ([600.0, 1799.0], ["0", "500", "1,000", "1,500", "2,000"]),
        ([0.0, 0.0], ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
        ([-7.0, 3.0], ["-10", "-5", "0", "5"]),
    ],
)
def test_the_axis_of_a_course_has_round_numbers(values: list[float], numbers: list[str]) -> None:
    drawing = time_chart([BEGAN, BEGAN + timedelta(minutes=1)], values, "hot")
    assert re.findall(r'text-anchor="end">([-0-9.,]+)<', drawing) == numbers


@given(
    st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
    st.floats(0, 1e6).map(lambda value: round(value, 3)),
    st.integers(1, 24),
    st.booleans(),
)
def test_an_axis_holds_all_of_its_numbers(low: float, width: float, most: int, whole: bool) -> None:
    high = low + width
    axis = Axis(low, high, most, whole=whole)
    assert axis.low <= low <= high <= axis.high
    assert len(axis.ticks) <= most + 3
    assert axis.ticks == sorted(set(axis.ticks))


def test_no_number_is_a_sentence() -> None:
    assert "nothing to count" in histogram([float("nan")], "L2", "L2")
    assert time_chart([BEGAN], [None], "nothing") == ""


def test_a_course_of_many_minutes_stays_small_and_keeps_its_peak() -> None:
    times = [BEGAN + timedelta(minutes=number) for number in range(5000)]
    values: list[float | None] = [40.0] * 5000
    values[3333] = 91.0
    drawing = time_chart(times, values, "hot")
    assert len(drawing) < 10_000
    assert "91 over 5,000" in drawing


def test_embedded_json_holds_nothing_that_ends_its_element() -> None:
    value = {"</script>": ["<!--", "\u2028", "&"], "é": 1.5}
    text = embedded_json(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"</script>": ["<!--", " ", "&"], "é": 1.5}
    with pytest.raises(ValueError, match="JSON"):
        embedded_json(float("nan"))


def test_a_page_of_its_own_extends_the_base() -> None:
    page = render("base.html.j2")
    assert "<main" in page
    assert "default-src 'none'" in page
