"""Rows of the tables <-> records."""

import hashlib
import json
from dataclasses import fields
from typing import Any

from sqlalchemy import Row

from edgeflare.answers import numbers
from edgeflare.devices.telemetry import DeviceMinute
from edgeflare.store.documents import moment, record
from edgeflare.store.records import (
    Device,
    OutcomeRecord,
    ReplayRecord,
    SeedAnswer,
    SeedRecord,
    output_columns,
    output_from,
)
from edgeflare.types import Decision, Output, Outputs, Transcript

_OUTCOME_FIELDS = [field.name for field in fields(OutcomeRecord)]
_REPLAY_FIELDS = [field.name for field in fields(ReplayRecord)]
_MINUTE_FIELDS = [field.name for field in fields(DeviceMinute)]
_LAST_BUCKET = 10_000
"""No time is in a bucket so far out: see `Latencies`."""
_MOST = 1 << 63


def digest_of(description: dict[str, Any]) -> str:
    """Return the SHA-256, in hex, of a JSON object's canonical text."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def environment_from_row(row: Row[Any]) -> tuple[str, dict[str, Any]]:
    """Return the digest of a host's environment, and what it describes."""
    return row.digest, _described(row.digest, row.description)


def device_from_row(row: Row[Any]) -> Device:
    """Return the record of a device."""
    return record(Device, row, fingerprint=_described(row.digest, row.fingerprint))


def seed_from_row(row: Row[Any]) -> SeedRecord:
    """Return the record of a seed and one replica's answer, where there is any."""
    outputs = None
    if row.decision is not None:
        outputs = Outputs(*_outputs(row), Decision(row.decision))
    return record(SeedRecord, row, outputs=outputs)


def answer_to_row(answer: SeedAnswer) -> dict[str, Any]:
    """Return the columns of the table seed_answers, but for those of seed and replica."""
    return {
        **output_columns("original", answer.original),
        **output_columns("deployed", answer.deployed),
        "decision": answer.decision.value,
    }


def outcome_to_row(outcome: OutcomeRecord, environment: str | None) -> dict[str, Any]:
    """Return the columns of the table outcomes, but for the seed's."""
    row = {name: getattr(outcome, name) for name in _OUTCOME_FIELDS} | {
        "status": outcome.status.value,
        "chain_seed": str(outcome.chain_seed),
        **output_columns("original", outcome.original),
        **output_columns("deployed", outcome.deployed),
        "mutations": list(outcome.mutations),
        "front": [point._asdict() for point in outcome.front],
        "finished_at": outcome.finished_at.isoformat(),
        "environment": environment,
    }
    del row["seed_id"]
    return row


def outcome_from_row(row: Row[Any]) -> OutcomeRecord:
    """Return the record of a row of the table outcomes and its seed's id."""
    original, deployed = _outputs(row)
    return record(
        OutcomeRecord,
        row,
        original=original,
        deployed=deployed,
        mutations=tuple(row.mutations),
        front=tuple(row.front),
        finished_at=moment(row.finished_at),
    )


def replay_to_row(replay: ReplayRecord) -> dict[str, Any]:
    """Return the columns of the table replays, but for the seed's."""
    row = {name: getattr(replay, name) for name in _REPLAY_FIELDS} | {
        **output_columns("deployed", replay.deployed),
        "decision": replay.decision.value,
    }
    del row["seed_id"]
    return row


def replay_from_row(row: Row[Any]) -> ReplayRecord:
    """Return the record of a row of the table replays and its seed's id."""
    deployed = output_from(row.deployed, row.deployed_pieces)
    return record(ReplayRecord, row, deployed=deployed)


def minute_to_row(minute: DeviceMinute) -> dict[str, Any]:
    """Return the columns of the table telemetry."""
    buckets = minute.latencies or {}
    return {name: getattr(minute, name) for name in _MINUTE_FIELDS} | {
        "minute": minute.minute.isoformat(),
        "latencies": [list(pair) for pair in buckets.items()],
        "throttle_reasons": list(minute.throttle_reasons),
    }


def minute_from_row(row: Row[Any]) -> DeviceMinute:
    """Return the record of a device's minute."""
    latencies = dict(row.latencies)
    if not all(abs(one) < _LAST_BUCKET and 0 < n < _MOST for one, n in latencies.items()):
        raise ValueError("latencies are no counts of times")
    return record(DeviceMinute, row, minute=moment(row.minute), latencies=latencies)


def _described(digest: str, description: dict[str, Any]) -> dict[str, Any]:
    if digest_of(description) != digest:
        raise ValueError(f"what the digest {digest} describes has changed")
    return description


def _outputs(row: Row[Any]) -> tuple[Output | None, Output | None]:
    """Return both models' answers, which are of one kind and length where there are both."""
    original = output_from(row.original, row.original_pieces)
    deployed = output_from(row.deployed, row.deployed_pieces)
    if original is not None and deployed is not None:
        scores = not isinstance(original, Transcript), not isinstance(deployed, Transcript)
        if scores[0] != scores[1] or (
            scores[0] and numbers(original).size != numbers(deployed).size
        ):
            raise ValueError("the two models' answers are of two kinds")
    return original, deployed
