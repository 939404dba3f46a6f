"""What searches cost, and their fronts and false alarms, in figures."""

import pytest
from benches import search

from edgeflare.types import FrontPoint, Status
from edgeflare_bench.cell_figures import cell_figures, costs, false_alarms, median_front
from edgeflare_bench.searches import SearchRow

FAILED = ((0, 1), (1, 0), (2, 0))


def costly(seed: int, trips: int, host: int, status: Status = Status.FOUND) -> SearchRow:
    """A search of ten times as many queries as round trips; it takes as many seconds as these."""
    counts = {"round_trips": trips, "host_only_queries": host, "seed_queries": 1}
    return search(seed, 10 * trips, status, **counts, confirmation_queries=2)


def climbing(seed: int, *points: tuple[int, float], **values: object) -> SearchRow:
    """A search that met triggering inputs after so many queries, with these smaller margins."""
    front = tuple(FrontPoint(queries, margin, 1.0, 1) for queries, margin in points)
    status = Status.FOUND if front else Status.EXHAUSTED
    return search(seed, points[-1][0] if points else 99, status, front=front, **values)


class TestCosts:
    ROWS = (costly(0, 1, 300), costly(1, 2, 500), costly(2, 6, 10_000))

    def test_every_kind_of_query_is_counted_apart(self) -> None:
        one = costs(self.ROWS)
        assert (one.searches, one.queries, one.queries_median) == (3, 30.0, 20.0)
        assert (one.device_queries, one.round_trips) == (33.0, 3.0)
        assert (one.host_queries, one.host_queries_median) == (3600.0, 500.0)

    def test_a_delay_is_waited_for_in_every_round_trip(self) -> None:
        assert costs(self.ROWS).seconds_at == pytest.approx(
            {"0": 3.0, "5": 3.0 + 3 * 0.005, "20": 3.06, "100": 3.3}
        )

    def test_those_that_found_nothing_count_among_all_of_them_only(self) -> None:
        rows = [
            *self.ROWS,
            costly(3, 7, 0, Status.EXHAUSTED),
            costly(4, 0, 0, Status.SEED_DEVIATES),
        ]
        figures = cell_figures("pair", "a", rows)
        assert figures.costs == costs(self.ROWS)
        assert (figures.costs_spent.searches, figures.costs_spent.round_trips) == (4, 4.0)

    def test_of_no_search_nothing_is_known(self) -> None:
        one = costs([])
        assert one.searches == 0
        assert {one.queries, one.device_queries, one.host_queries, *one.seconds_at.values()} == {
            None
        }


class TestFront:
    def test_it_steps_where_the_median_of_the_best_does(self) -> None:
        rows = [
            climbing(0, (1, 0.1), (4, 0.3)),
            climbing(1, (2, 0.2)),
            climbing(2, (3, 0.05), (9, 0.25)),
        ]
        assert [tuple(step) for step in median_front(rows)] == [
            *((0, 0.0), (2, 0.1), (4, 0.2), (9, 0.25)),
        ]

    def test_of_one_that_fell_back_the_best_before_stands(self) -> None:
        # a later point may be nearer to the seed, and less sure
        rows = [climbing(0, (1, 0.3), (5, 0.2))]
        assert [tuple(step) for step in median_front(rows)] == [(0, 0.0), (1, 0.3)]

    def test_a_search_that_found_nothing_counts_as_none(self) -> None:
        rows = [climbing(0, (1, 0.3)), climbing(1), climbing(2)]
        assert [tuple(step) for step in median_front(rows)] == [(0, 0.0)]

    def test_seeds_that_were_not_searched_do_not_count(self) -> None:
        rows = [climbing(0, (1, 0.3)), *(search(n, 0, Status.SEED_DEVIATES) for n in (1, 2, 3))]
        assert [tuple(step) for step in median_front(rows)] == [(0, 0.0), (1, 0.3)]
        assert median_front(rows[1:]) == ()


class TestFalseAlarms:
    def test_none_is_reported_with_its_bound(self) -> None:
        rows = [search(number, 200, Status.EXHAUSTED) for number in range(500)]
        one = false_alarms("pair", "a", 0.001, rows)
        assert (one.seeds, one.seeds_with, one.rate) == (500, 0, 0.0)
        assert one.upper_bound == pytest.approx(1 - 0.05 ** (1 / 500))
        assert one.endings == {"exhausted": 500}

    def test_repeats_of_a_seed_are_one(self) -> None:
        rows = [
            *(search(0, 5), search(0, 7, repeat=1), search(1, 9), search(1, 99, Status.TIMEOUT)),
            *(search(2, 0, Status.SEED_DEVIATES), search(3, 99, Status.EXHAUSTED)),
        ]
        one = false_alarms("pair", "a", 0.0, rows)
        assert (one.seeds, one.seeds_with, one.found, one.seeds_deviating) == (4, 3, 3, 1)
        assert one.endings == {"timeout": 1, "exhausted": 1}
        assert one.upper_bound is not None
        assert 0.75 < one.upper_bound < 1.0

    def test_a_seed_on_which_every_search_failed_is_not_clean(self) -> None:
        failed = [search(number, 0, Status.FAILED, repeat=repeat) for number, repeat in FAILED]
        one = false_alarms("pair", "a", 0.0, [search(0, 9, Status.EXHAUSTED), *failed])
        assert (one.seeds, one.seeds_with) == (1, 0)
        assert one.endings == {"exhausted": 1, "failed": 3}
        assert false_alarms("pair", "a", 0.0, failed).upper_bound is None

    def test_a_seed_from_which_the_device_was_never_asked_is_no_proof(self) -> None:
        rows = [search(0, 9, Status.EXHAUSTED), search(1, 0, Status.GAVE_UP)]
        one = false_alarms("pair", "a", 0.0, rows)
        assert (one.seeds, one.unasked, one.upper_bound) == (1, 1, pytest.approx(0.95))

    def test_without_a_search_there_is_no_rate(self) -> None:
        one = false_alarms("pair", "a", 0.0, [])
        assert (one.rate, one.upper_bound, one.endings) == (None, None, {})
