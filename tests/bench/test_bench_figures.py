import sys

import cv2
import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare_bench.reports.pictures import histograms

MEAN, MEDIAN, BAR = (0xC0, 0x39, 0x2B), (0x1B, 0x3A, 0x57), (0x8F, 0xB3, 0xD9)


def drawn(queries: dict[str, list[float]]) -> np.ndarray:
    """The picture, uint8 [height, width, RGB]."""
    data = histograms("A pair", queries, dict.fromkeys(queries, 100))
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    return picture[:, :, ::-1]


def columns(picture: np.ndarray, colour: tuple[int, int, int], least: int = 60) -> list[int]:
    """The columns in which at least so many pixels have this colour."""
    return list(np.flatnonzero((picture == colour).all(axis=2).sum(axis=0) >= least))


def test_there_is_a_panel_for_each_strategy() -> None:
    one = drawn({"a": [3.0, 9.0]})
    three = drawn({"a": [3.0, 9.0], "b": [4.0, 5.0], "c": [7.0]})
    assert one.shape[1] == three.shape[1]
    assert 2 < (three.shape[0] - 110) / (one.shape[0] - 110) < 4


def test_mean_and_median_stand_where_they_belong() -> None:
    picture = drawn({"a": [10.0] * 6 + [30.0] * 3 + [100.0] * 2})  # mean 31.8, median 10
    mean, median = columns(picture, MEAN), columns(picture, MEDIAN, 40)
    assert mean
    assert median
    left, right = columns(picture, BAR, 5)[0], columns(picture, BAR, 5)[-1]
    assert left <= median[0] < mean[0] < (left + right) / 2


def test_panels_share_the_range() -> None:
    picture = drawn({"a": [10.0, 12.0, 14.0], "b": [80.0, 82.0, 90.0]})
    half = picture.shape[0] // 2
    width = picture.shape[1]
    above, below = columns(picture[:half], BAR, 20), columns(picture[half:], BAR, 20)
    assert max(above) < 0.35 * width
    assert min(below) > 0.65 * width


def test_a_strategy_that_needs_a_hundred_times_as_much_does_not_crush_the_other() -> None:
    generator = np.random.default_rng(2)
    quick = [float(value) for value in generator.gamma(2.0, 30.0, 100) + 1]
    picture = drawn({"quick": quick, "slow": [100 * value for value in quick]})
    above = columns(picture[: picture.shape[0] // 2], BAR, 5)
    assert max(above) - min(above) > 0.25 * picture.shape[1]


@pytest.mark.parametrize("queries", [{"a": [], "b": [3.0]}, {"a": []}, {"a": [1.0]}])
def test_few_or_no_triggering_inputs_can_be_drawn(queries: dict[str, list[float]]) -> None:
    picture = drawn(queries)
    assert bool(columns(picture, BAR)) == any(queries.values())


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"install 'edgeflare\[bench\]'"):
        histograms("p", {"a": [1.0]}, {"a": 1})
