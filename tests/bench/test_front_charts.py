import sys

import cv2
import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare_bench.cell_figures import FrontStep
from edgeflare_bench.reports.pictures import MarginCurve, front_picture

FIRST, SECOND = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)


def margins(
    *steps: tuple[int, float], queries: int = 0, dots: int = 1, l2: float = 2.0
) -> MarginCurve:
    """A strategy's curve, and as many triggering inputs of its last margin."""
    triggers = [(l2, steps[-1][1])] * dots
    return MarginCurve(
        [FrontStep(0, 0.0), *(FrontStep(*step) for step in steps)], queries, triggers
    )


def drawn(strategies: dict[str, MarginCurve]) -> np.ndarray:
    """The picture above its legend, uint8 [height, width, RGB]."""
    data = front_picture("A pair", strategies)
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    return picture[: int(0.8 * picture.shape[0])]


def places(picture: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Rows and columns of the pixels of a colour, int [pixels, 2]."""
    return np.argwhere((picture == colour).all(axis=2))


def halves(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    middle = picture.shape[1] * 53 // 100
    return picture[:, :middle], picture[:, middle:]


def test_the_surer_one_stands_above_in_both_panels() -> None:
    picture = drawn({"sure": margins((2, 0.5)), "unsure": margins((2, 0.001), l2=3.0)})
    for panel in halves(picture):
        assert places(panel, FIRST)[:, 0].max() < places(panel, SECOND)[:, 0].min()


def test_the_quicker_one_begins_further_left_and_the_nearer_one_too() -> None:
    picture = drawn({"a": margins((1, 0.1), l2=0.5), "b": margins((100, 0.1), l2=9.0)})
    left, right = halves(picture)
    assert places(left, FIRST)[:, 1].min() < places(left, SECOND)[:, 1].min()
    assert places(right, FIRST)[:, 1].max() < places(right, SECOND)[:, 1].min()


def test_a_curve_goes_on_to_what_was_spent() -> None:
    short, long = margins((1, 0.01), queries=10), margins((1, 0.5), queries=1000)
    left, _ = halves(drawn({"short": short, "long": long}))
    assert places(left, FIRST)[:, 1].max() < places(left, SECOND)[:, 1].max() - 100


def test_where_most_searches_found_nothing_there_is_no_curve_but_a_dot() -> None:
    nothing = MarginCurve([FrontStep(0, 0.0)], 500, [(1.0, 0.01)])
    left, right = halves(drawn({"a": nothing}))
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
def test_few_and_many_can_be_drawn(strategies: dict[str, MarginCurve]) -> None:
    assert drawn(strategies).shape[1] == 1100


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"install 'edgeflare\[bench\]'"):
        front_picture("p", {"a": MarginCurve((), 0, [])})
