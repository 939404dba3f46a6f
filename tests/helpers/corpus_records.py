"""Triggers of a corpus, and what devices say of them later: pictures of a value each."""

import io
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import Any

import numpy as np

from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.corpus.records import Added, DeviceAnswer, Form, TriggerRecord
from edgeflare.types import Sample, Status

FORM = Form((2, 2, 1), 10)
DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def picture(value: int) -> Sample:
    """An image of the corpus' form with this value, up to 65535, in its first pixels."""
    return np.array([value % 256, value // 256, 0, 0], np.uint8).reshape(FORM.shape)


def digest(value: int) -> str:
    """The digest of the picture of this value."""
    buffer = io.BytesIO()
    np.save(buffer, picture(value), allow_pickle=False)
    return sha256(buffer.getvalue()).hexdigest()


def trigger_record(
    value: int, *, seed: int = 0, pair: tuple[int, int] = (4, 9), **other: Any
) -> TriggerRecord:
    """The picture `value` as a trigger, found from the picture of the value 1000 + `seed`."""
    fields: dict[str, Any] = {
        "seed_id": f"s/{seed}.png",
        "seed_label": pair[0],
        "status": Status.FOUND,
        "original_margin": 0.25,
        "deployed_margin": 0.5,
        "l2": 1.0,
        "linf": 9,
        "original_sha256": "a" * 64,
        "deployed_sha256": "b" * 64,
        "model": "int8",
        "device": "pi",
        "campaign": "c" * 32,
        "found_at": START + timedelta(minutes=value),
    }
    return TriggerRecord(
        sample=digest(value),
        seed_sample=digest(1000 + seed),
        original_label=pair[0],
        deployed_label=pair[1],
        **fields | other,
    )


def add(corpus: Corpus, *sightings: TriggerRecord, values: Iterable[int] = range(1100)) -> Added:
    """Add sightings of the pictures of these values."""
    samples = {digest(value): picture(value) for value in values}
    return corpus.add(sightings, FORM, samples.__getitem__)


def device_answer(value: int, *, deviated: bool, at: datetime, **other: Any) -> DeviceAnswer:
    """What a target said of the picture `value`."""
    fields: dict[str, Any] = {
        "model": "int8",
        "device": "pi",
        "deployed_sha256": "b" * 64,
        "original_label": 4,
        "deployed_label": 9 if deviated else 4,
        "replay": "d" * 32,
    }
    return DeviceAnswer(digest(value), deviated=deviated, looked_at=at, **fields | other)
