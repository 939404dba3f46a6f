"""What people and programs read of the nights: the trend page, and one night as JUnit's XML."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from edgeflare._internal.files import write_durably
from edgeflare._internal.text import counted
from edgeflare.document import Block, Item, Listing, Text, Tone
from edgeflare.nightly.history import JUNIT_NAME, LOG_NAME, REPORT_NAME, History
from edgeflare.nightly.night import Night, NightRun, RunState
from edgeflare.reports.charts import STATE_WORDS, Line, Point, figure, line_chart, mark
from edgeflare.reports.html import render
from edgeflare.reports.render.junit import Case, CaseResult, Element, dumped, element
from edgeflare.store.database import translate_errors
from edgeflare.words.nightly import LEFT_OUT, NOT_RUN, SHOWN

MOST_NIGHTS = 90
"""So many of the newest nights are on a chart, and in the page's table."""


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
        Point(_day(night, alone=days[night.started_at.date()] == 1), _shown_state(run))
        for night, run in held
    ]
    runs = [run for _, run in held]
    found = (_chart(kind, points, runs) for kind in _CHARTS)
    return tuple(chart for chart in found if chart is not None)


def _day(night: Night, *, alone: bool) -> str:
    """Return a night's day in UTC, with the time where several nights began on it."""
    return f"{night.started_at:%Y-%m-%d}" if alone else f"{night.started_at:%Y-%m-%d %H:%M}"


class _Kind(NamedTuple):
    """What one chart shows; its axis reaches from `least` to `most`, where given, at least.

    `of_survey`: nights surveyed with other settings than the last one are not comparable, and left
    out.
    """

    title: str
    figures: Mapping[str, str]
    words: Callable[[float], str] = figure
    least: float | None = 0
    most: float | None = None
    of_survey: bool = False


def _shown_state(run: NightRun) -> str:
    """Return how a run ended, "accepted" where a person took a red one for the new baseline."""
    return "accepted" if run.accepted else run.state


def _figure(run: NightRun, place: str) -> float | None:
    """Return the figure at a place, such as search.found; None where the run hasn't come to it."""
    part, _, name = place.partition(".")
    figures = getattr(run, part)
    return None if figures is None else getattr(figures, name)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _milliseconds(seconds: float) -> str:
    return f"{figure(1000 * seconds)} ms"


def _celsius(degrees: float) -> str:
    return f"{figure(degrees)} °C"


_CHARTS = (
    _Kind("Searches that found a trigger", {"found": "search.success_rate"}, _percent, most=1),
    _Kind("Severity of triggers, median", {"severity": "search.severity"}),
    _Kind("Queries to a trigger, median", {"queries": "search.queries"}),
    _Kind("Seeds that deviate", {"deviate": "search.deviation_rate"}, _percent),
    _Kind(
        "Confident deviations far from the seeds",
        {"rate": "search.confident_rate", "bound": "search.confident_high"},
        _percent,
        of_survey=True,
    ),
    _Kind("Inputs sent again", {name: f"replay.{name}" for name in ("new", "still", "fixed")}),
    _Kind("Latency, median", {"latency": "search.latency_s"}, _milliseconds),
    _Kind("Highest temperature", {"temperature": "search.temperature_c"}, _celsius, least=None),
)


def _chart(kind: _Kind, points: Sequence[Point], runs: Sequence[NightRun]) -> Chart | None:
    surveyed = [run.identity for run in runs if run.identity.survey]
    comparable = [
        not kind.of_survey or not surveyed or run.identity.surveyed_like(surveyed[-1])
        for run in runs
    ]
    shown = list(zip(runs, comparable, strict=True))
    lines = [
        Line(name, [_figure(run, place) if like else None for run, like in shown], style)
        for style, (name, place) in enumerate(kind.figures.items(), 1)
    ]
    left_out = comparable.count(False)
    title = kind.title
    if left_out:
        title += LEFT_OUT.format(counted(left_out, "night"))
    drawing = line_chart(title, points, lines, words=kind.words, least=kind.least, most=kind.most)
    names = tuple(kind.figures) if len(kind.figures) > 1 else ()
    return None if drawing is None else Chart(title, drawing, names)


_TONES: Mapping[RunState, Tone] = {"green": "good", "first": "good", "regression": "bad"}


def state_word(state: str) -> str:
    """Return how a run's state is called in a terminal."""
    return SHOWN.get(state, state)


def night_document(night: Night) -> list[Block]:
    """Return how a night came out: a line for each run, with the reasons where it is not green."""
    items = []
    for run in night.runs:
        text = f" {run.name}: {run.figures}" if run.figures else f" {run.name}"
        items.append(Item(text, _TONES.get(run.state, "warn"), state_word(run.state)))
        items += [Item(f"  {said}") for said in run.words]
        items += [Item(f"  changed: {changed}", "muted") for changed in run.changed]
    return [Listing(tuple(items)), Text(f"Night {night.number}: {night.verdict}", "strong")]


_ACCEPTED = "accepted later"
_REPORTS = {"search": "Report", "replay": "Triggers sent again", "seeds": "Seeds sent again"}
"""What the report of each of a run's `CAMPAIGNS` is called."""


def write_page(history: History) -> Path:
    """Write a history's ``index.html`` from its nights; return it. Raises StoreError."""
    nights = history.nights()
    shown = nights[-MOST_NIGHTS:]
    worst = _worst(history, nights)
    if (
        worst is not None
        and worst["mended"]
        and worst["row"]["stamp"] not in [one.stamp for one in shown]
    ):
        worst = None
    text = render(
        "nightly.html.j2",
        trends=[_trend(history, nights, model, device) for model, device in _pairs(nights)],
        rows=[_row(history, night) for night in reversed(shown)],
        older=len(nights) - len(shown),
        worst=worst,
        damaged=[str(path) for path in history.damaged()],
        signs=[(_sign(state), words) for state, words in STATE_WORDS.items() if state != "first"],
    )
    with translate_errors(history.folder):
        write_durably(history.page, text.encode())
    return history.page


def _pairs(nights: Sequence[Night]) -> list[tuple[str, str]]:
    """Return each model and device, those of the newest night first."""
    return list(
        dict.fromkeys((run.model, run.device) for night in reversed(nights) for run in night.runs)
    )


def _worst(history: History, nights: Sequence[Night]) -> dict[str, Any] | None:
    """Return the newest night that is red, or was until all of it was mended or accepted.

    `cells`: the runs that are still red; all where it is `mended`. `is_last`: it is the last night.
    """
    settled: set[tuple[str, str]] = set()
    for night in reversed(nights):
        settled |= {(run.model, run.device) for run in night.runs if run.is_baseline}
        red = [run for run in night.runs if run.state == "regression"]
        if red:
            still = [run for run in red if (run.model, run.device) not in settled]
            return {
                "row": _row(history, night),
                "cells": [_cell(history, night, run) for run in still or red],
                "mended": not still,
                "is_last": night is nights[-1],
            }
    return None


def _row(history: History, night: Night) -> dict[str, Any]:
    """Return a night as the page shows it; `log` and `junit` are relative links, "" without one."""
    state, words = _night_state(night)
    return {
        "stamp": night.stamp,
        "began": night.started_at.strftime("%Y-%m-%d %H:%M UTC"),
        "state": state,
        "state_words": words,
        "mark": _sign(state),
        "verdict": night.verdict,
        "cells": [_cell(history, night, run) for run in night.runs],
        "log": _link(history, night.folder / LOG_NAME),
        "junit": _link(history, night.folder / JUNIT_NAME),
    }


def _night_state(night: Night) -> tuple[str, str]:
    """Return the state whose mark a night has, and its words."""
    cut = "" if night.state == "finished" else night.state
    if night.exit_code == 1:
        return "regression", ", ".join(filter(None, ("red", cut)))
    if cut:
        return "failed", cut
    if night.exit_code:
        away = all(run.state != "failed" for run in night.runs)
        return ("away", "device away") if away else ("failed", "not all run")
    if any(run.trouble for run in night.runs):
        red = any(run.state == "regression" for run in night.runs)
        return "accepted", STATE_WORDS["accepted"] if red else _ACCEPTED
    return "green", "green"


def _cell(history: History, night: Night, run: NightRun) -> dict[str, Any]:
    """Return a run as the page shows it; `reports` are relative links with their words."""
    state = _shown_state(run)
    words = STATE_WORDS[state] if run.state == "regression" or not run.accepted else _ACCEPTED
    return {
        "name": run.name,
        "anchor": run.folder.replace("/", "-on-"),
        "state": state,
        "state_words": words,
        "mark": _sign(state),
        "words": run.words,
        "changed": run.changed,
        "figures": run.figures,
        "reports": [
            (link, called)
            for name, called in _REPORTS.items()
            if (link := _link(history, night.folder / run.folder / name / REPORT_NAME))
        ],
    }


def _trend(history: History, nights: Sequence[Night], model: str, device: str) -> dict[str, Any]:
    night, run = next(
        (night, run) for night in reversed(nights) if (run := night.run(model, device)) is not None
    )
    return {"last": _cell(history, night, run), "charts": charts(nights, model, device)}


def _sign(state: str) -> Markup:
    """Return a state's mark for running text; the words next to it say the same."""
    return Markup('<svg class="sign" viewBox="2 2 12 12" aria-hidden="true">{}</svg>').format(
        mark(state, 8, 8)
    )


def _link(history: History, path: Path) -> str:
    """Return where the page finds a file, "" where the file isn't there."""
    return quote(path.relative_to(history.folder).as_posix()) if path.is_file() else ""


_PARTS = ("replay", "search", "comparison")
_COUNTED: dict[str, CaseResult] = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def write_junit(night: Night) -> Path:
    """Write a night's ``junit.xml``: a test suite for each run, with a test for each part.

    What got worse or crossed a limit is a failure, unless it was accepted; a run that could not be
    made an error; a device that is away, and what was not come to, is skipped. Raises StoreError.
    """
    cases = [
        (run, [*(_case(run, part) for part in _PARTS), *_undecided(run)]) for run in night.runs
    ]
    every = [case for _, of_run in cases for case in of_run]
    root = element("testsuites", {"name": f"nightly {night.stamp}", **_counts(every)})
    for run, of_run in cases:
        root.append(_suite(night, run, of_run))
    path = night.folder / JUNIT_NAME
    with translate_errors(night.folder):
        text = f'<?xml version="1.0" encoding="utf-8"?>\n{dumped(root)}\n'
        write_durably(path, text.encode())
    return path


def _undecided(run: NightRun) -> list[Case]:
    """Return a test case for each check that nobody can decide."""
    return [
        Case(one.name, "skipped", message=f"undecided: {one.words}")
        for one in run.checks
        if one.undecided
    ]


def _suite(night: Night, run: NightRun, cases: list[Case]) -> Element:
    suite = element(
        "testsuite",
        {
            "name": run.name,
            "time": f"{run.seconds:.3f}",
            "timestamp": night.started_at.isoformat(timespec="seconds"),
            **_counts(cases),
        },
    )
    for case in cases:
        suite.append(case.xml(f"nightly.{run.model}.{run.device}"))
    return suite


def _counts(cases: list[Case]) -> dict[str, str]:
    verdicts = Counter(case.verdict for case in cases)
    return {
        "tests": str(len(cases)),
        **{name: str(verdicts[verdict]) for name, verdict in _COUNTED.items()},
    }


def _case(run: NightRun, part: str) -> Case:
    """Return what became of a part of a run."""
    checks = [check for check in run.checks if check.part == part]
    crossed = [check.words for check in checks if check.crossed]
    trouble = run.words[-1] if run.words else ""
    changed = [f"changed: {one}" for one in run.changed]
    if crossed and not run.accepted:
        return Case(part, "failure", "regression", crossed[0], [*crossed[1:], *changed])
    done = {"replay": run.replay is not None, "search": run.search is not None}
    failed = "comparison" if done["search"] else "search"
    if run.state == "failed" and part == failed and not run.accepted:
        return Case(part, "error", "failed", trouble)
    if done.get(part, bool(checks)):
        return Case(part, body=[check.words for check in checks])
    if run.state == "away":
        return Case(part, "skipped", message=f"away: {trouble}")
    if part == "search":
        return Case(part, "error", "not finished", trouble)
    return Case(
        part,
        "skipped",
        message=NOT_RUN[part],
    )
