"""The searches of a bench, read from its campaigns."""

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgeflare._internal.files import read_regular
from edgeflare.analysis.findings import csv_cell
from edgeflare.answers import kind_of_answer
from edgeflare.answers.metrics import text_of, top_label
from edgeflare.campaign.resolution import RESOLVED, STRATEGY
from edgeflare.errors import UsageError
from edgeflare.metrics import ssim
from edgeflare.store import DeviceRecord, OutcomeRecord, SeedRecord, Store
from edgeflare.strategies.boundary import BoundaryOptions, has_open_choice
from edgeflare.strategies.operators import describe_finding
from edgeflare.types import Decision, Output, Status
from edgeflare_bench.cells import Bench, Cell

SEARCHES_NAME = "searches.csv"


class Similarities:
    """SSIM of triggering inputs: computed, unless an earlier report in `folder` has it.

    Without scikit-image those that would be computed are None, and `notice` says so.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.notice = ""
        self._known = {} if folder is None else _earlier(folder / SEARCHES_NAME)

    def of(self, store: Store, pair: str, seed: SeedRecord, trigger: str) -> float | None:
        """Return the SSIM of a seed and the sample of digest `trigger`. Raises StoreError."""
        known = self._known.get((csv_cell(pair), csv_cell(seed.id), trigger))
        if known is not None or self.notice:
            return known
        try:
            return ssim(store.get_sample(seed.sample), store.get_sample(trigger))
        except UsageError as error:
            self.notice = str(error)
            return None


def _earlier(path: Path) -> dict[tuple[str, str, str], float]:
    """Return SSIM by pair, seed and trigger, of an earlier report's file; nothing if it can't be read."""
    try:
        text = read_regular(path, inside=path.parent).decode()
        with io.StringIO(text, newline="") as file:
            return {
                (line["pair"], line["seed_id"], line["trigger"]): float(line["ssim"])
                for line in csv.DictReader(file)
                if line["ssim"]
            }
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}


_FORCED = "resumed with --force"
_USUALLY_TIED = 2
_STEPS_SHOWN = 5
_OF_TRIGGER = (
    *("l2", "linf", "snr_db", "original_margin", "deployed_margin"),
    *("original_label", "deployed_label", "trigger"),
)
"""What an outcome says of a triggering input; a search that found none has nothing there."""


@dataclass(frozen=True, kw_only=True)
class SearchRow(OutcomeRecord):
    """How one search ended: its outcome, without answers and mutations.

    `searched` is False where the seed itself was a finding, `found` True where a triggering input
    was found and confirmed. `queries` are search queries (one input given to both models counts
    once), `seconds` search time without queueing. `host_queries` are inputs given to the original
    alone, `device_queries` all that the device was given: the seed, the search's and those that
    confirm; `round_trips` are the search's requests to the device. `front` are the deviations on
    the way that no earlier one beats in both margin and distance. Of the triggering input, None
    without one: its distances to the seed (`l2` on a scale of pixels from 0 to 1, of audio of
    samples from -1 to 1; `linf` in levels of 8 bits, of audio of 16; `ssim` 1 for equal images,
    `snr_db` of audio), both models' margins (top-1 minus top-2) and labels, or texts where
    models return text, whether the original still gives it the seed's label or words, its digest, and in
    `words` what was done to the seed (the last 5 steps) and both labels. `ssim` is None, too, for
    images below 3 pixels or without scikit-image.
    """

    pair: str
    strategy: str
    repeat: int
    ssim: float | None = None
    original_text: str | None = None
    deployed_text: str | None = None
    seed_label_kept: bool | None = None
    words: str | None = None

    smaller_margin = OutcomeRecord.severity

    @property
    def found(self) -> bool:
        """Whether a triggering input was found and confirmed."""
        return self.status is Status.FOUND

    @property
    def queries(self) -> int:
        """The search queries."""
        return self.search_queries

    @property
    def host_queries(self) -> int:
        """The inputs given to the original alone."""
        return self.host_only_queries

    @property
    def device_queries(self) -> int:
        """All inputs that the device was given."""
        return self.seed_queries + self.search_queries + self.confirmation_queries

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the names of `COLUMNS`; each point of `front` is one, too."""
        values = {name: getattr(self, name) for name in COLUMNS}
        front = [point._asdict() for point in self.front]
        return values | {"status": self.status.value, "front": front}


COLUMNS = (
    *("pair", "strategy", "repeat", "seed_id", "status", "searched", "found"),
    *("queries", "seconds", "host_queries", "device_queries", "round_trips"),
    *("l2", "linf", "ssim", "snr_db", "original_margin", "deployed_margin"),
    *("original_label", "deployed_label", "original_text", "deployed_text"),
    *("seed_label_kept", "trigger", "words", "front"),
)
"""The columns of searches.csv, in which `front` is JSON; see `SearchRow`."""


@dataclass(frozen=True)
class CellRecords:
    """A cell's campaign: its searches, and what is known of it as a whole.

    `ties` are the seeds on which a model's top-1 was a tie; `queries` count by kind over all
    outcomes; `forced` are the campaign's notices that it went on although something had changed.
    `resolved` are the boundary search's options that depend on what queries cost, once they are
    chosen; else it is empty. `sample_rate` is that of audio in Hz.
    """

    rows: list[SearchRow] = field(default_factory=list)
    ties: frozenset[str] = frozenset()
    queries: Counter[str] = field(default_factory=Counter)
    devices: list[DeviceRecord] = field(default_factory=list)
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
    forced: tuple[str, ...] = ()
    resolved: dict[str, Any] = field(default_factory=dict)
    sample_rate: int | None = None

    def model(self, side: str) -> dict[str, Any]:
        """Return what is known of the model "original" or "deployed"."""
        return self.models.get(side) or {}


def read_cell(bench: Bench, cell: Cell, similarities: Similarities) -> CellRecords:
    """Return what a cell's campaign has so far. Raises StoreError where it can't be read."""
    if bench.state(cell) == "missing":
        return CellRecords()
    with Store.open(bench.campaign(cell)) as store:
        seeds = {seed.id: seed for seed in store.seeds()}
        rows, queries = [], Counter[str]()
        for outcome in store.outcomes():
            queries["seed"] += outcome.seed_queries
            queries["search"] += outcome.search_queries
            queries["confirmation"] += outcome.confirmation_queries
            queries["host_only"] += outcome.host_only_queries
            rows.append(_row(cell, store, seeds[outcome.seed_id], outcome, similarities))
        rows.sort(key=lambda row: seeds[row.seed_id].position)
        return CellRecords(
            rows=rows,
            ties=frozenset(
                seed.id
                for seed in seeds.values()
                if seed.outputs and seed.outputs.decision is Decision.TIE
            ),
            queries=queries,
            devices=store.devices(),
            environments=store.environments(),
            models=store.models,
            forced=tuple(text for text in store.notices() if text.startswith(_FORCED)),
            resolved=_resolved(store.campaign.get("search", {})),
            sample_rate=store.sample_rate,
        )


def _resolved(search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resolved options of a campaign's boundary search; nothing of another one."""
    if search.get("strategy") != STRATEGY:
        return {}
    options = BoundaryOptions.model_validate(search["options"])
    if has_open_choice(options) or options.candidates is None:
        return {}
    found = {name: getattr(options, name) for name in RESOLVED}
    return {**found, "tied_classes": options.tied_classes or _USUALLY_TIED}


def _row(
    cell: Cell, store: Store, seed: SeedRecord, outcome: OutcomeRecord, similarities: Similarities
) -> SearchRow:
    values = vars(outcome) | cell._asdict() | {"original": None, "deployed": None, "mutations": ()}
    if outcome.status is not Status.FOUND or outcome.trigger is None:
        return SearchRow(**values | dict.fromkeys(_OF_TRIGGER))
    answers = _told(outcome.original), _told(outcome.deployed)
    return SearchRow(
        **values,
        ssim=similarities.of(store, cell.pair, seed, outcome.trigger),
        original_text=text_of(outcome.original),
        deployed_text=text_of(outcome.deployed),
        seed_label_kept=_seed_answer_kept(seed, outcome),
        words=describe_finding(outcome.mutations, *answers, _STEPS_SHOWN),
    )


def _told(answer: Output | None) -> int | str | None:
    """Return the class or the text that an answer is; None of others."""
    if answer is None or not kind_of_answer(answer).shows_pairs:
        return None
    text = text_of(answer)
    return top_label(answer) if text is None else text


def _seed_answer_kept(seed: SeedRecord, outcome: OutcomeRecord) -> bool | None:
    """Whether the original answers the trigger with the seed's label, or the same words."""
    before = seed.outputs.original if seed.outputs else None
    if before is None or outcome.original is None or _told(outcome.original) is None:
        return None
    return kind_of_answer(outcome.original).agree(outcome.original, before)
