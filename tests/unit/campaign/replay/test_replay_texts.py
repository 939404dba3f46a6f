"""What is told of an input that recognisers were asked about again."""

from dataclasses import replace

import pytest

from edgeflare._internal.records import as_json
from edgeflare.campaign.replay.results import ReplayedInput
from edgeflare.types import Decision

STILL = ReplayedInput(
    id="trigger:a", kind="trigger", seed_id="a", device="board", state="still", deviated=True,
    original_label_before=None, deployed_label_before=None, original_label=None,
    deployed_label=None, decision=Decision.DEVIATION, original_margin=0.5, deployed_margin=None,
    l2=0.1, sample="00", original_text_before="It is cold.", deployed_text_before="It is gold.",
    original_text="It is cold", deployed_text="it is gold",
)  # fmt: skip


def test_the_same_words_are_no_other_answer_however_they_are_written() -> None:
    assert not STILL.elsewhere
    assert (STILL.margin, STILL.deviates) == (0.5, True)


@pytest.mark.parametrize("which", ["original_text", "deployed_text"])
def test_another_word_of_either_model_is(which: str) -> None:
    assert replace(STILL, **{which: "It is old"}).elsewhere


def test_where_it_is_not_known_what_was_recognised_nothing_is_reported_of_it() -> None:
    unknown = replace(STILL, original_text_before=None, deployed_text_before=None)
    assert not unknown.elsewhere


def test_it_goes_out_as_json() -> None:
    told = as_json(STILL)
    assert told["original_text_before"] == "It is cold."
    assert told["deployed_text"] == "it is gold"
