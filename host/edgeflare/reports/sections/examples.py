"""The worst inputs of the survey, of each fault and of each group of findings, with their pictures."""

from collections.abc import Sequence
from itertools import islice

from edgeflare._internal.text import capitalized, counted, margin_text
from edgeflare.analysis.faults import Fault
from edgeflare.analysis.survey import SurveyedInput, SurveyFigures
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.document import Example, Name
from edgeflare.errors import StoreError
from edgeflare.explanation import SHRUNK_FOLDER, Explanation, FindingGroup
from edgeflare.reports.explanation import GROUPS_SHOWN
from edgeflare.reports.survey.document import answers, margins_words
from edgeflare.store import Store, SurveyRecord
from edgeflare.words.causes import doubt_text, labels_words, layer_words, nearest_words


def survey_examples(store: Store, survey: SurveyFigures, name: Name) -> list[Example]:
    """Return the confident deviations with the largest margins. Raises StoreError."""
    worst = [one for one in survey.worst if one.confident_deviation]
    return [
        example._replace(
            words=f"{one.words} (severity {one.severity}), from {one.seed_text}",
            remark=f"{example.remark}{'; ' * bool(example.remark)}answers "
            f"{margin_text(one.distance)} apart",
        )
        for one, example in zip(worst, _examples(store, worst, name), strict=True)
    ]


def fault_examples(store: Store, faults: Sequence[Fault], name: Name) -> list[list[Example]]:
    """Return the worst inputs of each fault. Raises StoreError."""
    examples = iter(_examples(store, [one for fault in faults for one in fault.worst], name))
    return [[*islice(examples, len(fault.worst))] for fault in faults]


def _examples(store: Store, inputs: Sequence[SurveyedInput], name: Name) -> list[Example]:
    pictures = _pictures(store, set(map(_key, inputs)))
    return [
        Example(
            answers(one, name),
            f"{one.words}, from {one.seed_text}",
            f"margins {margins}" if (margins := margins_words(one)) else "",
            pictures.get(_key(one), b""),
            f"seed, input and difference: {one.words}",
        )
        for one in inputs
    ]


def _key(one: SurveyedInput | SurveyRecord) -> tuple[str, str, str]:
    return (*one.place, one.sample)


def _pictures(
    store: Store, missing: set[tuple[str, str, str]]
) -> dict[tuple[str, str, str], bytes]:
    """Return the pictures of surveyed inputs by their keys."""
    from edgeflare.reports.media import finding_panel

    inputs, pictures = SurveyInputs(store), {}
    for one in store.survey(deviating=True):
        key = _key(one)
        if key not in missing or key in pictures:
            continue
        both = (one.original, one.deployed)
        try:
            made = finding_panel(inputs.seed(one), inputs.sample(one), both, store.sample_rate)
        except StoreError:  # a user's family that is gone, or makes other inputs by now
            continue
        pictures[key] = made
    return pictures


def group_examples(store: Store, explanation: Explanation, name: Name) -> list[Example]:
    """Return the finding nearest to its seed of each group. Raises StoreError."""
    seeds = {seed.id: seed.sample for seed in store.seeds()}
    examples = []
    for group in explanation.groups[:GROUPS_SHOWN]:
        labels = labels_words(group, name)
        parts = (capitalized(group.cause), layer_words(group.layer), group.fault, labels)
        words = f"{counted(group.count, 'finding')}; nearest: {nearest_words(group, name)}"
        doubt = doubt_text(group.nearest.doubt)
        examples.append(
            Example(
                ", ".join(filter(None, parts)),
                words,
                f"in doubt: {doubt}" if doubt else "",
                _nearest(store, seeds.get(group.nearest.seed_id, ""), group),
                f"seed, input and difference: {words}",
            )
        )
    return examples


def _nearest(store: Store, seed: str, group: FindingGroup) -> bytes:
    """Return the seed, the nearest finding (shrunk where it was), and the difference."""
    from edgeflare.reports.media import small_panel

    try:
        before, found = store.get_sample(seed), store.get_sample(group.nearest.sample)
        if group.shrunk is not None:
            with Store.open(store.folder / SHRUNK_FOLDER) as nearer:
                found = nearer.get_sample(group.shrunk.sample)
    except StoreError:  # its file is gone
        return b""
    return small_panel(before, found, store.sample_rate)
