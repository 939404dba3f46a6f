"""The text of a failed `assert_agrees`: limits, the worst input, its picture and its command."""

import shlex
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from edgeflare._internal.files import natural_key, write_whole
from edgeflare._internal.text import clean_text, counted, names_text, number_text
from edgeflare.analysis import LimitCheck, check_limits
from edgeflare.analysis.class_names import class_name, known_class_names
from edgeflare.analysis.findings import Commands, has_input
from edgeflare.analysis.limits import applicable_rules, known_pairs
from edgeflare.answers.metrics import difference_text
from edgeflare.campaign import CampaignStatus, LimitsConfig, campaign_status
from edgeflare.campaign.pair.health import unusable_answers
from edgeflare.errors import StoreError
from edgeflare.reports.media import finding_panel
from edgeflare.store import OutcomeRecord, SeedRecord, Store, campaign_text
from edgeflare.types import TRIGGERS, Output, Status

PICTURE_NAME = "worst-trigger.png"
_WIDTH = 96
_LABEL_WIDTH = 12
_NAMED = 3
_UNANSWERED = (Status.FAILED, Status.NONFINITE)

Rank: TypeAlias = Callable[[OutcomeRecord], float | None]
"""Returns how bad an outcome is, the worst highest; None where a limit is not about it."""


def failure_text(folder: Path) -> str | None:
    """Return why a campaign doesn't show agreement; None where it does.

    That is where it crosses one of its own limits, a model failed on an input or gave NaN or
    infinity, or it isn't finished. The picture of the worst input is written into the folder.
    Raises StoreError.
    """
    status = campaign_status(folder)
    unfinished = status.state != "finished"
    with Store.open(folder) as store:
        crossed = [limit for limit in check_limits(store) if limit.crossed or limit.undecided]
        unanswered = [outcome for outcome in store.outcomes() if outcome.status in _UNANSWERED]
        if not crossed and not unanswered and not unfinished:
            return None
        parts = [("undecided" if one.undecided else "crossed", one.words) for one in crossed]
        if unanswered:
            parts.append(("unanswered", _unanswered_text(unanswered)))
        if unfinished:
            parts.append(("unfinished", _unfinished_text(status)))
        lines = [_title(store, crossed, unanswered)]
        for label, words in parts:
            lines += wrapped(words, label)
        worst = _worst_outcome(store, crossed, unanswered)
        if worst is not None:
            lines += _outcome_lines(store, worst)
        if unfinished:
            command = shlex.join(["edgeflare", "resume", campaign_text(store.folder.resolve())])
            lines.append(_label("resume") + command)
        return "\n".join(lines)


def _title(store: Store, crossed: Sequence[LimitCheck], unanswered: Sequence[OutcomeRecord]) -> str:
    original, deployed = (store.models[which]["name"] for which in ("original", "deployed"))
    devices = ", ".join(store.state.device_names)
    why = f"{deployed} on {devices} is not shown to agree with {original}"
    if unusable := unusable_answers(store):
        return f"{why}: {unusable[0].words}"
    if not crossed and not unanswered:
        return f"{why}: not finished"
    names = ", ".join(one.name for one in crossed)
    verb = "is" if len(crossed) == 1 else "are"
    why = f"{names} {verb} crossed" if crossed else "not every input was answered"
    return f"{deployed} on {devices} does not agree with {original}: {why}"


def _unanswered_text(unanswered: Sequence[OutcomeRecord]) -> str:
    failed, infinite = (
        sum(one.status is status for one in unanswered)
        for status in (Status.FAILED, Status.NONFINITE)
    )
    what = []
    if failed:
        what.append(f"a model could not answer on {counted(failed, 'input')}")
    if infinite:
        what.append(f"an output had NaN or infinity on {counted(infinite, 'input')}")
    names = sorted({clean_text(one.seed_id) for one in unanswered}, key=natural_key)
    return f"{', '.join(what)}: {names_text(names, _NAMED)}"


def _unfinished_text(status: CampaignStatus) -> str:
    why = f" ({status.message})" if status.message else ""
    done = f"{status.done:,} of {counted(status.total, 'search', 'searches')} done"
    return f"the campaign is {status.state}{why}: {done}"


def wrapped(words: str, label: str = "") -> list[str]:
    """Return lines of words below each other, right of the label; "5 %" stays together."""
    lines = textwrap.wrap(
        words.replace(" %", "\xa0%"),
        _WIDTH,
        initial_indent=_label(label) if label else "",
        subsequent_indent=" " * _LABEL_WIDTH if label else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\xa0%", " %") for line in lines]


def _label(label: str) -> str:
    return f"{label + ':':<{_LABEL_WIDTH}}"


def _worst_outcome(
    store: Store, crossed: Sequence[LimitCheck], unanswered: Sequence[OutcomeRecord]
) -> OutcomeRecord | None:
    """Return the worst outcome for the first crossed limit that single outcomes cross."""
    for check in crossed:
        rank = _rank_for(check, store)
        ranked = [
            (-value, natural_key(outcome.seed_id), outcome.replica, outcome)
            for outcome in store.outcomes()
            if (value := rank(outcome)) is not None
        ]
        if ranked:
            return min(ranked, key=lambda each: each[:3])[3]
    return next(filter(has_input, unanswered), None)


def _rank_for(check: LimitCheck, store: Store) -> Rank:
    if check.name == "max_deviation_rate":
        return lambda one: _severity(one) if one.status is Status.FOUND else None
    if check.name == "max_seed_deviation_rate":
        return lambda one: _severity(one) if one.status is Status.SEED_DEVIATES else None
    if check.name == "new_pairs":
        known = known_pairs(store, LimitsConfig.model_validate(store.campaign["limits"]))

        def is_new(one: OutcomeRecord) -> bool:
            return (one.original_label, one.deployed_label) not in known

        return lambda one: _severity(one) if one.status in TRIGGERS and is_new(one) else None

    def by_rule(one: OutcomeRecord) -> float | None:
        limits = {} if isinstance(check.limit, str) else {check.name: check.limit}
        for rule, value, _ in applicable_rules(one, limits):
            return -value if rule.below else value
        return None

    return by_rule


def _severity(one: OutcomeRecord) -> float:
    return one.severity or 0.0


def _outcome_lines(store: Store, worst: OutcomeRecord) -> list[str]:
    """Return the lines on one outcome; write its picture."""
    seed = next(seed for seed in store.seeds(worst.replica) if seed.id == worst.seed_id)
    name = clean_text(seed.id)
    changed = worst.trigger not in (None, seed.sample)
    about = (
        f"{name}, changed by an L2 of {number_text(worst.l2)}" if changed else f"{name}, as it is"
    )
    if worst.replica:
        about += f", on {worst.replica}"
    namer = partial(class_name, known_class_names(store))
    original, deployed = store.kind.answers_words(worst.original, worst.deployed, namer)
    differs = difference_text(worst.original, worst.deployed, namer)
    return [
        _label("seed") + about,
        _label("original") + original,
        _label("deployed") + deployed,
        *(wrapped(differs, "difference") if differs else ()),
        _label("picture")
        + _write_picture(
            store,
            seed,
            worst.trigger if changed else None,
            (worst.original, worst.deployed),
        ),
        _replay_line(store, worst),
    ]


def _replay_line(store: Store, worst: OutcomeRecord) -> str:
    """Return the command that sends a trigger again; the campaign where it is no trigger."""
    if worst.status in TRIGGERS:
        return _label("replay") + Commands(store).replay(worst.seed_id, worst.replica)
    return _label("campaign") + str(store.folder.resolve())


def _write_picture(
    store: Store,
    seed: SeedRecord,
    trigger: str | None,
    answers: tuple[Output | None, Output | None],
) -> str:
    """Write the `finding_panel`; return its path, or why there is none."""
    path = store.folder / PICTURE_NAME
    try:
        first = store.get_sample(seed.sample)
        second = first if trigger is None else store.get_sample(trigger)
        write_whole(path, finding_panel(first, second, answers, store.sample_rate))
    except OSError as error:
        return f"none: {path} can't be written: {error.strerror}"
    except StoreError as error:
        return f"none: {error}"
    return str(path)
