"""A line for each device, in terminals of any width."""

import pytest
from fake_sessions import AWAY, HOT, PI, RETIRED, SILENT, drawn

from edgeflare.cli.display.status import device_table, noteworthy, rate_text


def lines(devices, width, most=12):
    return device_table(devices, width, most).plain.splitlines()


def test_at_eighty_columns_all_figures_are_there():
    heading, *rows = lines([PI, HOT, AWAY, RETIRED], 80)
    assert heading.split() == [
        "device", "queries/s", "queue", "busy", "p50/p99", "ms", "temp", "lost",
    ]  # fmt: skip
    assert rows[0].split() == ["pi-4", "up", "412", "15/16", "97", "%", "38/52", "61", "°C"]
    assert rows[1].split() == [
        *("…168.1.77:2222", "up", "1412", "120/128", "50", "%"),
        *("1.1/92", "81", "°C", "throttled", "3x"),
    ]
    assert "answer for 12" in rows[2]
    assert "retired: came back" in rows[3]


def test_a_narrow_terminal_loses_the_least_needed_first():
    heading, row, *_ = lines([PI, HOT], 50)
    assert heading.split() == ["device", "queries/s", "busy"]
    assert row.split() == ["pi-4", "up", "412", "97", "%"]
    assert lines([PI, HOT], 30)[1].split() == ["pi-4", "up", "412"]


def test_one_that_reports_nothing_beside_one_that_does():
    assert lines([PI, SILENT], 120)[2].split() == ["local", "up", "3.2", "1/2", "-", "-", "-"]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("width", [20, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal(seed, width):
    devices = drawn(1 + seed * 2, seed)
    shown = lines(devices, width)
    assert max(map(len, shown)) <= width
    assert len(shown) == 1 + min(12, len(devices)) + (len(devices) > 12)


@pytest.mark.parametrize("seed", range(10))
def test_of_many_devices_those_that_need_a_look_are_shown_and_the_rest_counted(seed):
    devices = drawn(40, seed)
    shown = noteworthy(devices, 12)
    troubled = [one for one in devices if one.state.value != "up"]
    assert [one for one in devices if one in shown] == shown
    assert len(shown) == 12
    assert all(one in shown for one in troubled[:12]) or len(troubled) > 12
    up = len(devices) - len(troubled)
    assert f"28 more; {up}" in lines(devices, 120)[-1]


def test_a_throttled_device_needs_a_look_before_a_fast_one():
    devices = [PI] * 3 + [HOT] + [PI] * 3 + [AWAY]
    assert noteworthy(devices, 2) == [HOT, AWAY]


@pytest.mark.parametrize(("rate", "told"), [(0.2, "0.2"), (9.94, "9.9"), (63.4, "63"), (0, "0")])
def test_a_slow_model_does_not_seem_to_stand_still(rate, told):
    assert rate_text(rate) == told
