"""The baseline of the limit `new_pairs`: the class pairs that deviate in a finished campaign."""

from pathlib import Path

from edgeflare.answers import kind_of_answer
from edgeflare.campaign.settings.limits import LimitsConfig
from edgeflare.campaign.status import replica_names
from edgeflare.errors import StoreError, UsageError
from edgeflare.store import Store, campaign_text
from edgeflare.types import TRIGGERS

Pair = tuple[int, int]
"""Two class indices: the original model's label, the deployed model's."""


def _deviating_pairs(store: Store) -> set[Pair]:
    """Return the pairs of labels of all triggering inputs, deviating seeds included."""
    return {
        (one.original_label, one.deployed_label)
        for one in store.outcomes()
        if one.status in TRIGGERS
        and one.original_label is not None
        and one.deployed_label is not None
    }


def baseline_pairs(limits: LimitsConfig, classes: int | None = None) -> set[Pair] | None:
    """Return the pairs of classes that deviate in the baseline, None where it isn't needed.

    Raises UsageError where it is missing, no campaign, not finished, or one over another number of
    `classes`; and for models without a top-1 class, which have 0.
    """
    folder = limits.baseline
    if folder is None or limits.new_pairs:
        return None
    if classes == 0:
        raise UsageError(
            "limits.new_pairs: these models return text, boxes or values and have no pairs of "
            "classes, and new_pairs is for class models: leave it and baseline out, and limit "
            "max_deviation_rate or max_disagreement instead"
        )
    if not folder.is_dir():
        raise UsageError(
            f"limits.baseline: there is no folder {folder}; name that of a finished campaign"
        )
    try:
        with Store.open(folder) as store:
            _check_fits(store, folder, classes)
            return _deviating_pairs(store)
    except StoreError as error:
        raise UsageError(f"limits.baseline: {error}") from error


def _check_fits(store: Store, folder: Path, classes: int | None) -> None:
    if not store.state.finished:
        raise UsageError(
            f"limits.baseline: {folder} is not finished, so pairs may be missing from it; "
            f"`edgeflare resume {campaign_text(folder)}` goes on with it"
        )
    answered = (seed.outputs for seed in store.seeds(replica_names(store)[0]))
    scores = next((one.original for one in answered if one and one.original is not None), None)
    if scores is None:
        return
    kind = kind_of_answer(scores)
    count = kind.class_count(scores)
    if not count:
        raise UsageError(
            f"limits.baseline: the models of {folder} return {kind.noun}, so that it has no "
            "pairs of classes: new_pairs is for class models"
        )
    if classes not in (None, count):
        raise UsageError(
            f"limits.baseline: {folder} is a campaign over {count} classes, and this one is "
            f"over {classes}; name one of the same classes"
        )
