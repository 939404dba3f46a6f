"""A campaign in figures, with those of its control: how often the search raises a false alarm."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from edgeflare.analysis.agreement import Agreement, EveryDevice, agreements
from edgeflare.analysis.devices import (
    TelemetryCounts,
    TelemetryFigures,
    Transfer,
    transfers,
)
from edgeflare.analysis.faults import FaultFigures, fault_figures
from edgeflare.analysis.limits import LimitCheck, LimitContext
from edgeflare.analysis.outcome_stats import (
    OutcomeFigures,
    WordPair,
    answer_figures,
    outcome_figures,
)
from edgeflare.analysis.soundness import Soundness
from edgeflare.analysis.survey import SurveyFigures
from edgeflare.answers import AnswerKind
from edgeflare.answers.columns import stored_kind
from edgeflare.answers.detections.figures import DetectionFigures
from edgeflare.answers.transcripts import WordFigures
from edgeflare.answers.values import ValueFigures
from edgeflare.campaign.pair.health import UnusableAnswers
from edgeflare.explanation import Explanation, explained_devices, stored_explanation
from edgeflare.statistics import rounded_up, upper_bound
from edgeflare.store import Store, campaign_text, open_store
from edgeflare.store.location import is_campaign
from edgeflare.types import TRIGGERS, Status

if TYPE_CHECKING:
    from edgeflare.analysis.replay import ReplayFigures


NO_SEARCH = "none"
"""The strategy of a campaign that compares the seeds as they are."""
_F = TypeVar("_F")
ControlState: TypeAlias = Literal["not-begun", "begun", "finished", "refused", "gone"]


@dataclass(frozen=True)
class ControlFigures:
    """Results of a campaign's control so far; see `edgeflare.campaign.control`.

    `state`: "refused" where it can't be run, `refusal` gives the reason, "gone" where it was
    finished and its folder is not there any more. Of `searches` that asked the device
    `false_alarms` ended with a trigger, so that `rate` of them did, None while there are none;
    `unasked` ended without asking it, and `failed` because the model can't answer. `upper_bound` is
    above the true rate in 95 % of cases (one-sided, Clopper and Pearson 1934). `unfinished`
    searches are to come. `model` is the file that the original was compared with, its own
    (`own_file`) or a copy's, `runtime` what was in effect there. `margin_floor` is the campaign's;
    `largest_margin` the smallest one that would have let no false alarm count, exclusive. Of
    `surveyed` inputs far from the seeds `survey_alarms` are confident deviations.
    """

    model: str
    own_file: bool
    runtime: dict[str, Any]
    searches: int
    unasked: int
    false_alarms: int
    failed: int
    unfinished: int
    rate: float | None
    upper_bound: float | None
    margin_floor: float
    largest_margin: float | None
    state: ControlState
    refusal: str | None
    surveyed: int = 0
    survey_alarms: int = 0

    @property
    def safe_margin(self) -> float | None:
        """The largest margin of a false alarm, rounded up to two digits."""
        return None if self.largest_margin is None else rounded_up(self.largest_margin)


def control_figures(store: Store) -> ControlFigures | None:
    """Return the figures of a campaign's control; None where none is wanted."""
    config = store.campaign
    if not config.get("control"):
        return None
    from edgeflare.campaign.status import (
        Alarms,
        control_folder,
        count_alarms,
        expected_outcomes,
    )

    folder = control_folder(store.folder)
    own = store.setting("original", "path")
    path = config.get("control_model") or own
    runtime: dict[str, Any] = {}
    counts, finished = Alarms(0, 0, 0, None), 0
    total = store.seed_count()
    exists = store.state.control_begun and is_campaign(folder)
    refusal = store.state.control_refused
    ended = store.state.control_finished
    state: ControlState = "begun" if exists else "not-begun"
    if ended:
        state = "refused" if refusal else "finished" if exists else "gone"
    if exists:
        with Store.open(folder) as control:
            counts = count_alarms(control)
            finished = control.tally().done
            total = max(total, expected_outcomes(control))
            runtime = dict(control.models.get("deployed", {}).get("runtime", {}))
    return ControlFigures(
        model=Path(path).name,
        own_file=path == own,
        runtime=runtime,
        **counts._asdict(),
        failed=finished - counts.searches - counts.unasked,
        unfinished=0 if ended else max(0, total - finished),
        rate=counts.false_alarms / counts.searches if counts.searches else None,
        upper_bound=upper_bound(counts.false_alarms, counts.searches) if counts.searches else None,
        margin_floor=store.setting("search", "margin_floor"),
        state=state,
        refusal=refusal,
    )


@dataclass(frozen=True)
class Summary(OutcomeFigures):
    """What a campaign found so far.

    `finished` seeds have an outcome, `unfinished` ones not yet; where each device searches for
    itself (`replicas` names them) a seed counts once for each. `by_status` counts the outcomes by
    each `Status`. `searched` are the finished ones but for those that were a finding themselves;
    `success_rate` is found / searched, None while nothing was searched. `queries_*` are search
    queries and `seconds_*` search time without queueing: over the seeds with a triggering input,
    and over all that were searched; None for no seed at all. `queries_found` counts up to the first
    trigger, though a search went on for a more severe one. `total_queries` has the six counters,
    `round_trips` the requests of searches to the devices, over all outcomes; `wall_s` are the
    seconds of all its runs by the clock. `label_pairs`, most frequent first, medians of the margins
    (top-1 minus top-2), of L2, Linf and `snr_db` (as `edgeflare.metrics` has them; the last of
    audio only) are over the triggering inputs. Of texts `word_pairs`, most frequent
    first, take the place of pairs of labels; they are counted on seeds that deviate, too.
    `sample_rate` is that of audio in Hz, None of images. `ties` counts seeds on which a model's
    top-1 was a tie; `*_right` counts the `labelled` seeds whose label a model gives (of several
    replicas, the first that answered). `by_device` has a row for each device, `transfers` one for
    each pair of devices whose triggering inputs were exchanged; `agreements` compares the answers
    of each pair of devices that searched for themselves, or that `edgeflare explain` asked about the
    findings, `every_device` those of all of them together, None where there is but one or they shared the seeds; `given_up` counts why searches
    gave up, `coverage` what those without a trigger asked; `failures` are the first 20 seeds on
    which a device could not answer. `triggers` are the first 10 triggering inputs by their seeds'
    names, in words; `corruptions` counts the triggering inputs with each natural corruption, most
    frequent first, by name. `control` is None where no control is wanted. `search` is the
    configuration's table of that name. `devices` (one for each fingerprint) and `models` are as the
    store has them. `telemetry` has a row for each device that was watched while it answered;
    `throttled` names those that were slowed down meanwhile, and the `notices` end with a sentence
    on each. `limits` has a check for each of the campaign's limits, `replay` the figures of a
    replay, `survey` those of the survey before the search, `faults` what going after its
    deviations found; None where there was none. `soundness` compares the deployed model with
    healthy references, None without any. `explanation` is what the findings come of, None unless
    the campaign was explained. `detection` has the differences of detectors' answers by kind and
    class, `values` the distances of maps, embeddings and vectors; None of others. `unusable` says
    which model's answers can't be used, and why, the most important reason first.
    """

    campaign: str
    folder: str
    created_at: str
    seeds: int
    skipped: int
    finished: int
    unfinished: int
    found: int
    ties: int
    labelled: int
    original_right: int
    deployed_right: int
    success_rate: float | None
    wall_s: float | None
    transfers: tuple[Transfer, ...]
    agreements: tuple[Agreement, ...]
    every_device: EveryDevice | None
    control: ControlFigures | None
    devices: tuple[dict[str, Any], ...]
    models: dict[str, Any]
    notices: tuple[str, ...]
    search: dict[str, Any]
    telemetry: tuple[TelemetryFigures, ...] = ()
    throttled: tuple[str, ...] = ()
    limits: tuple[LimitCheck, ...] = ()
    replay: "ReplayFigures | None" = None
    sample_rate: int | None = None
    answers: Any = None
    survey: SurveyFigures | None = None
    soundness: Soundness | None = None
    faults: FaultFigures | None = None
    explanation: Explanation | None = None
    unusable: tuple[UnusableAnswers, ...] = ()

    @property
    def kind(self) -> AnswerKind[Any]:
        """The kind of the models' answers."""
        return stored_kind(self.models)

    @property
    def word_pairs(self) -> tuple[WordPair, ...]:
        """The words that differ on the triggering inputs, the most frequent first."""
        words = self._figures(WordFigures)
        return () if words is None else words.pairs

    @property
    def detection(self) -> DetectionFigures | None:
        """The figures of detectors' answers."""
        return self._figures(DetectionFigures)

    @property
    def values(self) -> ValueFigures | None:
        """The figures of answers of values."""
        return self._figures(ValueFigures)

    def _figures(self, type_: type[_F]) -> _F | None:
        return self.answers if isinstance(self.answers, type_) else None

    @property
    def has_searches(self) -> bool:
        """Whether seeds are searched from, not only compared as they are."""
        return self.search.get("strategy") != NO_SEARCH

    @property
    def of_each_device(self) -> bool:
        """Whether several devices searched for themselves."""
        return len(self.replicas) > 1

    @property
    def triggers_found(self) -> int:
        """How many outcomes have a trigger, the seed itself or one that was found."""
        return sum(self.by_status.get(status.value, 0) for status in TRIGGERS)

    @property
    def limits_crossed(self) -> tuple[str, ...]:
        """The names of the limits that don't hold."""
        return tuple(limit.name for limit in self.limits if limit.crossed)

    @property
    def limits_undecided(self) -> tuple[str, ...]:
        """The names of the limits of which nobody can tell whether they hold."""
        return tuple(limit.name for limit in self.limits if limit.undecided)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names, `limits_crossed` and `limits_undecided`, too."""
        limits = [limit.to_json() for limit in self.limits]
        # these stand in another form, behind the others or in their place
        about = asdict(replace(self, limits=(), soundness=None, unusable=(), explanation=None))
        del about["unusable"]
        about = {name: about[name] for name in Summary.__annotations__ if name in about} | about
        answers = self.answers
        figures = {} if answers is None else self.kind.figures_json(answers)
        return {
            **{"word_pairs" if key == "answers" else key: part for key, part in about.items()},
            "word_pairs": (),
            "detection": None,
            "values": None,
            **figures,
            "soundness": self.soundness and self.soundness.to_json(),
            "limits": limits,
            "unusable": [one.to_json() for one in self.unusable],
            "limits_crossed": list(self.limits_crossed),
            "limits_undecided": list(self.limits_undecided),
            "explanation": self.explanation and self.explanation.to_json(),
        }


def summarize(campaign: Store | Path) -> Summary:
    """Count what a campaign found. Raises StoreError where its folder can't be used."""
    with open_store(campaign) as store:
        return _summary(store)


def _summary(store: Store) -> Summary:
    figures = outcome_figures(store)
    seeds = store.seed_count()
    finished = sum(figures.by_status.values())
    searched, found = figures.searched, figures.by_status[Status.FOUND]
    compared, every_device = agreements(store)
    replay = None if compared else explained_devices(store)
    if replay is not None:
        with Store.open(replay) as explained:
            compared, every_device = agreements(explained)
    telemetry = TelemetryCounts(store.telemetry())
    slowed = telemetry.slowed()
    expected = seeds * len(store.state.replicas)
    context = LimitContext(store)  # limits, survey and verdict need the same figures
    return Summary(
        **{**vars(figures), **store.columns.seed_labels()},
        campaign=store.id,
        folder=campaign_text(store.folder),
        created_at=store.created_at.isoformat(),
        seeds=seeds,
        skipped=len(store.skipped()),
        finished=finished,
        unfinished=max(0, expected - finished),
        found=found,
        success_rate=found / searched if searched else None,
        wall_s=store.state.wall_s,
        transfers=transfers(store.replays()),
        agreements=compared,
        every_device=every_device,
        control=control_figures(store),
        devices=tuple(asdict(device) for device in store.devices()),
        models=store.models,
        notices=(*store.notices(), *(one.words for one in slowed)),
        search=dict(store.campaign.get("search", {})),
        telemetry=telemetry.figures(),
        throttled=tuple(one.device for one in slowed),
        limits=context.checks(),
        replay=_replay(store),
        sample_rate=store.sample_rate,
        survey=context.survey,
        soundness=context.soundness,
        faults=fault_figures(store),
        explanation=stored_explanation(store),
        answers=answer_figures(store),
        unusable=context.unusable,
    )


def _replay(store: Store) -> "ReplayFigures | None":
    if not store.state.is_replay:
        return None
    from edgeflare.analysis.replay import replay_summary

    return replay_summary(store).figures
