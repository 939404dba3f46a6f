"""One finding as a JSON object."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare.store import OutcomeRecord, SeedRecord
from edgeflare.types import Scores

_STEM_LENGTH = 60


def finding_row(
    models: Mapping[str, Any],
    seed: SeedRecord,
    outcome: OutcomeRecord,
    files: Mapping[str, str],
    amplification: float,
) -> dict[str, Any]:
    """Return everything that is needed to see a finding again, as a JSON object.

    Scores are lists of float [classes]. `seed_sample` and `trigger_sample` are digests in the
    campaign's store (one and the same where the seed itself is the finding); `device` and
    `environment` are digests that `campaign.json` explains; `amplification` is the factor of the
    difference picture.
    """
    row = {
        "seed_id": seed.id,
        "status": outcome.status.value,
        "label": seed.label,
        "chain_seed": outcome.chain_seed,
        "seed_sample": seed.sample,
        "trigger_sample": outcome.trigger or seed.sample,
        "files": dict(files),
        "amplification": amplification,
        "original_label": outcome.original_label,
        "deployed_label": outcome.deployed_label,
        "original_scores": _list(outcome.original),
        "deployed_scores": _list(outcome.deployed),
        "original_margin": outcome.original_margin,
        "deployed_margin": outcome.deployed_margin,
        "seed_original_scores": _list(seed.outputs.original) if seed.outputs else None,
        "seed_deployed_scores": _list(seed.outputs.deployed) if seed.outputs else None,
        "l2": outcome.l2,
        "linf": outcome.linf,
        "queries": {
            "seed": outcome.seed_queries,
            "search": outcome.search_queries,
            "confirmation": outcome.confirmation_queries,
            "host_only": outcome.host_only_queries,
        },
        "seconds": outcome.seconds,
        "confirmed": outcome.confirmed,
        "mutations": list(outcome.mutations),
        "detail": outcome.detail,
        "finished_at": outcome.finished_at.isoformat(),
        "original_model": models.get("original", {}).get("sha256"),
        "deployed_model": models.get("deployed", {}).get("sha256"),
        "device": outcome.device,
        "environment": outcome.environment,
    }
    plain: dict[str, Any] = jsonable(row)
    return plain


def file_stem(seed: SeedRecord) -> str:
    """Return the beginning of a seed's file names: unique, and plain on every file system."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", re.sub(r"\.[A-Za-z]+$", "", seed.id)).strip("-")
    return f"{seed.position:05d}-{plain[-_STEM_LENGTH:]}"


def jsonable(value: Any) -> Any:
    """Return JSON data with NaN and infinity as the texts "nan", "inf" and "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: jsonable(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [jsonable(part) for part in value]
    return value


def _list(scores: Scores | None) -> list[float] | None:
    return None if scores is None else [float(score) for score in scores]
