"""Rows of the tables <-> records."""

import hashlib
import json
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from edgeflare.store.records import (
    OutcomeRecord,
    ReplayRecord,
    SeedAnswer,
    SeedRecord,
    output_columns,
    output_from,
)
from edgeflare.types import Decision, FrontPoint, Outputs, Status

_OUTCOME_FIELDS = [field.name for field in fields(OutcomeRecord)]
_REPLAY_FIELDS = [field.name for field in fields(ReplayRecord)]


def digest_of(description: dict[str, Any]) -> str:
    """Return the SHA-256, in hex, of a JSON object's canonical text."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def seed_from_row(row: Row[Any]) -> SeedRecord:
    """Return the record of a seed and one replica's answer, where there is any."""
    outputs = None
    if row.decision is not None:
        outputs = Outputs(
            output_from(row.original, row.original_pieces),
            output_from(row.deployed, row.deployed_pieces),
            Decision(row.decision),
        )
    return SeedRecord(row.id, row.position, row.label, row.sample, outputs, row.file_sha256)


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
    values = {name: getattr(row, name) for name in _OUTCOME_FIELDS} | {
        "status": Status(row.status),
        "chain_seed": int(row.chain_seed),
        "original": output_from(row.original, row.original_pieces),
        "deployed": output_from(row.deployed, row.deployed_pieces),
        "mutations": tuple(row.mutations),
        "front": tuple(FrontPoint(**point) for point in row.front),
        "finished_at": datetime.fromisoformat(row.finished_at),
    }
    return OutcomeRecord(**values)


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
    values = {name: getattr(row, name) for name in _REPLAY_FIELDS} | {
        "deployed": output_from(row.deployed, row.deployed_pieces),
        "decision": Decision(row.decision),
    }
    return ReplayRecord(**values)
