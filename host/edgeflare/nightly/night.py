"""The records of a night in its ``night.json``: each model on each device, in figures and words."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from edgeflare.analysis import Summary, summarize
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.store import Store
from edgeflare.types import TRIGGERS
from edgeflare.words.nightly import figures_text, trouble_text, verdict_text

RunState: TypeAlias = Literal["green", "first", "regression", "away", "failed"]
NightState: TypeAlias = Literal["running", "finished", "interrupted"]

CAMPAIGNS = ("search", "replay", "seeds")
"""The folders of a run's search, and of the replays of the corpus and of the agreeing seeds."""

_TROUBLE = ("away", "failed")


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class SearchFigures(_Record):
    """A night's search in figures.

    On `seed_deviates` of the `seeds` the models differ already; of the `searched` ones `found` gave
    a triggering input. `queries` is the median of those that found one, `severity` the median of
    the smaller of both models' margins on the triggering inputs, 0 to 1. `latency_s` is the
    device's median seconds for a query and `temperature_c` its highest, None where unknown;
    `throttled`: it was slowed down during the run. `whole` is False where the limit on queries
    ended it.

    Of `surveyed` inputs far from the seeds, on which the original is sure, `confident_deviations`
    deviate; their rate lies within `confident_low` and `confident_high` with 95 % confidence.
    `verdict` is that against healthy references, see `edgeflare.analysis.Soundness`. Nights before
    there was a survey have none of these.
    """

    seeds: int
    seed_deviates: int
    searched: int
    found: int
    queries: float | None = None
    severity: float | None = None
    total_queries: int = 0
    latency_s: float | None = None
    temperature_c: float | None = None
    throttled: bool = False
    whole: bool = True
    surveyed: int = 0
    confident_deviations: int = 0
    confident_low: float | None = None
    confident_high: float | None = None
    verdict: str | None = None

    @property
    def success_rate(self) -> float | None:
        """The share of searches that found a triggering input, 0 to 1."""
        return self.found / self.searched if self.searched else None

    @property
    def deviation_rate(self) -> float | None:
        """The share of the seeds on which the models differ already, 0 to 1."""
        return self.seed_deviates / self.seeds if self.seeds else None

    @property
    def confident_rate(self) -> float | None:
        """The share of the survey's inputs that deviate, 0 to 1."""
        return self.confident_deviations / self.surveyed if self.surveyed else None


class ReplayCounts(_Record):
    """The numbers of replayed inputs by state.

    They are fixed, deviate still or newly, agree as before, or gave no steady answer; `nonfinite`
    gave NaN or infinity.
    """

    fixed: int = 0
    still: int = 0
    new: int = 0
    agrees: int = 0
    unstable: int = 0
    nonfinite: int = 0
    failed: int = 0


class Check(_Record):
    """One check of a night; `crossed`: it failed, and makes the night red.

    `undecided`: nobody can tell whether it holds, which doesn't.
    """

    part: Literal["search", "replay", "comparison"]
    name: str
    words: str
    crossed: bool
    undecided: bool = False


class Identity(_Record):
    """What decides a device's answers: SHA-256 of both models' files, the device's fingerprint, the
    host's libraries and the settings of the search and of the survey.

    `survey` has those that its rate depends on; empty without a survey, and in older nights.
    """

    original: str = ""
    deployed: str = ""
    device: dict[str, Any] = Field(default_factory=dict)
    host: dict[str, Any] = Field(default_factory=dict)
    search: dict[str, Any] = Field(default_factory=dict)
    survey: dict[str, Any] = Field(default_factory=dict)

    def surveyed_like(self, other: "Identity") -> bool:
        """Whether the rates of both surveys compare, as far as is known."""
        return not self.survey or not other.survey or self.survey == other.survey


class NightRun(_Record):
    """One model on one device in one night.

    `words` say why it is not green, or other remarks; `changed` what is not as it was
    in the last green night `compared_with` (its stamp, "" where there was none). `folder` is
    relative to the night's and has its `CAMPAIGNS` as long as they are stored. `accepted`: a
    person took a red night for the new baseline. `seconds` is how long it took.
    """

    model: str
    device: str
    folder: str
    state: RunState
    words: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    search: SearchFigures | None = None
    replay: ReplayCounts | None = None
    identity: Identity = Identity()
    compared_with: str = ""
    accepted: bool = False
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The model's name and the device's."""
        return f"{self.model} on {self.device}"

    @property
    def figures(self) -> str:
        """Its main figures in words, "" where it has none."""
        search = None if self.search is None else self.search.model_dump()
        return figures_text(search, None if self.replay is None else self.replay.model_dump())

    @property
    def trouble(self) -> str:
        """Why it is not green, in a few words, "" where it is."""
        return trouble_text(self.state, accepted=self.accepted)

    @property
    def is_baseline(self) -> bool:
        """Whether later nights may be compared with it."""
        return self.state in ("green", "first") or self.accepted


class Night(_Record):
    """A night: every model on every device, in the order in which they ran.

    `stamp` is its folder's name, the time it began in UTC; `number` counts the nights of a history
    from 1; `planned` is how many runs there are to be. `folder` is where it lies; it is not written
    down.
    """

    stamp: str
    number: int
    state: NightState
    started_at: datetime
    ended_at: datetime | None = None
    runs: tuple[NightRun, ...] = ()
    planned: int = 0
    folder: Path = Field(default=Path(), exclude=True)

    @property
    def exit_code(self) -> int:
        """1 where a model got worse or a limit was crossed, else 3 where a run failed.

        Else 4 where nobody can tell whether a limit is kept, else 0.
        """
        open_runs = [run for run in self.runs if not run.accepted]
        if any(run.state == "regression" for run in open_runs):
            return 1
        if any(run.state in _TROUBLE for run in open_runs):
            return 3
        return 4 if any(check.undecided for run in open_runs for check in run.checks) else 0

    @property
    def verdict(self) -> str:
        """The night in one sentence."""
        troubles = [run.trouble for run in self.runs]
        first = sum(run.state == "first" for run in self.runs)
        return verdict_text(troubles, first, self.planned, running=self.state == "running")

    def run(self, model: str, device: str) -> NightRun | None:
        """Return the run of this model on this device, None where there is none."""
        return next((one for one in self.runs if (one.model, one.device) == (model, device)), None)

    def campaign(self, run: NightRun) -> Path:
        """Return the folder of a run's search, which may be deleted by now."""
        return self.folder / run.folder / "search"

    def replayed(self, run: NightRun) -> Path:
        """Return the folder of a run's replay, which may be deleted by now."""
        return self.folder / run.folder / "replay"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names, the folder, the exit code and the verdict."""
        values: dict[str, Any] = self.model_dump(mode="json")
        return {
            **values,
            "folder": str(self.folder),
            "exit_code": self.exit_code,
            "verdict": self.verdict,
        }


def search_figures(store: Store) -> SearchFigures:
    """Return the figures of a campaign on one device."""
    summary = summarize(store)
    telemetry = summary.telemetry[0] if summary.telemetry else None
    severities = [
        value
        for outcome in store.outcomes()
        if outcome.status in TRIGGERS and (value := outcome.severity) is not None
    ]
    return SearchFigures(
        seeds=summary.seeds,
        seed_deviates=summary.by_status["seed-deviates"],
        searched=summary.searched,
        found=summary.found,
        queries=None if summary.queries_found is None else summary.queries_found.median,
        severity=median(severities) if severities else None,
        total_queries=sum(
            summary.total_queries[name]
            for name in ("seed", "survey", "search", "confirmation", "measuring")
        ),
        latency_s=None if telemetry is None else telemetry.latency_median_s,
        temperature_c=None if telemetry is None else telemetry.temperature_max_c,
        throttled=bool(summary.throttled),
        whole=store.state.finished,
        **_survey_figures(summary),
    )


def _survey_figures(summary: Summary) -> dict[str, Any]:
    rate = None if summary.survey is None else summary.survey.overall
    verdict = None if summary.soundness is None else summary.soundness.verdict
    if rate is None:
        return {"verdict": verdict}
    return {
        "surveyed": rate.inputs,
        "confident_deviations": rate.deviations,
        "confident_low": rate.low,
        "confident_high": rate.high,
        "verdict": verdict,
    }


def replay_figures(replays: Iterable[ReplaySummary]) -> ReplayCounts:
    """Return the figures of several replays together."""
    totals = dict.fromkeys(ReplayCounts.model_fields, 0)
    for replay in replays:
        for state, count in replay.counts.items():
            totals[state] += count
    return ReplayCounts(**totals)
