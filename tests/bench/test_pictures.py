"""The pictures of a bench's report: histograms of queries, and fronts of margins."""

import sys

import cv2
import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare_bench.cell_figures import FrontStep
from edgeflare_bench.reports.pictures import MarginCurve, front_picture, histograms

MEAN, MEDIAN, BAR = (0xC0, 0x39, 0x2B), (0x1B, 0x3A, 0x57), (0x8F, 0xB3, 0xD9)
FIRST, SECOND = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)


def decoded(png: bytes) -> np.ndarray:
    """The picture, uint8 [height, width, RGB]."""
    return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]


def histograms_of(queries: dict[str, list[float]]) -> np.ndarray:
    return decoded(histograms("A pair", queries, dict.fromkeys(queries, 100)))


def fronts_of(strategies: dict[str, MarginCurve]) -> np.ndarray:
    """The picture above its legend."""
    picture = decoded(front_picture("A pair", strategies))
    return picture[: int(0.8 * picture.shape[0])]


@pytest.mark.parametrize("kind", ["histograms", "fronts"])
def test_without_the_library_it_says_what_to_install(monkeypatch, kind) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"install 'edgeflare\[bench\]'"):
        histograms_of({"a": [1.0]}) if kind == "histograms" else fronts_of({"a": margins((1, 0.1))})


def columns(picture: np.ndarray, colour: tuple[int, int, int], least: int = 60) -> list[int]:
    """The columns in which at least so many pixels have this colour."""
    return list(np.flatnonzero((picture == colour).all(axis=2).sum(axis=0) >= least))


def test_there_is_a_panel_for_each_strategy() -> None:
    one = histograms_of({"a": [3.0, 9.0]})
    three = histograms_of({"a": [3.0, 9.0], "b": [4.0, 5.0], "c": [7.0]})
    assert one.shape[1] == three.shape[1]
    assert 2 < (three.shape[0] - 110) / (one.shape[0] - 110) < 4


def test_mean_and_median_stand_where_they_belong() -> None:
    picture = histograms_of({"a": [10.0] * 6 + [30.0] * 3 + [100.0] * 2})  # mean 31.8, median 10
    mean, median = columns(picture, MEAN), columns(picture, MEDIAN, 40)
    assert mean
    assert median
    left, right = columns(picture, BAR, 5)[0], columns(picture, BAR, 5)[-1]
    assert left <= median[0] < mean[0] < (left + right) / 2


def test_panels_share_the_range() -> None:
    picture = histograms_of({"a": [10.0, 12.0, 14.0], "b": [80.0, 82.0, 90.0]})
    half = picture.shape[0] // 2
    width = picture.shape[1]
    above, below = columns(picture[:half], BAR, 20), columns(picture[half:], BAR, 20)
    assert max(above) < 0.35 * width
    assert min(below) > 0.65 * width


def test_a_strategy_that_needs_a_hundred_times_as_much_does_not_crush_the_other() -> None:
    generator = np.random.default_rng(2)
    quick = [float(value) for value in generator.gamma(2.0, 30.0, 100) + 1]
    picture = histograms_of({"quick": quick, "slow": [100 * value for value in quick]})
    above = columns(picture[: picture.shape[0] // 2], BAR, 5)
    assert max(above) - min(above) > 0.25 * picture.shape[1]


@pytest.mark.parametrize("queries", [{"a": [], "b": [3.0]}, {"a": []}, {"a": [1.0]}])
def test_few_or_no_triggering_inputs_can_be_histograms_of(queries: dict[str, list[float]]) -> None:
    picture = histograms_of(queries)
    assert bool(columns(picture, BAR)) == any(queries.values())


def margins(
    *steps: tuple[int, float], queries: int = 0, dots: int = 1, l2: float = 2.0
) -> MarginCurve:
    """A strategy's curve, and as many triggering inputs of its last margin."""
    triggers = [(l2, steps[-1][1])] * dots
    return MarginCurve(
        [FrontStep(0, 0.0), *(FrontStep(*step) for step in steps)], queries, triggers
    )


def places(picture: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Rows and columns of the pixels of a colour, int [pixels, 2]."""
    return np.argwhere((picture == colour).all(axis=2))


def halves(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = picture.shape[1] * 53 // 100
    return picture[:, :middle], picture[:, middle:]


def test_the_surer_one_stands_above_in_both_panels() -> None:
    picture = fronts_of({"sure": margins((2, 0.5)), "unsure": margins((2, 0.001), l2=3.0)})
    for panel in halves(picture):
        assert places(panel, FIRST)[:, 0].max() < places(panel, SECOND)[:, 0].min()


def test_the_quicker_one_begins_further_left_and_the_nearer_one_too() -> None:
    picture = fronts_of({"a": margins((1, 0.1), l2=0.5), "b": margins((100, 0.1), l2=9.0)})
    left, right = halves(picture)
    assert places(left, FIRST)[:, 1].min() < places(left, SECOND)[:, 1].min()
    assert places(right, FIRST)[:, 1].max() < places(right, SECOND)[:, 1].min()


def test_a_curve_goes_on_to_what_was_spent() -> None:
    short, long = margins((1, 0.01), queries=10), margins((1, 0.5), queries=1000)
    left, _ = halves(fronts_of({"short": short, "long": long}))
    assert places(left, FIRST)[:, 1].max() < places(left, SECOND)[:, 1].max() - 100


def test_where_most_searches_found_nothing_there_is_no_curve_but_a_dot() -> None:
    nothing = MarginCurve([FrontStep(0, 0.0)], 500, [(1.0, 0.01)])
    left, right = halves(fronts_of({"a": nothing}))
    assert not len(places(left, FIRST))
    assert len(places(right, FIRST))


@pytest.mark.parametrize(
    "strategies",
    [
        {"a": MarginCurve((), 0, [])},
        {"a": margins((3, 0.0), dots=3), "b": MarginCurve((), 0, [])},
        {f"s{number}": margins((number + 1, 0.1)) for number in range(20)},
    ],
)
def test_few_and_many_can_be_fronts_of(strategies: dict[str, MarginCurve]) -> None:
    assert fronts_of(strategies).shape[1] == 1100
