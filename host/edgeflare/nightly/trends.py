"""The charts of a model on a device over the nights."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from markupsafe import Markup

from edgeflare.nightly.night import Night, NightRun
from edgeflare.reports.charts import Line, Point, figure, line_chart

MOST_NIGHTS = 90
"""So many of the newest nights are on a chart, and in the page's table."""

Figure: TypeAlias = Callable[[NightRun], float | None]


class Chart(NamedTuple):
    """A chart with its title, and what its lines are where there are several."""

    title: str
    drawing: Markup
    lines: tuple[str, ...]


def charts(nights: Sequence[Night], model: str, device: str) -> tuple[Chart, ...]:
    """Return the charts of a model on a device, those with a value at least."""
    held = [(night, run) for night in nights if (run := night.run(model, device)) is not None]
    held = held[-MOST_NIGHTS:]
    days = Counter(night.started_at.date() for night, _ in held)
    points = [
        Point(_day(night, alone=days[night.started_at.date()] == 1), shown_state(run))
        for night, run in held
    ]
    runs = [run for _, run in held]
    found = (_chart(kind, points, runs) for kind in _CHARTS)
    return tuple(chart for chart in found if chart is not None)


def _day(night: Night, *, alone: bool) -> str:
    """Return the day on which a night began, in UTC, with the time where it isn't the only one of that day."""
    return f"{night.started_at:%Y-%m-%d}" if alone else f"{night.started_at:%Y-%m-%d %H:%M}"


class _Kind(NamedTuple):
    """What one chart shows; its axis reaches from `least` to `most`, where given, at least."""

    title: str
    figures: Mapping[str, Figure]
    words: Callable[[float], str] = figure
    least: float | None = 0
    most: float | None = None


def shown_state(run: NightRun) -> str:
    """Return how a run ended, "accepted" where a person took a red one for the new baseline."""
    return "accepted" if run.accepted else run.state


def _of_search(name: str) -> Figure:
    figure = attrgetter(name)
    return lambda run: None if run.search is None else figure(run.search)


def _of_replay(name: str) -> Figure:
    figure = attrgetter(name)
    return lambda run: None if run.replay is None else figure(run.replay)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _milliseconds(seconds: float) -> str:
    return f"{figure(1000 * seconds)} ms"


def _celsius(degrees: float) -> str:
    return f"{figure(degrees)} °C"


_CHARTS = (
    _Kind("Searches that found a trigger", {"found": _of_search("success_rate")}, _percent, most=1),
    _Kind("Severity of triggers, median", {"severity": _of_search("severity")}),
    _Kind("Queries to a trigger, median", {"queries": _of_search("queries")}),
    _Kind("Seeds that deviate", {"deviate": _of_search("deviation_rate")}, _percent),
    _Kind("Inputs sent again", {name: _of_replay(name) for name in ("new", "still", "fixed")}),
    _Kind("Latency, median", {"latency": _of_search("latency_s")}, _milliseconds),
    _Kind(
        "Highest temperature", {"temperature": _of_search("temperature_c")}, _celsius, least=None
    ),
)


def _chart(kind: _Kind, points: Sequence[Point], runs: Sequence[NightRun]) -> Chart | None:
    lines = [
        Line(name, [figure(run) for run in runs], style)
        for style, (name, figure) in enumerate(kind.figures.items(), 1)
    ]
    drawing = line_chart(
        kind.title, points, lines, words=kind.words, least=kind.least, most=kind.most
    )
    names = tuple(kind.figures) if len(kind.figures) > 1 else ()
    return None if drawing is None else Chart(kind.title, drawing, names)
