"""Reproduction of stored triggers: both models' answers then and now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.answers import kind_of_answer
from edgeflare.answers.columns import is_answer
from edgeflare.answers.metrics import class_scores, difference_text, is_finite, is_same, text_of
from edgeflare.campaign.context import RunContext, RunOptions
from edgeflare.campaign.events import Event, Notice, Progress
from edgeflare.campaign.replay.inputs import replay_source, survey_deviations, survey_id
from edgeflare.campaign.replay.results import (
    ReplayedInput,
    ReplayState,
    replay_inputs,
    replayed_inputs,
)
from edgeflare.campaign.replay.run import run_replay
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.status import replica_names
from edgeflare.store import Store
from edgeflare.store.records import ReplayInput
from edgeflare.types import Output, Status

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TOP = 3


@dataclass(frozen=True)
class TopScore:
    """A class index and its probability."""

    label: int
    probability: float


@dataclass(frozen=True)
class Reproduction(JsonRecord):
    """A stored trigger reproduced on one device, with the stored answers.

    `found_on` is the device whose stored answer is meant, None where none is stored.
    `original_before`, `deployed_before` and `original_now`, `deployed_now` are the most probable
    classes of each model's answer, best first; empty where there is no answer, and of models
    that return text, which have texts in their place: `original_text_before` and so on, None of class
    models. Of detections those texts name what is detected, and `difference_before` and
    `difference_now` have what differs in words, as of values. `original_equal`, `deployed_equal`: the model's scores are what they were, to the last
    bit; None where none are stored. `confirmed` counts how often the deviation repeated.
    `class_names` are those of detectors, None where they are not known.
    """

    id: str
    seed_id: str
    device: str
    found_on: str | None
    state: ReplayState
    deviates: bool
    confirmed: int
    original_before: tuple[TopScore, ...]
    deployed_before: tuple[TopScore, ...]
    original_now: tuple[TopScore, ...]
    deployed_now: tuple[TopScore, ...]
    original_equal: bool | None
    deployed_equal: bool | None
    detail: str = ""
    original_text_before: str | None = None
    deployed_text_before: str | None = None
    original_text_now: str | None = None
    deployed_text_now: str | None = None
    difference_before: str | None = None
    difference_now: str | None = None
    class_names: tuple[str, ...] | None = None

    @in_json
    def bit_equal(self) -> bool | None:
        """Whether both models' scores are bit-equal to the stored ones; None if none are stored."""
        known = (self.original_equal, self.deployed_equal)
        return None if None in known else all(known)


def reproduce(
    source: Path,
    seed_ids: Sequence[str],
    config: CampaignConfig,
    **run: "Unpack[RunOptions]",
) -> tuple[Reproduction, ...]:
    """Send the stored triggers of these seeds again; return the result of each on each device.

    `config` is made by `replay_config`. The replay is stored where `config.out` names a folder for
    it, and deleted else. Raises as `run_replay`.
    """
    source = Path(source)
    with TemporaryDirectory(prefix="edgeflare-replay-") as temporary:
        stored = config.out is not None
        context = RunContext(**run)
        if not stored:
            context = replace(context, progress=_without_advice(context.progress))
            config = config.model_copy(
                update={"out": Path(temporary) / "replay", "store": None, "samples": None}
            )
        folder = run_replay(
            source,
            config,
            seed_ids=seed_ids,
            name=f"{source.name}, its triggers",
            **context.options,
        )
        with Store.open(folder) as replay, replay_source(source) as opened:
            return tuple(_reproductions(replay, opened.store))


class ReplayAnswer(NamedTuple):
    """Both models' answers to one input on one device, and how often a deviation repeated.

    `status` is how the replay of the input ended; None of an answer that was stored before.
    """

    original: Output | None
    deployed: Output | None
    confirmed: int = 0
    status: Status | None = None


Answers = dict[str, ReplayAnswer]
"""Both models' answers on one input, by the name of the device."""


def _reproductions(replay: Store, source: Store | None) -> Iterator[Reproduction]:
    inputs = replay_inputs(replay)
    now = replay_answers(replay, set(inputs))
    before = {} if source is None else stored_answers(source, inputs)
    known = replay.state.class_names
    names = None if known is None else tuple(known)
    for one in replayed_inputs(replay):
        then = before.get(one.id, {})
        on = one.device if one.device in then else next(iter(then), None)
        found = _reproduction(one, now[one.id][one.device], None if on is None else then[on], on)
        yield replace(found, class_names=names)


def _reproduction(
    one: ReplayedInput, now: ReplayAnswer, before: ReplayAnswer | None, found_on: str | None
) -> Reproduction:
    return Reproduction(
        id=one.id,
        seed_id=one.seed_id,
        device=one.device,
        found_on=found_on,
        state=one.state,
        deviates=one.state in ("still", "new"),
        confirmed=now.confirmed,
        original_before=_top(before and before.original),
        deployed_before=_top(before and before.deployed),
        original_now=_top(now.original),
        deployed_now=_top(now.deployed),
        original_equal=None if before is None else _same(before.original, now.original),
        deployed_equal=None if before is None else _same(before.deployed, now.deployed),
        detail=one.detail,
        original_text_before=before and text_of(before.original),
        deployed_text_before=before and text_of(before.deployed),
        original_text_now=text_of(now.original),
        deployed_text_now=text_of(now.deployed),
        difference_before=before and difference_text(before.original, before.deployed),
        difference_now=difference_text(now.original, now.deployed),
    )


def stored_answers(source: Store, inputs: Mapping[str, ReplayInput]) -> dict[str, Answers]:
    """Return the source's answers on these inputs; the device that found an input comes first."""
    if source.state.is_replay:
        return replay_answers(source, set(inputs))
    found: dict[str, Answers] = {}
    for one in survey_deviations(source):
        if survey_id(one) in inputs:
            answer = ReplayAnswer(one.original, one.deployed, one.confirmed)
            found[survey_id(one)] = {one.device_name: answer}
    ids = {(one.seed_id, one.replica): name for name, one in inputs.items() if name not in found}
    for outcome in source.outcomes():
        name = ids.get(outcome.place)
        if name is not None:
            answer = ReplayAnswer(outcome.original, outcome.deployed, outcome.confirmed)
            found[name] = {outcome.device_name: answer}
    for replayed in source.replays():
        name = ids.get(replayed.place)
        if name in found and is_answer(replayed.deployed):
            original = next(iter(found[name].values())).original
            found[name].setdefault(replayed.on_device, ReplayAnswer(original, replayed.deployed))
    return found


def replay_answers(replay: Store, wanted: set[str]) -> dict[str, Answers]:
    """Return both models' answers on these inputs of a replay."""
    found: dict[str, Answers] = {}
    for replica in replica_names(replay):
        seeds = {seed.id: seed.outputs for seed in replay.seeds(replica) if seed.id in wanted}
        for outcome in replay.outcomes_of(replica):
            if outcome.seed_id not in wanted:
                continue
            outputs = seeds.get(outcome.seed_id)
            original, deployed = outcome.original, outcome.deployed
            if deployed is None and outputs is not None:
                original, deployed = outputs.original, outputs.deployed
            answer = ReplayAnswer(original, deployed, outcome.confirmed, outcome.status)
            found.setdefault(outcome.seed_id, {})[outcome.device_name] = answer
    return found


def _top(answer: Output | None) -> tuple[TopScore, ...]:
    """Return the most probable classes above 0; none where a score is not finite."""
    if answer is None or not kind_of_answer(answer).class_count(answer) or not is_finite(answer):
        return ()
    scores = class_scores(answer)
    order = np.argsort(-scores, kind="stable")[:_TOP]
    return tuple(TopScore(int(label), float(scores[label])) for label in order if scores[label] > 0)


def _same(before: Output | None, now: Output | None) -> bool:
    if before is None or now is None:
        return before is now
    return is_same(before, now)


def _without_advice(progress: Progress) -> Progress:
    """Pass on all events but notices on how to resume: the folder will be deleted."""

    def forward(event: Event) -> None:
        if not (isinstance(event, Notice) and event.resume):
            progress(event)

    return forward
