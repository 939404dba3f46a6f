"""How alike a seed input and its triggering input look."""

import csv
from pathlib import Path
from typing import NamedTuple

from edgeflare.analysis.rows import csv_cell
from edgeflare.distances import ssim
from edgeflare.errors import UsageError
from edgeflare.store import SeedRecord, Store

SEARCHES_NAME = "searches.csv"


class _Key(NamedTuple):
    pair: str
    seed_id: str
    trigger: str


class Similarities:
    """SSIM of triggering inputs: what an earlier report in `folder` says is taken over, others are computed.

    Without scikit-image those that would be computed are None, and `notice` says so.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.notice = ""
        self._known = {} if folder is None else _earlier(folder / SEARCHES_NAME)

    def of(self, store: Store, pair: str, seed: SeedRecord, trigger: str) -> float | None:
        """Return the SSIM of a seed and the sample of digest `trigger`. Raises StoreError."""
        known = self._known.get(_Key(csv_cell(pair), csv_cell(seed.id), trigger))
        if known is not None or self.notice:
            return known
        try:
            return ssim(store.get_sample(seed.sample), store.get_sample(trigger))
        except UsageError as error:
            self.notice = str(error)
            return None


def _earlier(path: Path) -> dict[_Key, float]:
    """Return what an earlier report's file says; nothing where it can't be read."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {
                _Key(line["pair"], line["seed_id"], line["trigger"]): float(line["ssim"])
                for line in csv.DictReader(file)
                if line["ssim"]
            }
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}
