"""The rows of a campaign's data frames."""

from collections.abc import Iterator
from typing import Any

from edgeflare.analysis.findings import findings
from edgeflare.answers import numbers, text_of, top_label
from edgeflare.campaign.counting import replicas_of
from edgeflare.campaign.replay_states import REPLAY, replayed_inputs
from edgeflare.search.mutation_path import step_words
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import TRIGGERS, Decision, Output, Scores, Status


def outcomes(store: Store) -> Iterator[dict[str, Any]]:
    """How each search ended, in the order they did."""
    for one in store.outcomes():
        yield {
            **_counted(one),
            "searched": one.searched,
            "seed_queries": one.seed_queries,
            "confirmation_queries": one.confirmation_queries,
            "host_only_queries": one.host_only_queries,
            "round_trips": one.round_trips,
            "seconds": one.seconds,
            "device_seconds": one.device_seconds,
            "confirmed": one.confirmed,
            "detail": one.detail,
            "finished_at": one.finished_at,
        }


def triggers(store: Store) -> Iterator[dict[str, Any]]:
    """The triggering inputs in the order of the seeds, then of the devices that searched for themselves."""
    for finding in findings(store):
        one = finding.outcome
        if one.status in TRIGGERS:
            yield {
                **_counted(one),
                "cause": finding.cause,
                "label": finding.seed.label,
                "severity": one.severity,
                "steps": " + ".join(step_words(one.mutations)),
                "seed_sample": finding.seed.sample,
                "trigger_sample": one.trigger or finding.seed.sample,
                "original_scores": _scores(one.original),
                "deployed_scores": _scores(one.deployed),
                "command": finding.command,
            }


def seeds(store: Store) -> Iterator[dict[str, Any]]:
    """Both models' answers on the seed inputs, device by device where each searched for itself."""
    for replica in replicas_of(store):
        for seed in store.seeds(replica):
            original, deployed, decision = seed.outputs or (None, None, None)
            yield {
                "seed_id": seed.id,
                "replica": replica,
                "position": seed.position,
                "label": seed.label,
                "decision": decision and decision.value,
                "original_label": top_label(original),
                "deployed_label": top_label(deployed),
                "original_text": text_of(original),
                "deployed_text": text_of(deployed),
                "original_scores": _scores(original),
                "deployed_scores": _scores(deployed),
                "sample": seed.sample,
                "file_sha256": seed.file_sha256,
            }


def telemetry(store: Store) -> Iterator[dict[str, Any]]:
    """The devices' minutes as they were recorded; one that was interrupted is there in several parts."""
    for minute in store.telemetry():
        yield {**vars(minute), "throttle_reasons": ", ".join(minute.throttle_reasons)}


def replays(store: Store) -> Iterator[dict[str, Any]]:
    """What became of each input of a replay; nothing for another campaign."""
    if store.fact(REPLAY) is not None:
        for one in replayed_inputs(store):
            yield one.to_json()


def transfers(store: Store) -> Iterator[dict[str, Any]]:
    """What each device answers to the triggers of another one."""
    for one in store.replays():
        yield {
            "seed_id": one.seed_id,
            "replica": one.replica,
            "on_device": one.on_device,
            "trigger_sample": one.trigger,
            "deployed_label": one.deployed_label,
            "deployed_text": text_of(one.deployed),
            "decision": one.decision.value,
            "deviates": one.decision is Decision.DEVIATION,
        }


def _counted(one: OutcomeRecord) -> dict[str, Any]:
    return {
        "seed_id": one.seed_id,
        "replica": one.replica,
        "device": one.replica or one.device_name,
        "status": one.status.value,
        "first_trigger_queries": one.first_queries if one.status is Status.FOUND else None,
        "search_queries": one.search_queries,
        "original_label": one.original_label,
        "deployed_label": one.deployed_label,
        "original_text": text_of(one.original),
        "deployed_text": text_of(one.deployed),
        "original_margin": one.original_margin,
        "deployed_margin": one.deployed_margin,
        "l2": one.l2,
        "linf": one.linf,
        "snr_db": one.snr_db,
    }


def _scores(output: Output | None) -> Scores | None:
    return None if output is None else numbers(output)
