"""A campaign's findings as files that any program can read: PNG and JSON lines."""

import errno
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgeflare.analysis.opening import opened
from edgeflare.analysis.rows import file_stem, finding_row, jsonable
from edgeflare.analysis.summary import summarize
from edgeflare.errors import DiskFullError, StoreError
from edgeflare.store import OutcomeRecord, SeedRecord, Store
from edgeflare.types import Status

EXPORTED = (Status.FOUND, Status.SEED_DEVIATES, Status.UNSTABLE, Status.NONFINITE)
"""The outcomes that have an input to show."""


@dataclass(frozen=True)
class ExportReport:
    """What an export wrote: findings by status, and files."""

    folder: str
    findings: int
    by_status: dict[str, int]
    files: int

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return asdict(self)


def export_campaign(
    campaign: Store | Path, folder: Path, *, progress: Callable[[int, int], None] | None = None
) -> ExportReport:
    """Write every finding of a campaign into a folder.

    `campaign.json` says what was run; `triggers.jsonl` has one line a finding, in the order of the
    seeds; `images/` has for each a PNG of seed and triggering input, pixel by pixel, their amplified
    difference, and a panel of the three. Numbers that JSON lacks are the texts "nan", "inf", "-inf".

    The folder must not exist, be empty, or come from an earlier export of the same campaign, which
    is brought up to date. `progress` is called with the findings written and their number.

    Raises StoreError where a folder can't be used, DiskFullError where no space is left.
    """
    with opened(campaign) as store, _written_to(folder):
        _make_ready(folder, store)
        _write_json(folder / "campaign.json", _describe(store))
        outcomes = {one.seed_id: one for one in store.outcomes() if one.status in EXPORTED}
        models = store.models
        lines = []
        files = 2
        for seed in store.seeds():
            if seed.id in outcomes:
                row = _export_one(store, models, folder, seed, outcomes[seed.id])
                lines.append(json.dumps(row, allow_nan=False) + "\n")
                files += len(row["files"])
                if progress is not None:
                    progress(len(lines), len(outcomes))
        _write(folder / "triggers.jsonl", "".join(lines).encode())
        statuses = Counter(one.status.value for one in outcomes.values())
    return ExportReport(str(folder), len(lines), dict(statuses), files)


def _export_one(
    store: Store,
    models: dict[str, Any],
    folder: Path,
    seed: SeedRecord,
    outcome: OutcomeRecord,
) -> dict[str, Any]:
    from edgeflare.analysis.pictures import difference, panel, png

    original = store.get_sample(seed.sample)
    trigger = store.get_sample(outcome.trigger or seed.sample)
    change = difference(original, trigger)
    files = {}
    for kind, picture in (
        ("seed", original),
        ("trigger", trigger),
        ("difference", change.picture),
        ("panel", panel(original, trigger, change.picture)),
    ):
        files[kind] = f"images/{file_stem(seed)}-{kind}.png"
        _write(folder / files[kind], png(picture))
    return finding_row(models, seed, outcome, files, change.amplification)


def _describe(store: Store) -> dict[str, Any]:
    return {
        "campaign": store.id,
        "created_at": store.created_at.isoformat(),
        "config": store.campaign,
        "models": store.models,
        "devices": {device.digest: asdict(device) for device in store.devices()},
        "environments": store.environments(),
        "skipped": [asdict(entry) for entry in store.skipped()],
        "notices": store.notices(),
        "summary": summarize(store).to_json(),
    }


def _make_ready(folder: Path, store: Store) -> None:
    if folder.exists() and not _may_be_used(folder, store):
        raise StoreError(
            f"{folder} exists and is no earlier export of this campaign; choose another folder."
        )
    (folder / "images").mkdir(parents=True, exist_ok=True)


def _may_be_used(folder: Path, store: Store) -> bool:
    if not folder.is_dir():
        return False
    try:
        earlier = json.loads((folder / "campaign.json").read_bytes())
    except FileNotFoundError:
        return not any(folder.iterdir())
    except ValueError:
        return False
    return isinstance(earlier, dict) and earlier.get("campaign") == store.id


def _write_json(path: Path, value: dict[str, Any]) -> None:
    _write(path, json.dumps(jsonable(value), indent=2, allow_nan=False).encode())


def _write(path: Path, data: bytes) -> None:
    """Write a whole file or, whatever happens, leave the one that was there."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"No space is left on the disk of {folder}; the campaign itself is untouched. "
                "Free some space and export again."
            ) from error
        raise StoreError(
            f"{error.filename or folder} can't be written: {error.strerror}; choose another folder."
        ) from error
