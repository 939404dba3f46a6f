"""Campaigns as pandas data frames, for notebooks."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from edgeflare._internal.records import as_json
from edgeflare.analysis.findings import findings
from edgeflare.answers import kind_of_answer
from edgeflare.answers.metrics import difference_text, text_of, top_label
from edgeflare.campaign.replay.results import STATES, replayed_inputs
from edgeflare.campaign.status import replica_names
from edgeflare.errors import UsageError
from edgeflare.store import OutcomeRecord, Store, open_store
from edgeflare.strategies.operators import describe_mutations
from edgeflare.types import TRIGGERS, Decision, Output, Status

if TYPE_CHECKING:
    import pandas as pd


def outcomes(store: Store) -> Iterator[dict[str, Any]]:
    """How each search ended, in the order they did."""
    for one in store.outcomes():
        yield {
            **_counted(one),
            "searched": one.searched,
            "seed_queries": one.seed_queries,
            "confirmation_queries": one.confirmation_queries,
            "host_only_queries": one.host_only_queries,
            "round_trips": one.round_trips,
            "seconds": one.seconds,
            "device_seconds": one.device_seconds,
            "confirmed": one.confirmed,
            "detail": one.detail,
            "finished_at": one.finished_at,
        }


def triggers(store: Store) -> Iterator[dict[str, Any]]:
    """The triggering inputs in the order of the seeds, then of the replicas."""
    for finding in findings(store):
        one = finding.outcome
        if one.status in TRIGGERS:
            yield {
                **_counted(one),
                "cause": finding.cause,
                "label": finding.seed.label,
                "severity": one.severity,
                "steps": " + ".join(describe_mutations(one.mutations)),
                "seed_sample": finding.seed.sample,
                "trigger_sample": one.trigger or finding.seed.sample,
                "original_scores": _scores(one.original),
                "deployed_scores": _scores(one.deployed),
                "difference": difference_text(one.original, one.deployed),
                "command": finding.command,
            }


def seeds(store: Store) -> Iterator[dict[str, Any]]:
    """Both models' answers on the seed inputs, device by device where each searched for itself."""
    for replica in replica_names(store):
        for seed in store.seeds(replica):
            original, deployed, decision = seed.outputs or (None, None, None)
            yield {
                "seed_id": seed.id,
                "replica": replica,
                "position": seed.position,
                "label": seed.label,
                "decision": decision and decision.value,
                "original_label": top_label(original),
                "deployed_label": top_label(deployed),
                "original_text": text_of(original),
                "deployed_text": text_of(deployed),
                "original_scores": _scores(original),
                "deployed_scores": _scores(deployed),
                "difference": difference_text(original, deployed),
                "sample": seed.sample,
                "file_sha256": seed.file_sha256,
            }


def telemetry(store: Store) -> Iterator[dict[str, Any]]:
    """The devices' minutes as recorded; one that was interrupted has several rows."""
    for minute in store.telemetry():
        yield {**vars(minute), "throttle_reasons": ", ".join(minute.throttle_reasons)}


def replays(store: Store) -> Iterator[dict[str, Any]]:
    """What became of each input of a replay; nothing for another campaign."""
    if store.state.is_replay:
        for one in replayed_inputs(store):
            yield as_json(one)


def transfers(store: Store) -> Iterator[dict[str, Any]]:
    """What each device answers to the triggers of another one."""
    for one in store.replays():
        yield {
            "seed_id": one.seed_id,
            "replica": one.replica,
            "on_device": one.on_device,
            "trigger_sample": one.trigger,
            "deployed_label": one.deployed_label,
            "deployed_text": text_of(one.deployed),
            "decision": one.decision.value,
            "deviates": one.decision is Decision.DEVIATION,
        }


def survey(store: Store) -> Iterator[dict[str, Any]]:
    """Both models' answers on each input of the survey, by phase, replica and seed."""
    for one in store.survey():
        yield {
            "seed_id": one.seed_id,
            "replica": one.replica,
            "phase": one.phase,
            "number": one.number,
            "family": one.family,
            "severity": one.severity,
            "decision": one.decision.value,
            "confident_deviation": one.confident_deviation,
            "original_label": top_label(one.original),
            "deployed_label": top_label(one.deployed),
            "original_text": text_of(one.original),
            "deployed_text": text_of(one.deployed),
            "original_margin": one.original_margin,
            "deployed_margin": one.deployed_margin,
            "total_variation": one.total_variation,
            "original_scores": _scores(one.original),
            "deployed_scores": _scores(one.deployed),
            "difference": difference_text(one.original, one.deployed),
            "device": one.device_name,
            "sample": one.sample,
            "detail": one.detail,
        }


def _counted(one: OutcomeRecord) -> dict[str, Any]:
    return {
        "seed_id": one.seed_id,
        "replica": one.replica,
        "device": one.replica or one.device_name,
        "status": one.status.value,
        "first_trigger_queries": one.first_queries if one.status is Status.FOUND else None,
        "search_queries": one.search_queries,
        "original_label": one.original_label,
        "deployed_label": one.deployed_label,
        "original_text": text_of(one.original),
        "deployed_text": text_of(one.deployed),
        "original_margin": one.original_margin,
        "deployed_margin": one.deployed_margin,
        "l2": one.l2,
        "linf": one.linf,
        "snr_db": one.snr_db,
    }


def _scores(output: Output | None) -> Any:
    return None if output is None else kind_of_answer(output).to_cell(output)


Source: TypeAlias = Store | Path | str

_TEXT, _NAME, _TIME, _ARRAY = "string", "category", "datetime64[ns, UTC]", "object"
_COUNT, _WHOLE, _NUMBER, _YES_NO = "int64", "Int64", "float64", "boolean"
_LABELS = {"original_label": _WHOLE, "deployed_label": _WHOLE}
_SCORES = {"original_scores": _ARRAY, "deployed_scores": _ARRAY}
_MARGINS = {"original_margin": _NUMBER, "deployed_margin": _NUMBER}
_TEXTS = {"original_text": _TEXT, "deployed_text": _TEXT}
_DISTANCES = {"l2": _NUMBER, "linf": _WHOLE, "snr_db": _NUMBER}
_WHERE = {"campaign": _NAME, "seed_id": _TEXT, "replica": _NAME}

_OUTCOMES = {
    **_WHERE,
    "device": _NAME,
    "status": "status",
    "searched": "bool",
    "first_trigger_queries": _WHOLE,
    "search_queries": _COUNT,
    "seed_queries": _COUNT,
    "confirmation_queries": _COUNT,
    "host_only_queries": _COUNT,
    "round_trips": _COUNT,
    "seconds": _NUMBER,
    "device_seconds": _NUMBER,
    **_LABELS,
    **_TEXTS,
    **_MARGINS,
    **_DISTANCES,
    "confirmed": _COUNT,
    "detail": _TEXT,
    "finished_at": _TIME,
}
_TRIGGERS = {
    **_WHERE,
    "device": _NAME,
    "status": "status",
    "cause": _NAME,
    "label": _WHOLE,
    **_LABELS,
    **_TEXTS,
    **_MARGINS,
    "severity": _NUMBER,
    **_DISTANCES,
    "first_trigger_queries": _WHOLE,
    "search_queries": _COUNT,
    "steps": _TEXT,
    "seed_sample": _TEXT,
    "trigger_sample": _TEXT,
    **_SCORES,
    "difference": _TEXT,
    "command": _TEXT,
}
_SEEDS = {
    **_WHERE,
    "position": _COUNT,
    "label": _WHOLE,
    "decision": "decision",
    **_LABELS,
    **_TEXTS,
    **_SCORES,
    "difference": _TEXT,
    "sample": _TEXT,
    "file_sha256": _TEXT,
}
_SURVEY = {
    **_WHERE,
    "phase": _NAME,
    "number": _COUNT,
    "family": _NAME,
    "severity": _COUNT,
    "decision": "decision",
    "confident_deviation": "bool",
    **_LABELS,
    **_TEXTS,
    **_MARGINS,
    "total_variation": _NUMBER,
    **_SCORES,
    "difference": _TEXT,
    "device": _NAME,
    "sample": _TEXT,
    "detail": _TEXT,
}
_TELEMETRY = {
    "campaign": _NAME,
    "device": _NAME,
    "minute": _TIME,
    "queries": _COUNT,
    **dict.fromkeys(("latency_median_s", "latency_p99_s", "latency_max_s"), _NUMBER),
    "rss_bytes": _WHOLE,
    **dict.fromkeys(("temperature_mean_c", "temperature_max_c"), _NUMBER),
    **dict.fromkeys(("frequency_least_mhz", "gpu_load_mean", "gpu_least_mhz"), _NUMBER),
    **dict.fromkeys(("readings", "throttled_readings"), _COUNT),
    "throttle_reasons": _TEXT,
    "battery_percent": _NUMBER,
    "battery_charging": _YES_NO,
}
_REPLAYS = {
    "campaign": _NAME,
    "id": _TEXT,
    "kind": _NAME,
    "seed_id": _TEXT,
    "replica": _NAME,
    "device": _NAME,
    "state": "state",
    "original_label_before": _WHOLE,
    "deployed_label_before": _WHOLE,
    "original_text_before": _TEXT,
    "deployed_text_before": _TEXT,
    **_LABELS,
    **_TEXTS,
    "decision": "decision",
    **_MARGINS,
    "l2": _NUMBER,
    "sample": _TEXT,
    "detail": _TEXT,
}
_TRANSFERS = {
    **_WHERE,
    "on_device": _NAME,
    "trigger_sample": _TEXT,
    "deployed_label": _WHOLE,
    "deployed_text": _TEXT,
    "decision": "decision",
    "deviates": "bool",
}


@dataclass(frozen=True)
class Frames:
    """Data frames of one campaign or several, distinguished by the column `campaign`.

    `outcomes`: how the search from each seed input ended. `triggers`: the triggering inputs in the
    order of the seeds; `severity` is the smaller one of both models' margins, `cause` and `command`
    as in `Finding`. `seeds`: both models' answers on each seed input, a row for each device that
    searched for itself. `telemetry`: the devices' minutes. `replays`: of a replay what became of
    each input on each device, see `ReplayedInput`; its seeds are the inputs that were sent again.
    `transfers`: what each device of a fleet that searched for themselves answers to the triggers of
    another one. `survey`: both models' answers on each input far from the seeds.

    What may be missing is NA; labels are nullable integers, times are UTC, names of few kinds are
    categories. `original_scores` and `deployed_scores` are arrays, float64 [classes], of a
    transcript [pieces, 2] as in `Transcript`, None where there are none; of transcripts there are
    texts in place of labels. Of detections they are lists of objects with label, score and box, of
    values an object with shape, min, max and mean; `difference` has what differs in words.
    Samples are digests, for `Store.get_sample`. Distances and margins
    have the units of `OutcomeRecord`.
    """

    outcomes: "pd.DataFrame"
    triggers: "pd.DataFrame"
    seeds: "pd.DataFrame"
    telemetry: "pd.DataFrame"
    replays: "pd.DataFrame"
    transfers: "pd.DataFrame"
    survey: "pd.DataFrame"


def to_frames(campaigns: "Source | Sequence[Source]") -> Frames:
    """Return a campaign, or several below each other, as data frames.

    A campaign is named by its folder, or is an open store. In the column `campaign` it has its
    folder's name, or the whole path where two have the same one.

    Raises UsageError where pandas is missing or a campaign is named twice, StoreError where a
    folder can't be used.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise UsageError(
            "data frames need pandas; install it with `pip install 'edgeflare[notebook]'`"
        ) from error
    several = [campaigns] if isinstance(campaigns, Store | Path | str) else list(campaigns)
    kinds: dict[str, Any] = {
        "status": pd.CategoricalDtype([one.value for one in Status]),
        "decision": pd.CategoricalDtype([one.value for one in Decision]),
        "state": pd.CategoricalDtype(list(STATES)),
    }
    with ExitStack() as stack:
        stores = [
            stack.enter_context(open_store(Path(one) if isinstance(one, str) else one))
            for one in several
        ]
        names = _names(stores)

        def frame(columns: Mapping[str, str], make: _Make) -> "pd.DataFrame":
            found = pd.DataFrame(_rows(stores, names, make), columns=list(columns))
            typed: pd.DataFrame = found.astype(
                {name: kinds.get(kind, kind) for name, kind in columns.items()}
            )
            return typed

        return Frames(
            outcomes=frame(_OUTCOMES, outcomes),
            triggers=frame(_TRIGGERS, triggers),
            seeds=frame(_SEEDS, seeds),
            telemetry=frame(_TELEMETRY, telemetry),
            replays=frame(_REPLAYS, replays),
            transfers=frame(_TRANSFERS, transfers),
            survey=frame(_SURVEY, survey),
        )


_Make: TypeAlias = Callable[[Store], Iterable[dict[str, Any]]]


def _rows(stores: Sequence[Store], names: Sequence[str], make: _Make) -> Iterator[dict[str, Any]]:
    for store, name in zip(stores, names, strict=True):
        for row in make(store):
            yield {"campaign": name, **row}


def _names(stores: Sequence[Store]) -> list[str]:
    folders = [store.folder.resolve() for store in stores]
    for folder, count in Counter(folders).items():
        if count > 1:
            raise UsageError(f"{folder} is named {count} times; name each campaign once")
    often = Counter(folder.name for folder in folders)
    return [str(folder) if often[folder.name] > 1 else folder.name for folder in folders]
