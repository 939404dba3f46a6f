"""The survey and the verdict in a night: red by the bound, undecided apart, older nights still read."""

from datetime import datetime, timezone

from shown_numbers import numbers

from edgeflare.analysis import Duel
from edgeflare.analysis.outcome_stats import KindRate
from edgeflare.answers import SCORES
from edgeflare.nightly.comparison import PRESENT, BaseComparison, RateChange, changes
from edgeflare.nightly.night import Check, Identity, Night, NightRun, SearchFigures
from edgeflare.nightly.reports import charts

BEFORE_SURVEYS = SearchFigures.model_validate(
    {"seeds": 20, "seed_deviates": 1, "searched": 19, "found": 19, "total_queries": 60}
)


def surveyed(deviations: int, low: float, high: float) -> SearchFigures:
    return BEFORE_SURVEYS.model_copy(
        update={
            "surveyed": 300,
            "confident_deviations": deviations,
            "confident_low": low,
            "confident_high": high,
        }
    )


def night(*checks: Check, state: str = "green") -> Night:
    run = NightRun.model_validate(
        {"model": "m", "device": "d", "folder": "m/d", "state": state, "checks": checks}
    )
    began = datetime(2026, 1, 1, tzinfo=timezone.utc)
    return Night(stamp="1", number=1, state="finished", started_at=began, runs=(run,), planned=1)


def rates(now: KindRate, *, comparable: bool = True) -> tuple[RateChange, Check]:
    """The rate of a survey, compared with that of 3 of 300 inputs, and its check."""
    rate = RateChange("", KindRate(3, 300, 0.002, 0.03, ()), now, comparable=comparable)
    duel = Duel("then", PRESENT, 8, 0.0, (0.0, 0.0), 0.95, 1.0, "tie", 0, 0, 6)
    _, check = BaseComparison("May", SCORES.name, "disagreement", duel, (rate,)).checks
    return rate, check


MANY = KindRate(30, 300, 0.07, 0.14, ())


def test_a_rate_is_worse_only_where_both_intervals_are_apart() -> None:
    same, _ = rates(KindRate(9, 300, 0.014, 0.06, ()))
    assert not same.is_worse
    worse, check = rates(MANY)
    assert worse.is_worse
    assert (check.name, check.crossed) == ("confident deviations", True)
    assert numbers(check.words) == "30 300 7 3 300 1 3"


def test_a_night_before_there_was_a_survey_is_read() -> None:
    assert BEFORE_SURVEYS.confident_rate is None
    assert BEFORE_SURVEYS.verdict is None
    old = Check.model_validate({"part": "search", "name": "a", "words": "b", "crossed": False})
    assert not old.undecided


def test_rates_of_surveys_with_other_settings_are_not_compared() -> None:
    settings = {"queries": 3, "sure": 0.3, "families": []}
    then, now = Identity(survey=settings), Identity(survey={**settings, "sure": 0.5})
    assert not now.surveyed_like(then)
    assert now.surveyed_like(Identity())  # a night before settings were kept
    assert numbers("\n".join(changes(then, now))) == "0.3 0.5"
    _, check = rates(MANY, comparable=False)
    assert not check.crossed
    assert "comparable: the survey's" in check.words


def test_the_trend_leaves_out_nights_surveyed_with_other_settings() -> None:
    nights = []
    for number, sure in enumerate((0.5, 0.3, 0.3), 1):
        one = night().model_copy(update={"number": number, "stamp": str(number)})
        update = {
            "search": surveyed(number, 0.01 * number, 0.02 * number),
            "identity": Identity(survey={"queries": 3, "sure": sure}),
        }
        nights.append(one.model_copy(update={"runs": (one.runs[0].model_copy(update=update),)}))
    (chart,) = (one for one in charts(nights, "m", "d") if "Confident" in one.title)
    assert "out: 1 night" in chart.title
    (chart,) = (one for one in charts(nights[1:], "m", "d") if "Confident" in one.title)
    assert "Confident deviations far" in chart.title


def test_what_cannot_be_told_has_an_exit_code_of_its_own_and_is_not_red() -> None:
    undecided = Check(part="search", name="verdict", words="?", crossed=False, undecided=True)
    assert night(undecided).exit_code == 4
    assert night(undecided, state="regression").exit_code == 1
    assert night(undecided, state="away").exit_code == 3
    assert night().exit_code == 0
