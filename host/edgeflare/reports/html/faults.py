"""The faults' part of the page: sentences, a table, and the worst inputs of each with pictures."""

import base64
from typing import Any, NamedTuple

from edgeflare.analysis.faults import FaultFigures
from edgeflare.analysis.survey import SurveyedInput
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.document import Name
from edgeflare.errors import StoreError
from edgeflare.reports.document import to_html
from edgeflare.reports.media import finding_panel
from edgeflare.reports.survey.document import answers, input_name, margins_words
from edgeflare.reports.survey.faults import faults_list
from edgeflare.store import Store
from edgeflare.words.faults import fault_title


class FaultInput(NamedTuple):
    """A deviating input in the page; `picture` is a ``data:`` URL, "" where there is none."""

    seed: str
    words: str
    answers: str
    margins: str
    picture: str


class FaultCard(NamedTuple):
    """A fault in the page, with its worst inputs."""

    title: str
    words: str
    inputs: list[FaultInput]


def faults_context(store: Store, faults: FaultFigures | None, name: Name) -> dict[str, Any] | None:
    """Return the values of ``report_faults.html.j2``; None where nothing was found."""
    if faults is None or not (faults.faults or faults.unlisted):
        return None
    pictures = _pictures(store, [one for fault in faults.faults for one in fault.worst])
    cards = [
        FaultCard(
            fault_title(fault),
            fault.words,
            [
                FaultInput(
                    input_name(one),
                    one.words,
                    answers(one, name),
                    margins_words(one),
                    pictures.get((one.replica, one.sample), ""),
                )
                for one in fault.worst
            ],
        )
        for fault in faults.faults
    ]
    return {"tables": to_html(faults_list(faults, name)), "cards": cards}


def _pictures(store: Store, worst: list[SurveyedInput]) -> dict[tuple[str, str], str]:
    """Return the pictures of inputs, by replica and digest."""
    inputs = SurveyInputs(store)
    wanted = {(one.replica, one.sample) for one in worst}
    found: dict[tuple[str, str], str] = {}
    for one in store.survey(deviating=True):
        key = (one.replica, one.sample)
        if key in wanted and key not in found:
            try:
                both = (one.original, one.deployed)
                made = finding_panel(inputs.seed(one), inputs.sample(one), both, store.sample_rate)
            except StoreError:  # a user's family that is gone, or makes other inputs by now
                continue
            found[key] = f"data:image/png;base64,{base64.b64encode(made).decode()}"
    return found
