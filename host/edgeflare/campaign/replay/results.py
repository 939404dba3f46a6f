"""The result of each input of a replay, from the replay's folder alone."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from edgeflare._internal.records import JsonRecord, in_json
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.metrics import difference_text, text_of, top_label
from edgeflare.answers.parts import Margins
from edgeflare.answers.transcripts import spoken
from edgeflare.campaign.pair.health import unusable_answers
from edgeflare.campaign.settings.config import CampaignConfig, config_from, merge
from edgeflare.campaign.settings.models import ModelConfig
from edgeflare.campaign.status import replica_names
from edgeflare.devices.runtimes import BY_EXTENSION
from edgeflare.errors import StoreError, UsageError
from edgeflare.store import OutcomeRecord, SeedRecord, Store
from edgeflare.store.records import InputOfReplay, ReplayInput, ReplayResult
from edgeflare.store.state import ReplayStart
from edgeflare.types import TRIGGERS, Decision, Status

_T = TypeVar("_T")
ReplayState: TypeAlias = Literal[
    "fixed", "still", "new", "agrees", "unstable", "nonfinite", "failed"
]
"""What became of an input: it deviated before and doesn't now, still does, deviates anew, or agrees
as before; or no decision was possible."""
STATES: tuple[ReplayState, ...] = get_args(ReplayState)
_UNDECIDED: Mapping[Status, ReplayState] = {
    Status.UNSTABLE: "unstable",
    Status.NONFINITE: "nonfinite",
    Status.FAILED: "failed",
}


@dataclass(frozen=True, kw_only=True)
class ReplayedInput(InputOfReplay, JsonRecord):
    """One input on one device, before and now.

    `state`: "fixed" deviated when last sent and doesn't now, "still" did and does, "new" didn't and
    does, "agrees" didn't and doesn't; "unstable" deviated now, but not each time, or a model's
    answers can't be used, as `detail` says; "nonfinite": NaN or infinity in an output now; "failed":
    the device could not answer. `decision` is the oracle's now: a tie, or a difference with a margin
    below the floor, is no deviation, but narrow. Labels are class indices, None where there is none;
    texts are those that models return, None of class models. `difference` has what differs now in
    words, of detections and of values. Margins are top-1 minus top-2 probability now (of transcripts
    that differ: of the words that do), None where there is no answer or the device returns labels
    only.
    """

    device: str
    state: ReplayState
    original_label_before: int | None
    deployed_label_before: int | None
    decision: Decision | None
    original_margin: float | None
    deployed_margin: float | None
    detail: str = ""
    original_text_before: str | None = None
    deployed_text_before: str | None = None
    difference: str | None = None

    @in_json
    def margin(self) -> float | None:
        """The smaller one of both models' margins, as far as they are known."""
        return Margins(self.original_margin, self.deployed_margin).smaller

    @property
    def place(self) -> tuple[str, str]:
        """The input, which is a seed of the replay, and the replica."""
        return self.id, self.replica

    @property
    def decided(self) -> bool:
        """Whether the device answered, and steadily."""
        return self.state in ("still", "new", "fixed", "agrees")

    @property
    def deviates(self) -> bool:
        """Whether it deviates as far as is known: an undecided input stays what it was."""
        return self.state in ("still", "new") if self.decided else self.deviated

    @property
    def narrow(self) -> bool:
        """Whether the models differ or tie, yet so narrowly that it is no deviation."""
        return self.decision in (Decision.TIE, Decision.BELOW_FLOOR)

    @property
    def elsewhere(self) -> bool:
        """Whether it still deviates, but with other labels, or other words, than before."""
        before = (self.original_label_before, self.deployed_label_before)
        if self.state != "still":
            return False
        if self.original_text is not None and self.deployed_text is not None:
            return _words_differ(self.original_text_before, self.original_text) or (
                _words_differ(self.deployed_text_before, self.deployed_text)
            )
        return None not in before and before != (self.original_label, self.deployed_label)


def stored_replay(store: Store) -> ReplayStart:
    """Return what makes a campaign a replay. Raises StoreError where it is none."""
    return _of_replay(store, store.state.replay_start)


def _of_replay(store: Store, replay: _T | None) -> _T:
    if replay is None:
        raise StoreError(
            f"{store.folder} is a campaign, but no replay; `edgeflare replay {store.folder}` makes "
            "one"
        )
    return replay


def replay_inputs(store: Store) -> dict[str, ReplayInput]:
    """Return a replay's inputs as they were before it, by id. Raises as `stored_replay`."""
    return {before.id: before for before in _of_replay(store, store.state.replay).inputs}


def replayed_inputs(store: Store) -> Iterator[ReplayedInput]:
    """Yield the result of every input sent so far, device by device. Raises as `stored_replay`."""
    inputs = replay_inputs(store)
    unusable = {problem.replica: problem for problem in unusable_answers(store)}
    kind = store.kind
    names = store.state.device_names
    for replica in replica_names(store):
        alike = [replica] if replica else names
        outcomes = store.outcomes_of(replica)
        outcome = next(outcomes, None)
        for seed in store.seeds(replica):
            if outcome is None:
                break
            # outcomes come in the seeds' order, with some missing: both are walked once, none held
            if outcome.seed_id != seed.id:
                continue
            if seed.id in inputs:
                device = outcome.device_or_replica or ", ".join(names)
                last = _last_answer(inputs[seed.id], {device, *alike})
                result = _replayed(inputs[seed.id], seed, outcome, device, last, kind)
                why = unusable.get(replica)
                if why is not None and result.decided:
                    result = replace(result, state="unstable", detail=why.words)
                yield result
            outcome = next(outcomes, None)


def _replayed(
    before: ReplayInput,
    seed: SeedRecord,
    outcome: OutcomeRecord,
    device: str,
    last: ReplayResult | None,
    kind: AnswerKind[Any],
) -> ReplayedInput:
    deviated = before.deviated if last is None else last.deviated
    original, deployed, decision = outcome.original, outcome.deployed, None
    if deployed is None and seed.outputs is not None:
        original, deployed, decision = seed.outputs
    if outcome.status in TRIGGERS:
        decision = Decision.DEVIATION
    known = Margins(None, None)
    if original is not None and deployed is not None:
        known = kind.margins(original, deployed)
    return ReplayedInput(
        id=seed.id,
        kind=before.kind,
        seed_id=before.seed_id,
        device=device,
        state=_state(outcome.status, deviated=deviated),
        deviated=deviated,
        original_label_before=before.original_label,
        deployed_label_before=before.deployed_label if last is None else last.deployed_label,
        original_label=top_label(original),
        deployed_label=top_label(deployed),
        decision=decision,
        original_margin=known.original,
        deployed_margin=known.deployed if kind.is_scored else None,
        l2=before.l2,
        sample=seed.sample,
        detail=outcome.detail if outcome.status in _UNDECIDED else "",
        replica=outcome.replica,
        original_text_before=before.original_text,
        deployed_text_before=before.deployed_text if last is None else last.deployed_text,
        original_text=text_of(original),
        deployed_text=text_of(deployed),
        difference=difference_text(original, deployed),
    )


def _state(status: Status, *, deviated: bool) -> ReplayState:
    if status in _UNDECIDED:
        return _UNDECIDED[status]
    if status in TRIGGERS:
        return "still" if deviated else "new"
    return "fixed" if deviated else "agrees"


def _words_differ(before: str | None, now: str) -> bool:
    return before is not None and spoken(before) != spoken(now)


def _last_answer(before: ReplayInput, devices: Collection[str]) -> ReplayResult | None:
    """Return the last answer of one of these devices, which share the inputs, if any."""
    looks = [last for name, last in before.looks.items() if name in devices]
    return looks[-1] if looks else None


STRATEGY = "none"


def replay_config(
    base: CampaignConfig,
    overrides: Mapping[str, Any] | None = None,
    typed: Mapping[str, str] | None = None,
) -> CampaignConfig:
    """Return the configuration of a replay: the campaign's with `overrides` (nested).

    A model file that another runtime runs than before starts with that one's own options; what is
    stated of its pixels' scaling holds for it, too, how the file before laid them out does not.
    Nothing is searched: each input is sent as it is, and each deviation is confirmed
    `search.confirmations` times. The margin floor and the limits are the campaign's, but for the
    baseline: that of a replay is its source. `typed` names the flags of the overrides, as in
    `config_from`. Raises UsageError where a model isn't there.
    """
    overrides = overrides or {}
    original, deployed = (
        overrides.get(which, {}).get("path") for which in ("original", "deployed")
    )
    search = base.search.model_copy(
        update={"strategy": STRATEGY, "options": {}, "operators": (), "timeout_s": 0.0}
    )
    if not search.max_queries:
        search = search.model_copy(update={"max_queries": 1})
    endless = base.fleet.model_copy(update={"device_queries": None, "total_queries": None})
    plain = base.model_copy(
        update={
            "original": _with_file(base.original, original),
            "deployed": _with_file(base.deployed, deployed),
            "survey": base.survey.off,
            "search": search,
            "fleet": endless,
            "limits": base.limits.model_copy(
                update={
                    "new_pairs": True,
                    "baseline": None,
                    "max_confident_deviation": None,
                    "verdict": None,
                }
            ),
            "control": False,
            "control_model": None,
            "allow_disagreement": True,
            "out": None,
        }
    )
    config = config_from(merge(plain.model_dump(mode="json"), overrides), "replay", typed)
    _check_there(config, original=original, deployed=deployed)
    return config


def _with_file(model: ModelConfig, path: Path | None) -> ModelConfig:
    """Return the model's configuration with another file."""
    if path is None:
        return model
    path = Path(path).expanduser().absolute()
    if _format(path) == _format(model.path):
        return model.model_copy(update={"path": path})
    turned = model.input.model_copy(update={"layout": None})
    return ModelConfig(path=path, input=turned, decoder=model.decoder)


def _format(path: Path) -> str:
    suffix = path.suffix.lower()
    return BY_EXTENSION.get(suffix, suffix)


def _check_there(config: CampaignConfig, **named: Path | None) -> None:
    """Say of a model that has moved how to name it, unless it was named just now."""
    for which in ("original", "deployed"):
        path, given = getattr(config, which).path, named[which]
        if path.is_dir():
            raise UsageError(f"{given or path} is a folder; name the model file in it")
        if path.is_file():
            continue
        if given is not None:
            raise UsageError(f"there is no model file {given}")
        raise UsageError(
            f"the {which} model {path} is not there (any more): name it with --{which}"
        )
