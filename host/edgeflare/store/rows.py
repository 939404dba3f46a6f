"""Rows of the tables <-> records."""

import hashlib
import json
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from edgeflare.store.records import (
    OutcomeRecord,
    SeedRecord,
    scores_from_bytes,
    scores_to_bytes,
)
from edgeflare.types import Decision, Outputs, Status

_OUTCOME_FIELDS = [field.name for field in fields(OutcomeRecord)]


def digest_of(description: dict[str, Any]) -> str:
    """Return the SHA-256, in hex, of a JSON object's canonical text."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def seed_from_row(row: Row[Any]) -> SeedRecord:
    """Return the record of a row of the table seeds."""
    outputs = None
    if row.decision is not None:
        outputs = Outputs(
            scores_from_bytes(row.original), scores_from_bytes(row.deployed), Decision(row.decision)
        )
    return SeedRecord(row.id, row.position, row.label, row.sample, outputs)


def outputs_to_row(outputs: Outputs) -> dict[str, Any]:
    """Return the columns of the table seeds that hold both models' answers."""
    return {
        "original": scores_to_bytes(outputs.original),
        "deployed": scores_to_bytes(outputs.deployed),
        "decision": outputs.decision.value,
    }


def outcome_to_row(outcome: OutcomeRecord, environment: str | None) -> dict[str, Any]:
    """Return the columns of the table outcomes."""
    return {name: getattr(outcome, name) for name in _OUTCOME_FIELDS} | {
        "status": outcome.status.value,
        "chain_seed": str(outcome.chain_seed),
        "original": scores_to_bytes(outcome.original),
        "deployed": scores_to_bytes(outcome.deployed),
        "mutations": list(outcome.mutations),
        "finished_at": outcome.finished_at.isoformat(),
        "environment": environment,
    }


def outcome_from_row(row: Row[Any]) -> OutcomeRecord:
    """Return the record of a row of the table outcomes."""
    values = {name: getattr(row, name) for name in _OUTCOME_FIELDS} | {
        "status": Status(row.status),
        "chain_seed": int(row.chain_seed),
        "original": scores_from_bytes(row.original),
        "deployed": scores_from_bytes(row.deployed),
        "mutations": tuple(row.mutations),
        "finished_at": datetime.fromisoformat(row.finished_at),
    }
    return OutcomeRecord(**values)
