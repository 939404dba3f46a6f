"""The survey and the verdict on it, in sentences and tables, for a terminal, Markdown and HTML."""

from collections.abc import Iterable

from markupsafe import Markup

from edgeflare._internal.text import NOTHING, counted, margin_text, percent_text
from edgeflare.analysis.survey import FamilyFigures, SurveyedInput, SurveyFigures
from edgeflare.answers.detections.words import with_names
from edgeflare.answers.transcripts import excerpts
from edgeflare.document import Block, Column, KeyFigure, Name, Table, Text
from edgeflare.reports.charts import Line, interval_chart
from edgeflare.words.faults import bounds_text, rate_words, share_text
from edgeflare.words.soundness import drift_text

MOST_WORST = 5
"""Number of the worst inputs in a table."""
MOST_GROUPS = 3
"""Number of groups of families that have a line of their own in the chart."""
_FEWEST_CHARTED = 5
"""Number of inputs below which a group's rate at a severity is not in the chart."""
_LEAST_POINTS = 3


def survey_key_figures(survey: SurveyFigures | None) -> Iterable[KeyFigure]:
    """Yield the rate of confident deviations; nothing without a survey."""
    if survey is None:
        return
    rate = survey.overall
    if rate is None:
        about = f"the original was sure of no input far from {counted(survey.seeds, 'seed')}"
        yield KeyFigure("confident deviations", "none could be looked for", about, main=True)
        return
    what = f"{rate.deviations:,} of {counted(rate.inputs, 'input')} far from the seeds"
    yield KeyFigure(
        "confident deviations", share_text(rate.rate), f"{what}; {rate_words(rate)}", main=True
    )


def survey_tables(survey: SurveyFigures, *, brief: bool = False) -> list[Block]:
    """Return the tables by family and by severity; `brief`: a line where nothing deviates."""
    if survey.overall is None:
        return []
    if brief and not survey.overall.deviations:
        among = counted(len(survey.by_family), "family", "families")
        far = counted(len(survey.by_severity), "severity", "severities")
        return [Text(f"No confident deviation in {among} of inputs at {far}.")]
    columns = (
        Column("confident deviations", 0, lambda one: f"{one.rate.deviations:,}"),
        Column("inputs", 0, lambda one: f"{one.rate.inputs:,}"),
        Column("rate", 0, lambda one: share_text(one.rate.rate)),
        Column("95 % bounds", 0, lambda one: bounds_text(one.rate)),
        Column(_distance_name(survey), 1, lambda one: _distance(one.mean_distance)),
    )
    families = Column("family", 0, lambda one: one.family, text=True)
    severities = Column("severity", 0, lambda one: str(one.severity), text=True)
    return [
        Table((families, *columns), _family_rows(survey), "By family"),
        Table((severities, *columns), survey.by_severity, "By severity (5 is the farthest)"),
    ]


def worst_table(survey: SurveyFigures, name: Name = str) -> list[Block]:
    """Return the confident deviations with the largest margins; nothing without one."""
    worst = [one for one in survey.worst if one.confident_deviation][:MOST_WORST]
    if not worst or survey.overall is None:
        return []
    columns = (
        Column("seed", 0, lambda one: one.seed_text, text=True),
        Column("made by", 0, lambda one: one.words, text=True),
        Column("original -> deployed", 0, lambda one: answers(one, name), text=True),
        Column("margins", 1, margins_words, text=True),
    )
    more = survey.overall.deviations - len(worst)
    rest = [Text(f"Left out here: {counted(more, 'more confident deviation')}")]
    return [
        Table(columns, worst, "Worst inputs of the survey"),
        *(rest if more > 0 else []),
    ]


def survey_chart(survey: SurveyFigures) -> Markup | None:
    """Return the rate against severity: over all families with its bounds, and by group."""
    severities = [one.severity for one in survey.by_severity]
    intervals = [(one.rate.rate, one.rate.low, one.rate.high) for one in survey.by_severity]
    lines = [
        Line(group, [rates.get(severity) for severity in severities], style)
        for style, (group, rates) in enumerate(_groups(survey), start=2)
    ]
    return interval_chart(
        "Confident deviations by severity",
        [str(one) for one in severities],
        intervals,
        lines,
        unit="severity",
        words=percent_text,
    )


def charted_groups(survey: SurveyFigures) -> list[str]:
    """Return the names of the groups that have a line in the chart, in the order of its styles."""
    return [group for group, _ in _groups(survey)]


def answers(one: SurveyedInput, name: Name = str) -> str:
    """Return both models' answers to an input."""
    if one.difference is not None:
        return with_names(one.difference, name)
    if one.original_text is not None and one.deployed_text is not None:
        texts = excerpts(one.original_text, one.deployed_text)
        return " -> ".join(f'"{text}"' for text in texts)
    if one.deployed_label is None:
        return f"{name(one.original_label)} -> NaN or infinity"
    return f"{name(one.original_label)} -> {name(one.deployed_label)}"


def margins_words(one: SurveyedInput) -> str:
    """Return both models' margins on an input; "" for answers that have none."""
    if one.original_margin is one.deployed_margin is None:
        return ""
    return f"{margin_text(one.original_margin)}, {margin_text(one.deployed_margin)}"


def survey_figures_list(survey: SurveyFigures) -> Iterable[KeyFigure]:
    """Yield what else is known of a survey: distances, counts, and what it cost."""
    if survey.mean_total_variation is not None:
        yield KeyFigure("mean total variation", drift_text(survey.mean_total_variation))
    if survey.mean_word_difference is not None:
        yield KeyFigure(
            "mean share of words that differ", percent_text(survey.mean_word_difference)
        )
    if survey.mean_difference is not None:
        yield KeyFigure("mean distance of the answers", margin_text(survey.mean_difference))
    for text, count in (
        ("with NaN or infinity", survey.nonfinite),
        ("deviations that did not repeat", survey.unstable),
        ("inputs that a device can't answer", survey.failed),
        ("inputs equal to one before, left out", survey.repeated),
        ("seeds without an input that the original is sure of", survey.seeds_unsure),
        ("seeds whose inputs the original can't answer", survey.seeds_failed),
        ("seeds not surveyed yet", survey.seeds_in_all - survey.seeds),
    ):
        if count:
            yield KeyFigure(text, f"{count:,}")
    for one in survey.by_device:
        what = f"confident deviations on {one.device}"
        yield KeyFigure(what, share_text(one.rate.rate), rate_words(one.rate))
    queries = survey.queries
    yield KeyFigure(
        "cost of the survey",
        counted(queries["survey"], "device query", "device queries"),
        f"and {queries['confirmation']:,} to confirm; original alone {queries['host_only']:,}; "
        "the pursuit is counted apart",
    )
    yield KeyFigure("asked about", asked_words(survey))


def asked_words(survey: SurveyFigures) -> str:
    """Return which inputs the device is asked about, and what counts on them."""
    if survey.mean_difference is None:
        return f"inputs at which the original's margin is >= {survey.sure:g}"
    if not any(margins_words(one) for one in survey.worst):
        return "any inputs"
    return (
        "any inputs; an object's difference counts where the original's margin is >= "
        f"{survey.sure:g} of the largest possible"
    )


def _family_rows(survey: SurveyFigures) -> list[FamilyFigures]:
    """Return the families with a deviation, and one row for all others."""
    deviating = [one for one in survey.by_family if one.rate.deviations]
    if survey.others is not None:
        agreeing = len(survey.by_family) - len(deviating)
        words = counted(agreeing, "family", "families")
        words = f"{words} without one" if deviating else f"all {words}"
        return [*deviating, FamilyFigures(words, "", survey.others, None)]
    return deviating


def _groups(survey: SurveyFigures) -> list[tuple[str, dict[int, float]]]:
    """Return the groups with the largest rates, and their rates by severity.

    A rate over fewer than five inputs is left out, and so is a group with fewer than three rates.
    """
    groups: dict[str, dict[int, float]] = {}
    counts: dict[str, list[int]] = {}
    for one in survey.by_group:
        if one.rate.inputs < _FEWEST_CHARTED:
            continue
        groups.setdefault(one.group, {})[one.severity] = one.rate.rate
        sums = counts.setdefault(one.group, [0, 0])
        sums[0] += one.rate.deviations
        sums[1] += one.rate.inputs
    drawn = (group for group, rates in groups.items() if len(rates) >= _LEAST_POINTS)
    ranked = sorted(drawn, key=lambda group: (-counts[group][0] / counts[group][1], group))
    return [(group, groups[group]) for group in ranked[:MOST_GROUPS]]


def _distance_name(survey: SurveyFigures) -> str:
    if survey.mean_difference is not None:
        return "mean distance"
    return "words that differ" if survey.mean_word_difference is not None else "total variation"


def _distance(value: float | None) -> str:
    return NOTHING if value is None else drift_text(value)
