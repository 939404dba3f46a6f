"""The survey's part of the page: chart, tables, and the worst inputs with their pictures."""

import base64
from typing import Any, NamedTuple

from edgeflare._internal.text import margin_text
from edgeflare.analysis.survey import SurveyFigures
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.document import Figures, Name
from edgeflare.errors import StoreError
from edgeflare.reports.document import to_html
from edgeflare.reports.media import finding_panel
from edgeflare.reports.survey.document import (
    answers,
    charted_groups,
    input_name,
    margins_words,
    survey_chart,
    survey_figures_list,
    survey_tables,
)
from edgeflare.store import Store


class WorstInput(NamedTuple):
    """An input of the survey in the page; `picture` is a ``data:`` URL, "" where there is none."""

    seed: str
    words: str
    severity: int
    answers: str
    margins: str
    distance: str
    picture: str


def survey_context(store: Store, survey: SurveyFigures | None, name: Name) -> dict[str, Any] | None:
    """Return the values of ``report_survey.html.j2``; None without a survey. Raises StoreError."""
    if survey is None:
        return None
    return {
        "figures": to_html([Figures(tuple(survey_figures_list(survey)))]),
        "tables": to_html(survey_tables(survey)),
        "chart": survey_chart(survey),
        "groups": charted_groups(survey),
        "worst": _worst(store, survey, name),
    }


def _worst(store: Store, survey: SurveyFigures, name: Name) -> list[WorstInput]:
    inputs = SurveyInputs(store)
    worst = [one for one in survey.worst if one.confident_deviation]
    wanted = {(one.replica, one.seed_id, one.number) for one in worst}
    pictures = {}
    for one in store.survey(phase="survey", deviating=True):
        key = (one.replica, one.seed_id, one.number)
        if key in wanted:
            try:
                made = finding_panel(
                    inputs.seed(one),
                    inputs.sample(one),
                    (one.original, one.deployed),
                    store.sample_rate,
                )
            except StoreError:  # a user's family that is gone, or makes other inputs by now
                continue
            pictures[key] = f"data:image/png;base64,{base64.b64encode(made).decode()}"
    return [
        WorstInput(
            input_name(one),
            one.words,
            one.severity,
            answers(one, name),
            margins_words(one),
            margin_text(one.distance),
            pictures.get((one.replica, one.seed_id, one.number), ""),
        )
        for one in worst
    ]
